//go:build !race

package browser

import (
	"strings"
	"testing"
)

// The daemon dies in the middle of an answer. What was typed stays, is sent once when the
// daemon is back, and the page is back by itself, with no word and no message twice.
func TestDaemonDies(t *testing.T) {
	t.Parallel()
	const answer = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen."
	w := newWorkspace(t, `
each: true
rules:
  - { contains: "count", reply: [ { text: "`+answer+`", chunk: 4, every: 150ms } ] }
  - { reply: [ { text: "Noted: {{.Text}}" } ] }
`, "")
	w.start()
	agent := w.agent("worker")
	p := w.visit()
	p.expect("ERR_|Failed to load|network error|404|409|503")
	p.goTo("/agents/0")
	eval[bool](p, "window.stays = true")
	p.write("worker", "please count")
	p.sees("three four")
	p.fill("textbox", "Message to 0/ worker", "typed while it")
	w.kill()
	p.sees("daycare does not answer")
	p.looks("gone")
	p.focus("textbox", "Message to 0/ worker")
	p.press("End")
	p.types(" was gone")
	p.press("Enter")
	p.wait("document.querySelector('main textarea').value === 'typed while it was gone'", "what was typed stays")

	w.start()
	p.seesNot("daycare does not answer")
	p.sees(answer)
	if text := eval[string](p, "document.querySelector('main textarea').value"); text != "" {
		p.focus("textbox", "Message to 0/ worker")
		p.press("Enter")
	}
	p.sees("Noted: typed while it was gone")
	if !eval[bool](p, "window.stays === true") {
		t.Error("the page was loaded anew")
	}
	w.state(agent, "idle")
	history := w.history(agent)
	if n := strings.Count(history, `"text":"typed while it was gone"`); n != 1 {
		t.Errorf("the message is %d times in the history, want once", n)
	}
	for _, text := range []string{answer, "please count", "Noted: typed while it was gone"} {
		if n := strings.Count(p.transcript(), text); n != 1 {
			t.Errorf("the page shows %q %d times, want once:\n%s", text, n, p.transcript())
		}
	}
}

// transcript is the text of the conversation.
func (p *tab) transcript() string {
	p.t.Helper()
	return eval[string](p, "document.querySelector('main .log').innerText")
}
