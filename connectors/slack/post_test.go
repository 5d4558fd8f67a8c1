package slack

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"daycare/connectors/chat"
)

// What Slack hands over becomes a message, or none: bots, ourselves, and what is no speech say
// nothing to an agent, and a reaction or an edit is a note.
func TestWhatAnEventBecomes(t *testing.T) {
	s := newWorkspace(t)
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	const me = "UBOT00001"
	c.me = me
	for _, tt := range []struct {
		event string
		want  string // group, addressed, note, thread, text; "": none
	}{
		{`{"type":"message","user":"U1","channel":"D1","ts":"1","text":" hi "}`, `false false false "" hi`},
		{`{"type":"message","user":"U1","channel":"D1","ts":"1","thread_ts":"0","text":"hi"}`, `false false false "0" hi`},
		{`{"type":"message","user":"U1","channel":"C1","ts":"1","text":"hi"}`, `true false false "1" hi`},
		{`{"type":"app_mention","user":"U1","channel":"C1","ts":"1","thread_ts":"0","text":"<@` + me + `> hi"}`, `true true false "0" hi`},
		{`{"type":"message","subtype":"me_message","user":"U1","channel":"D1","ts":"1","text":"hi"}`, `false false false "" hi`},
		{`{"type":"message","subtype":"channel_join","user":"U1","channel":"C1","ts":"1","text":"hi"}`, ``},
		{`{"type":"message","user":"U1","bot_id":"B1","channel":"D1","ts":"1","text":"hi"}`, ``},
		{`{"type":"message","channel":"D1","ts":"1","text":"hi"}`, ``},
		{`{"type":"message","user":"` + me + `","channel":"D1","ts":"1","text":"hi"}`, ``},
		{`{"type":"team_join","user":"U1","channel":"D1","ts":"1"}`, ``},
		{`{"type":"reaction_added","user":"U1","reaction":"eyes","item":{"channel":"C1","ts":"7"},"event_ts":"9"}`,
			`true false true "" The person reacted to message 7 with :eyes:`},
		{`{"type":"reaction_added","user":"U1","reaction":"eyes","item":{"ts":"7"},"event_ts":"9"}`, ``},
		{`{"type":"reaction_added","user":"` + me + `","reaction":"eyes","item":{"channel":"C1","ts":"7"},"event_ts":"9"}`, ``},
		{`{"type":"message","subtype":"message_changed","channel":"D1","event_ts":"9","message":{"user":"U1","ts":"7","text":"new"}}`,
			`false false false "" new`},
		{`{"type":"message","subtype":"message_deleted","channel":"D1","event_ts":"9","previous_message":{"user":"U1",` +
			`"ts":"7","text":"old"}}`,
			`false false false "" `},
		{`{"type":"message","subtype":"message_deleted","channel":"D1","event_ts":"9","previous_message":{"user":"` + me +
			`","ts":"7"}}`, ``},
		{`{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"9","message":{"subtype":"tombstone",` +
			`"user":"USLACKBOT","ts":"7","thread_ts":"7","text":"This message was deleted."},"previous_message":{"user":"U1",` +
			`"ts":"7","thread_ts":"7",` +
			`"text":"<@` + me + `> old"}}`, `true true false "7" `},
		{`{"type":"message","subtype":"message_changed","channel":"D1","event_ts":"9","message":{"user":"` + me +
			`","ts":"7","text":"new"}}`, ``},
		{`{"type":"message","subtype":"message_changed","channel":"D1","event_ts":"9","message":{"user":"U1","bot_id":"B","ts":"7",` +
			`"text":"new"}}`, ``},
		{`{"type":"message","subtype":"message_changed","channel":"D1","event_ts":"9"}`, ``},
		{`{"type":"message","subtype":"message_changed","channel":"D1","event_ts":"9","message":{"user":"U1","ts":"7",` +
			`"text":"https://x"},` +
			`"previous_message":{"user":"U1","ts":"7","text":"https://x"}}`, ``},
		{`{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"9","message":{"user":"U1","ts":"7","thread_ts":"2",` +
			`"text":"<@` + me + `> new"}}`, `true true false "2" new`},
		{`{"type":"message","subtype":"message_deleted","channel":"C1","event_ts":"9","previous_message":{"user":"U1","ts":"7",` +
			`"text":"<@` + me + `> old"}}`, `true true false "7" `},
	} {
		var e event
		if err := json.Unmarshal([]byte(tt.event), &e); err != nil {
			t.Fatal(err)
		}
		p, ok := c.event(e)
		got := fmt.Sprintf("%v %v %v %q %s", p.Group, p.Addressed, p.Note, p.From.ThreadID, p.Text)
		if ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s becomes %q (%v), want %q", tt.event, got, ok, tt.want)
		}
	}
	for command, want := range map[slash]string{{Text: " status ", User: "U1", Channel: "D1"}: "/status",
		{User: "U1", Channel: "D1"}:                "/help",
		{Text: "/stop", User: "U1", Channel: "C1"}: "/stop", {Text: "x", User: "U1"}: "", {Text: "x", Channel: "D1"}: ""} {
		p, ok := command.post()
		if ok != (want != "") || ok && (p.Text != want || !p.Addressed || p.Group != (command.Channel == "C1")) {
			t.Errorf("%+v becomes %+v (%v), want %q", command, p, ok, want)
		}
	}
	for in, want := range map[string]string{"<@U1>": "@U1", "<@U1|ada>": "@ada", "<!here>": "@here", "<#C1|room>": "#room", "<#C1>": "#C1",
		"<https://x|site>":      "site (https://x)",
		"<https://x|https://x>": "https://x", "<mailto:a@b|a@b>": "a@b (mailto:a@b)", "a &lt;b&gt; &amp; c": "a <b> & c", "<@>": "@"} {
		if got := plain(in); got != want {
			t.Errorf("%q is read as %q, want %q", in, got, want)
		}
	}
}
