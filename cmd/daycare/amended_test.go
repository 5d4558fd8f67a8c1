package main

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// amended has a user say four things while the agent is busy with the first, edit the second
// and delete the third. The agent answers what it then finds,
// perhaps in one turn.
func amended(t *testing.T, d *process, say func(word string), edit, remove func(), heard func() string) {
	t.Helper()
	write(t, filepath.Join(d.workspace, "script.yaml"), `rules: [ { reply: [ { delay: 3s, text: "heard {{.Text}}" } ] } ]`)
	d.start()
	defer d.kill()
	say("one")
	waitFor(t, "the first turn", func() bool { return strings.Contains(read(t, d, "history.jsonl"), "one") })
	for _, word := range []string{"two", "three", "four"} {
		say(word)
	}
	waitFor(t, "the queue", func() bool { return strings.Contains(read(t, d, "inbox.jsonl"), `"four"`) })
	edit()
	remove()
	waitFor(t, "the edit and the deletion", func() bool {
		box := read(t, d, "inbox.jsonl")
		return strings.Contains(box, `"edited":true`) && strings.Contains(box, `"type":"dropped"`)
	})
	waitFor(t, "the last answer", func() bool { return strings.Contains(heard(), "four") })
	said := heard()
	for word, n := range map[string]int{"heard one": 1, "zwei": 1, "four": 1, "two": 0, "three": 0} {
		if got := strings.Count(said, word); got != n {
			t.Errorf("%q was said %d times, want %d:\n%s", word, got, n, said)
		}
	}
}

// Over a real prosody, which is killed and comes back in the end.
func TestAmendedOverXMPP(t *testing.T) {
	t.Parallel()
	p := newProsody(t)
	ada := newXMPPPerson(t, p, "ada")
	d := &process{t: t, workspace: t.TempDir(), env: []string{"XMPP_PASSWORD=of the bot", "SSL_CERT_FILE=" + p.cert()}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), p.settings("queue: followup"))
	amended(t, d, func(word string) {
		ada.send("<presence to='bot@localhost' type='subscribe'/>")
		ada.until("from='bot@localhost/daycare'")
		ada.say("bot@localhost", "chat", word, word)
	}, func() {
		ada.say("bot@localhost", "chat", "edit", "zwei", "<replace xmlns='urn:xmpp:message-correct:0' id='two'/>")
	}, func() {
		ada.say("bot@localhost", "chat", "delete", "gone", "<retract xmlns='urn:xmpp:message-retract:1' id='three'/>")
	}, ada.bodies)

	d.start()
	defer d.kill()
	p.kill()
	p.start()
	again := newXMPPPerson(t, p, "ada")
	again.say("bot@localhost", "chat", "five", "five") // daycare may not be back yet
	waitFor(t, "the answer after the server was killed", func() bool { return strings.Contains(again.bodies(), "heard five") })
}

func TestAmendedOverMatrix(t *testing.T) {
	t.Parallel()
	server := newDendrite(t)
	bot, ada := server.person("daybot"), server.person("ada")
	room := ada.room(bot.id)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"MATRIX_TOKEN=" + bot.token}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), server.settings(ada.id, "queue: followup"))
	ids := map[string]string{}
	amended(t, d, func(word string) {
		waitFor(t, "the bot in the room", func() bool { return strings.Contains(ada.members(room), bot.id) })
		ids[word] = ada.say(room, word, map[string]any{"msgtype": "m.text", "body": word})
	}, func() {
		text := map[string]any{"msgtype": "m.text", "body": "zwei"}
		ada.say(room, "edit", map[string]any{"msgtype": "m.text", "body": "* zwei", "m.new_content": text,
			"m.relates_to": map[string]any{"rel_type": "m.replace", "event_id": ids["two"]}})
	}, func() {
		ada.call(http.MethodPut, "/rooms/"+url.PathEscape(room)+"/redact/"+url.PathEscape(ids["three"])+"/delete", map[string]any{}, nil)
	}, func() string { return ada.heard(room) })
}

// settings are those of a workspace that talks to the server.
func (d *dendrite) settings(allow, more string) string {
	return fmt.Sprintf(`
providers: [ { id: echo, type: scripted, options: { script: script.yaml } } ]
connectors:
  - { id: matrix, type: matrix, homeserver: %q, tokenEnv: MATRIX_TOKEN, allow: [%q], %s }
`, d.base, allow, more)
}
