//go:build !race

package browser

import (
	"strings"
	"testing"
)

// hold puts the focus on the element that an expression gives, and remembers it.
func (p *tab) hold(expression string) {
	p.t.Helper()
	p.wait("(window.held = "+expression+") && (held.focus(), document.activeElement === held)", "the focus is on "+expression)
}

// holds checks that the remembered element still has the focus, after the page has changed.
func (p *tab) holds(view string) {
	p.t.Helper()
	if !eval[bool](p, "held.isConnected && document.activeElement === held") {
		p.t.Errorf("%s: the focus is lost: it is on %q", view, eval[where](p, focusScript).Name)
	}
}

// What changes on a page leaves the focus where it is, and the element that has it the same: so that Tab and Enter
// go on from there, and a click that has begun arrives.
func TestRedrawsKeepTheFocus(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, keyboardScript, "")
	w.task("queue-watch", "Queue watch", "17 4 29 2 *", "Summarise the queue.", nil, 60)
	w.start()
	first, second := w.agent("first"), w.agent("second")
	p := w.visit("/")

	p.hold("[...document.querySelectorAll('main .who a')].find(a => a.innerText === 'second')")
	w.say(second, "hello second")
	p.sees("Noted: hello second")
	w.say(first, "hello first")
	p.sees("Noted: hello first")
	p.wait("[...document.querySelectorAll('main .group h2')].map(e => e.innerText).join() === 'New for you'", "both are in another group")
	p.holds("Home")

	p.goTo("/files/settings.yaml")
	p.hold("document.querySelector('main nav.tree summary')")
	p.press("Enter")
	p.wait("held.parentNode.open", "the files of the agent are listed")
	w.agent("third")
	p.wait("document.querySelector('main nav.tree').innerText.includes('third')", "the new agent is listed")
	p.holds("Files")
	p.press("Tab")
	if at := eval[where](p, focusScript).Name; at != "a descriptor.json" {
		t.Errorf("Tab leads from an agent to %q, want its first file", at)
	}

	p.goTo("/approvals")
	w.say(first, "please ask")
	p.hold("document.querySelector('main a.request')")
	w.say(second, "please ask")
	p.sees("2 to answer")
	p.holds("Approvals")

	p.goTo("/clocks")
	p.hold("document.querySelector('main [data-key=run-queue-watch]')")
	p.press("Enter")
	p.wait("document.querySelector('main tbody')?.innerText.includes('ran')", "the run is in the ledger")
	p.holds("Clocks")
}

// While an agent works, what is written to it changes around the button that has the focus.
func TestInboxKeepsTheFocus(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, keyboardScript, "")
	w.start()
	agent := w.agent("worker")
	w.say(agent, "take very long")
	w.state(agent, "thinking")
	p := w.visit("/agents/0")
	for _, text := range []string{"first", "second"} {
		w.api("POST", "/v1/agents/"+agent+"/messages", map[string]any{"text": text, "queue": "followup"}, nil)
	}
	p.hold("[...document.querySelectorAll('main aside .item')].find(e => e.innerText.includes('second'))" +
		"?.querySelector('[aria-label=Drop]')")
	w.api("POST", "/v1/agents/"+agent+"/messages", map[string]any{"text": "third", "queue": "followup"}, nil)
	p.wait("document.querySelector('main aside').innerText.includes('third')", "the third message waits")
	p.holds("the inbox")
	p.press("Enter")
	w.waits(agent, "first", "third")
	p.wait("document.activeElement.ariaLabel === 'Move to the front'", "what is left has the focus")
}

// A field of the settings that is left by Tab leads to the next one, though the form is drawn anew.
func TestTabLeavesAChangedField(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	p := w.visit("/settings")
	p.wait("document.getElementById('set-agents-maxSpawned')", "the form is shown")
	next := eval[string](p, `(() => {
		const fields = [...document.querySelectorAll("main details[open] :is(input, select, textarea, button)")].filter(e => !e.disabled);
		return fields[fields.findIndex(e => e.id === "set-agents-maxSpawned") + 1].id;
	})()`)
	p.hold("document.getElementById('set-agents-maxSpawned')")
	p.types("7")
	p.press("Tab")
	p.wait("document.querySelector('main .edit textarea').value.includes('maxSpawned: 7')", "the text has the change")
	if at := eval[string](p, "document.activeElement.id"); at != next {
		t.Errorf("Tab leads to %q, want %q", at, next)
	}
}

// What is typed into the first field of a workspace stays, though an agent comes from elsewhere; and what is chosen in
// the palette has the focus, not what had it before.
func TestFocusGoesWhereItIsLed(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	p := w.visit("/")
	p.sees("No agents yet")
	p.hold("document.querySelector('main textarea')")
	p.types("a message that is not sent yet")
	w.agent("from elsewhere")
	p.wait("document.querySelector('#agents').innerText.includes('from elsewhere')", "the agent is listed")
	p.holds("the first message")
	p.press("Enter")
	p.find("textbox", "Message to 1/ message that is not")
	p.sees("Noted.")

	p.hold("document.querySelector('#nav a')")
	p.press("Control+k")
	p.find("dialog", "Find or do")
	p.types("elsewhere")
	p.wait("document.querySelector('dialog[open] [aria-selected=true]')?.innerText.includes('elsewhere')", "the agent is found")
	p.press("Enter")
	p.find("textbox", "Message to 0/ from elsewhere")
	p.wait("!document.querySelector('dialog')", "the palette is gone")
	if at := eval[string](p, "document.activeElement.id"); at != "main" {
		t.Errorf("the focus is on %q, want the view", at)
	}
	if strings.Contains(p.text(), "a message that is not sent yet") {
		t.Error("the first message went to another agent")
	}
}

// A card of a running tool is the same element when its record comes, so that it stays open and in focus.
func TestCardStaysInFocus(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, `
rules:
  - { contains: "run it", round: 1, reply: [ { calls: [ { name: exec,
      arguments: { command: "while [ ! -e go ]; do sleep 0.1; done; echo went" } } ] } ] }
  - { tool_result: exec, reply: [ { text: "It ran." } ] }
`, "")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/agents/0")
	p.sees("No messages yet")
	w.say(agent, "run it")
	p.hold("document.querySelector('main .tool summary')")
	p.press("Enter")
	p.wait("held.parentNode.open", "the card is open")
	w.write("go", "")
	p.sees("It ran.")
	p.sees("went")
	p.holds("the card")
	if !eval[bool](p, "held.parentNode.open") {
		t.Error("the card is closed")
	}
}
