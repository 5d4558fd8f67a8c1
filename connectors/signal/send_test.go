package signal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

func TestSend(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}

	out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{Connector: "signal", ChannelID: ada},
		ReplyTo: ada + "/99", Text: "😀 **b**",
		Files: []message.File{{Name: "a;b.csv", MimeType: "text/csv", Path: path}}}
	id, err := c.Send(t.Context(), out)
	if err != nil || id != "1234" {
		t.Fatalf("Send = %q, %v", id, err)
	}

	k, _ := d.called("send")
	want := map[string]any{"account": account, "recipient": ada, "message": "😀 b", "textStyle": []any{"3:1:BOLD"},
		"quoteAuthor": ada, "quoteTimestamp": float64(99), "attachments": []any{"data:text/csv;filename=a_b.csv;base64,MSwy"}}
	if diff := cmp.Diff(want, k.Params); diff != "" {
		t.Errorf("send (-want +got):\n%s", diff)
	}

	// Only the first part quotes what it answers, and only a message that can be named.
	for _, quoted := range []message.Outgoing{{ReplyTo: ada + "/99", Part: 1}, {ReplyTo: "/99"}, {ReplyTo: ada + "/x"}, {ReplyTo: "99"}} {
		quoted.To, quoted.Text = message.Address{ChannelID: "group:abc="}, "plain"
		if _, err := c.Send(t.Context(), quoted); err != nil {
			t.Fatal(err)
		}
		k, _ := d.called("send")
		if diff := cmp.Diff(map[string]any{"account": account, "groupId": "abc=", "message": "plain"}, k.Params); diff != "" {
			t.Errorf("an answer to %q (-want +got):\n%s", quoted.ReplyTo, diff)
		}
	}

	_, before := d.called("send")
	out.Files[0].Path += "gone"
	var no *message.NotSent
	if _, err := c.Send(t.Context(), out); !errors.As(err, &no) || !no.Final {
		t.Errorf("a file that is gone: %v, want that trying again is no use", err)
	}
	if id, err := c.Send(t.Context(), message.Outgoing{To: out.To, Text: "\n"}); id != "" || err != nil {
		t.Errorf("an answer that shows nothing: %q, %v", id, err)
	}
	if _, n := d.called("send"); n != before {
		t.Errorf("%d messages were sent of nothing", n-before)
	}
}

// Whether an answer is tried again follows from what the daemon says of it, or of its
// recipients: an answer that one of them has is not.
func TestWhatTheDaemonRefuses(t *testing.T) {
	const network, gone = `{"type":"NETWORK_FAILURE"}`, `{"type":"UNREGISTERED_FAILURE"}`
	failed := func(code int, text, results string) string {
		return fmt.Sprintf(`"error":{"code":%d,"message":%q,"data":{"response":{"results":[%s]}}}`, code, text, results)
	}
	for _, tt := range []struct {
		says string
		want string // "": it was sent; final, later, after 9s
	}{
		{`"result":{"timestamp":7}`, ""},
		{`"result":{"results":[` + network + `,{"type":"SUCCESS"}]}`, ""},
		{`"result":{"results":[` + network + `]}`, "later"},
		{`"result":{"results":[` + gone + `]}`, "final"},
		{`"result":{"results":[{"type":"RATE_LIMIT_FAILURE","retryAfterSeconds":9}]}`, "after 9s"},
		{failed(-5, "slow down", `{"type":"RATE_LIMIT_FAILURE","retryAfterSeconds":9}`), "after 9s"},
		{failed(-5, "slow down", ""), "after 0s"},
		{failed(-1, "no such group", ""), "final"},
		{failed(-1, "Network is down", ""), "later"},
		{failed(-1, "failed", network), "later"},
		{failed(-3, "failed", gone), "final"},
		{failed(-3, "failed", ""), "later"},
		{`"error":{"code":-1,"message":"x","data":"y"}`, "final"},
		{"502", "later"},
	} {
		d := newDaemon(t)
		d.says["send"] = tt.says
		c := testConnector(t, d, chat.Host{}, slog.New(slog.DiscardHandler))
		_, err := c.Send(t.Context(), message.Outgoing{To: message.Address{ChannelID: ada}, Text: "x"})
		got := "later"
		var no *message.NotSent
		switch {
		case err == nil:
			got = ""
		case errors.As(err, &no) && no.Final:
			got = "final"
		case no != nil:
			got = "after " + no.After.String()
		}
		if got != tt.want {
			t.Errorf("%s: %q (%v), want %q", tt.says, got, err, tt.want)
		}
		if err := c.Say(t.Context(), message.Address{ChannelID: ada}, "", "x"); (err != nil) != (tt.want != "") {
			t.Errorf("%s: Say = %v", tt.says, err)
		}
	}
}

func TestReact(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	for channel, member := range map[string]string{ada: "recipient", "group:abc=": "groupId"} {
		if err := c.React(t.Context(), message.Address{ChannelID: channel}, ada+"/99", "👍"); err != nil {
			t.Fatal(err)
		}
		k, _ := d.called("sendReaction")
		want := map[string]any{"account": account, member: strings.TrimPrefix(channel, "group:"), "emoji": "👍",
			"targetAuthor": ada, "targetTimestamp": float64(99)}
		if diff := cmp.Diff(want, k.Params); diff != "" {
			t.Errorf("sendReaction (-want +got):\n%s", diff)
		}
	}

	if err := c.React(t.Context(), message.Address{ChannelID: ada}, "99", "👍"); err == nil ||
		!strings.Contains(err.Error(), "not a Signal message id") {
		t.Errorf("a number alone: %v", err)
	}
}

// A note to itself is all that an account can send itself.
func TestLoop(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{}, slog.New(slog.DiscardHandler))
	verdict, err := c.Loop(t.Context())
	last, n := d.called("send")
	if err != nil || !strings.Contains(verdict, account) || n != 1 || last.Params["noteToSelf"] != true {
		t.Errorf("Loop = %q, %v, with %+v", verdict, err, last)
	}
	d.misbehave(connectortest.Broken)
	if _, err := c.Loop(t.Context()); err == nil {
		t.Error("Loop over a daemon that fails is no error")
	}
}
