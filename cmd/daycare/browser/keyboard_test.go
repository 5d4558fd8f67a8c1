//go:build !race

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// keyboardScript has an agent that talks, one that asks, and one that takes very long.
const keyboardScript = `
rules:
  - { contains: "please ask", round: 1, reply: [ { calls: [ { name: request_permission,
      arguments: { permission: "@exec:git push", reason: "the branch is ready" } } ] } ] }
  - { contains: "take very long", reply: [ { delay: 10m, text: "Done." } ] }
  - { reply: [ { text: "Noted: {{.Text}}" } ] }
`

// tabTo presses Tab until an element with this name has the focus, as someone does who has no mouse.
func (p *tab) tabTo(name string) {
	p.t.Helper()
	var seen []string
	for range 200 {
		p.press("Tab")
		at := eval[where](p, focusScript).Name
		if strings.Contains(at, name) {
			return
		}
		seen = append(seen, at)
	}
	p.t.Fatalf("Tab does not lead to %q; it leads to:\n%s", name, strings.Join(seen, "\n"))
}

// writes sends a message to the agent that is shown. The letter that leads to the field is typed into it, too: the
// protocol sends what a key types apart from the key.
func (p *tab) writes(text string) {
	p.t.Helper()
	p.press("m", "Control+a")
	p.types(text)
	p.press("Enter")
	p.wait("document.activeElement.value.trim() === ''", "the message "+text+" is accepted")
	p.press("Escape")
}

// Everything is done by keys alone: an agent is made and talked to, a request answered, a file edited, a task run, a
// setting looked at, an agent stopped; and every view can be reached and left.
func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, keyboardScript, "")
	w.task("queue-watch", "Queue watch", "17 4 29 2 *", "Summarise the queue.", nil, 60)
	w.start()
	p := w.visit("/")
	eval[bool](p, "(window.mice = 0, addEventListener('pointerdown', () => window.mice++, true), true)")
	p.sees("No agents yet")

	t.Log("a first message makes an agent, and a second one is answered")
	p.tabTo("Message to your agent")
	p.types("hello")
	p.press("Enter")
	p.find("textbox", "Message to 0/ hello")
	p.sees("Noted: hello")
	p.writes("and again")
	p.sees("Noted: and again")

	t.Log("another agent is made, and asks")
	p.press("n")
	p.find("dialog", "New agent")
	p.press("Control+a")
	p.types("asker")
	p.press("Enter")
	p.find("textbox", "Message to 1/ asker")
	p.writes("please ask")
	p.wait("document.title.startsWith('(1)')", "the request is counted")
	p.press("y")
	p.wait("location.pathname.startsWith('/approvals/')", "the request is shown")
	p.wait("document.querySelector('main [data-decision=once][aria-disabled=false]')", "the request can be answered")
	p.press("o")
	p.sees("Allowed once")
	w.until("it is answered", func() bool { return w.openAsks() == 0 })

	t.Log("a file is edited")
	p.jump("f", "/files")
	p.wait("document.querySelector('main nav.tree summary')", "the files are listed")
	p.tabTo("summary 0/")
	p.press("Enter")
	p.tabTo("state.json")
	p.press("Enter")
	p.wait("document.querySelector('main .edit textarea')?.value.includes('permissions')", "the file is open")
	p.tabTo("Text of state.json")
	p.do("go to the value", chromedp.Evaluate[chromedp.Void](`(() => {
		const field = document.activeElement, at = field.value.indexOf('"web": false') + 7;
		field.setSelectionRange(at, at + 5);
	})()`))
	p.types("true")
	p.press("Control+s")
	p.told("state.json is published")
	p.press("Escape")

	t.Log("a task runs")
	p.jump("c", "/clocks")
	p.tabTo("Run Queue watch")
	p.press("Enter")
	w.until("it ran", func() bool {
		var ledger struct{ Runs []struct{ Outcome string } }
		w.api("GET", "/v1/cron/queue-watch/runs", nil, &ledger)
		return len(ledger.Runs) == 1 && ledger.Runs[0].Outcome == "ran"
	})

	t.Log("every page has its letter")
	for _, jump := range [][2]string{{"h", "/"}, {"a", "/approvals"}, {"o", "/costs"}, {"e", "/health"}, {"s", "/settings"},
		{"k", "/skills"}, {"t", "/tools"}, {"r", "/trash"}} {
		p.jump(jump[0], jump[1])
	}

	t.Log("the palette leads to an agent, which is stopped")
	w.agent("slow")
	p.wait("document.querySelector('#agents').innerText.includes('slow')", "the new agent is listed")
	p.press("Control+k")
	p.find("dialog", "Find or do")
	p.types("slow")
	p.wait("document.querySelector('dialog[open] [aria-selected=true]')?.innerText.includes('slow')", "the agent is found")
	p.press("Enter")
	p.find("textbox", "Message to 3/ slow")
	p.writes("take very long")
	p.find("button", "Stop")
	p.press("x")
	p.told("Stopped")
	id := eval[string](p, "fetch('/v1/agents').then(r => r.json()).then(l => l.agents.find(a => a.name.includes('slow')).id)")
	w.state(id, "idle")

	if mice := eval[int](p, "window.mice"); mice != 0 {
		t.Errorf("the mouse was used %d times", mice)
	}
	p.press("?")
	p.find("dialog", "Keys")
	p.press("Escape")
	p.wait("!document.querySelector('dialog[open]')", "the keys are closed")
	if n := eval[int](p, "performance.getEntriesByType('navigation').length"); n != 1 {
		t.Errorf("the page was loaded %d times", n)
	}
}
