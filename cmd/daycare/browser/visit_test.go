//go:build !race

package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
)

const talkScript = `
rules:
  - { contains: "what is in", round: 1, reply: [ { calls: [ { name: read, arguments: { path: "notes.txt" } } ] } ] }
  - { tool_result: read, reply: [ { text: "It says: milk and bread. That is everything that the file has.", chunk: 4, every: 250ms } ] }
  - { contains: "take your time", round: 1, reply: [ { calls: [ { name: read, arguments: { path: "notes.txt" } } ], delay: 5s } ] }
  - { reply: [ { text: "Noted." } ] }
`

// A first visit: the address works once, the page is empty, and the first message makes an
// agent whose answer streams in and is the same after a reload and on disk.
func TestFirstVisit(t *testing.T) {
	t.Parallel()
	slow := strings.Replace(talkScript, "250ms", "600ms", 1) // a busy machine needs some seconds to show the agent
	w := newWorkspace(t, slow, "")
	w.write("notes.txt", "milk and bread\n")
	w.start()
	address := w.address()
	p := newTab(t)
	p.origin = address.Scheme + "://" + address.Host
	p.onNew(`addEventListener("DOMContentLoaded", () => {
		window.texts = [];
		new MutationObserver(() => {
			const said = [...document.querySelectorAll("main .said")].at(-1);
			if (said && texts.at(-1) !== said.textContent) texts.push(said.textContent);
		}).observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true });
	})`)
	p.open(address.String())
	p.sees("No agents yet")
	if at := eval[string](p, "location.href"); strings.Contains(at, "token") {
		t.Errorf("the token is still in the address: %s", at)
	}
	if kept := eval[string](p, "document.cookie + JSON.stringify(localStorage)"); strings.Contains(kept, "daycare_session") {
		t.Errorf("a script can read the session: %s", kept)
	}
	cookies := call(p, network.GetCookies, network.GetCookiesParams{}).Cookies
	if len(cookies) != 1 || !cookies[0].HTTPOnly || cookies[0].SameSite != network.CookieSameSiteStrict || cookies[0].Path != "/" {
		t.Errorf("the session is not one HttpOnly, SameSite=Strict cookie: %+v", cookies)
	}

	p.fill("textbox", "Message to your agent", "what is in notes.txt?")
	p.press("Enter")
	const answer = "It says: milk and bread. That is everything that the file has."
	p.sees(answer)
	p.find("region", "Transcript of …")
	w.until("the answer is recorded", func() bool { return strings.Contains(w.history(w.only()), answer) })
	part := func(text string) bool {
		return text != "" && len(text) < len(answer) && strings.HasPrefix(answer, text)
	}
	if texts := eval[[]string](p, "texts"); !slices.ContainsFunc(texts, part) { // on a busy machine few frames are drawn
		t.Errorf("no part of the answer was shown before its end: %q", texts)
	}
	if url := eval[string](p, "location.pathname"); url != "/agents/0" {
		t.Errorf("the agent's page is %s, want /agents/0", url)
	}
	p.goTo("/agents/0")
	p.sees(answer)
	p.sees("notes.txt")

	other := newTab(t)
	other.origin = p.origin
	other.expect("401")
	other.open(address.String())
	other.sees("Sign in")
	other.seesNot("milk and bread")
	other.looks("sign in")
}

// only is the id of the only agent.
func (w *workspace) only() string {
	w.t.Helper()
	var list struct{ Agents []struct{ ID string } }
	w.api("GET", "/v1/agents", nil, &list)
	if len(list.Agents) != 1 {
		w.t.Fatalf("there are %d agents, want 1", len(list.Agents))
	}
	return list.Agents[0].ID
}

// inbox is the texts that wait for an agent, in order.
func (w *workspace) inbox(agent string) (texts []string) {
	w.t.Helper()
	var list struct {
		Items []struct{ Text, State string }
	}
	w.api("GET", "/v1/agents/"+agent+"/inbox", nil, &list)
	for _, i := range list.Items {
		if i.State == "waiting" {
			texts = append(texts, i.Text)
		}
	}
	return texts
}

// What is written while the agent works is queued, moved, dropped and taken back, and the
// inbox agrees at each step.
func TestWrittenWhileItWorks(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, `
rules:
  - { contains: "take your time", round: 1, reply: [ { delay: 10m, text: "Done." } ] }
  - { reply: [ { text: "Noted." } ] }
`, "")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/agents/0")
	p.write("worker", "take your time")
	w.state(agent, "thinking")
	p.find("button", "Steer")
	p.click("button", "When it is done")
	for _, text := range []string{"first", "second", "third"} {
		p.write("worker", text)
	}
	w.waits(agent, "first", "second", "third")
	p.wait("document.querySelector('main aside').innerText.includes('third')", "the third message is shown, and moves no button any more")

	p.click("button", "Take back")
	w.waits(agent, "first", "second")
	p.wait("document.querySelector('main textarea').value === 'third'", "the text is in the field again")
	p.fill("textbox", "Message to 0/ worker", "")
	p.clickIn("second", "Move to the front")
	w.waits(agent, "second", "first")
	p.clickIn("second", "Drop")
	w.waits(agent, "first")
	p.click("button", "Undo")
	w.waits(agent, "first", "second")

	// Of what is more than its text, the page does not make another message.
	for text, more := range map[string]map[string]any{
		"with a file":  {"files": []map[string]string{{"name": "list.txt", "data": "bWlsaw=="}}},
		"from outside": {"untrusted": true},
	} {
		more["text"], more["queue"] = text, "followup"
		w.api("POST", "/v1/agents/"+agent+"/messages", more, nil)
		p.sees("3 wait, read when it is done: " + text)
		if list, err := p.controls("button", "Take back"); err != nil || len(list) > 0 {
			t.Errorf("%s: the page offers to take back its text: %v", text, err)
		}
		p.clickIn(text, "Drop")
		p.click("button", "Drop")
		w.waits(agent, "first", "second")
		p.sees("Dropped")
		if list, err := p.controls("button", "Undo"); err != nil || len(list) > 0 {
			t.Errorf("%s: the page offers to post its text again: %v", text, err)
		}
	}

	p.click("button", "Stop")
	w.until("the turn has ended", func() bool { return strings.Contains(w.history(agent), `"reason":"canceled"`) })
	w.until("the queue is worked off", func() bool { return strings.Count(w.history(agent), "Noted.") >= 1 })
	w.state(agent, "idle")
	for _, text := range []string{"first", "second"} {
		if n := strings.Count(w.history(agent), `"text":"`+text+`"`); n != 1 {
			t.Errorf("%q is %d times in the history, want once", text, n)
		}
	}
}

// What is typed is kept until the page is loaded anew, however soon. What another tab keeps stays when this one, in which
// nothing was typed since, is left or hidden.
func TestDraftsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/agents/0")
	p.find("textbox", "Message to 0/ worker")
	eval[bool](p, `(() => {
		const field = document.querySelector("main textarea");
		field.value = "typed in haste";
		field.dispatchEvent(new InputEvent("input", { bubbles: true }));
		location.reload();
		return true;
	})()`)
	p.wait("document.querySelector('main textarea')?.value === 'typed in haste'", "the field has what was typed")

	eval[bool](p, "localStorage.setItem('daycare.draft."+agent+"', JSON.stringify({ text: 'of another tab' })) ?? true")
	p.press("Escape")
	p.jump("h", "/")
	p.goTo("/agents/0")
	p.wait("document.querySelector('main textarea')?.value === 'of another tab'", "the field has what the other tab kept")
}

// The time of a message that the page shows has its date as soon as that is not today any more.
func TestMidnight(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	w.say(w.agent("worker"), "of today")
	p := w.visit("/agents/0", `
		window.later = 0;
		const now = Date.now;
		Date = class extends Date {
			constructor(...given) { super(...(given.length ? given : [now() + later])); }
			static now() { return now() + later; }
		};`)
	p.sees("Noted.")
	const shown = "document.querySelector('main .you time').innerText"
	p.wait(shown, "the message has a time")
	eval[bool](p, "(later = 86400000, document.dispatchEvent(new Event('visibilitychange')))")
	p.wait("/[A-Za-z].*[0-9:]{5}$/.test("+shown+")", "the message has its date")
}

// write sends a message from the page, and returns when it is accepted.
func (p *tab) write(agent, text string) {
	p.t.Helper()
	p.fill("textbox", "Message to 0/ "+agent, text)
	p.press("Enter")
	p.wait("document.querySelector('main textarea').value.trim() === ''", "the message "+text+" is accepted")
}

// waits checks what waits in an inbox.
func (w *workspace) waits(agent string, want ...string) {
	w.t.Helper()
	var got []string
	w.until("the inbox is "+strings.Join(want, ", "), func() bool {
		got = w.inbox(agent)
		return strings.Join(got, "|") == strings.Join(want, "|")
	})
}

// clickIn clicks a button of the item of the inbox that has a text.
func (p *tab) clickIn(text, button string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('main aside li, main aside .item')].find(e => e.innerText.includes(%s))"+
		"?.querySelector('button[aria-label=%s]')", quote(text), quote(button))
	p.wait(find, "the item "+text+" has a button "+button)
	eval[bool](p, "("+find+".click(), true)")
}
