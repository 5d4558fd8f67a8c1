//go:build !race

package browser

import "testing"

// Arguments of a call are shown with all digits, as events bring them and as the history has them.
func TestLargeNumbersInArguments(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, `
rules:
  - { contains: "look", round: 1, reply: [ { calls: [
    { name: read, rawArguments: '{"path":"notes.txt","offset":9007199254740993}' } ] } ] }
  - { reply: [ { text: "Noted." } ] }
`, "")
	w.write("notes.txt", "milk\n")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/agents/0")
	p.wait("document.querySelector('main textarea')", "the agent is shown")

	shown := func(when string) {
		t.Helper()
		p.wait(`(() => {
			const call = document.querySelector("main details.tool");
			if (call) call.open = true;
			return call?.querySelector("pre")?.innerText.includes("offset: 9007199254740993");
		})()`, when+", all digits are shown")
	}
	w.say(agent, "please look")
	w.state(agent, "idle")
	shown("of an event")
	p.goTo("/")
	p.goTo("/agents/0")
	shown("of the history")
}
