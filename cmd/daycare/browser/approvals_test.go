//go:build !race

package browser

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// askScript has an agent ask for something with characters that nobody sees.
const askScript = `
rules:
  - { contains: "ask", round: 1, reply: [ { calls: [ { name: request_permission,
      arguments: { permission: "@write:/etc/no\u200b\u202ething", reason: "it is needed" } } ] } ] }
  - { contains: "ask", reply: [ { text: "I asked." } ] }
  - { after: permission, reply: [ { text: "I have the answer." } ] }
  - { reply: [ { text: "Noted." } ] }
`

// asks has an agent ask, and returns the token of its request.
func (w *workspace) asks(agent string) (token string) {
	w.t.Helper()
	w.say(agent, "please ask")
	w.until("the request waits", func() bool {
		var open struct {
			Permissions []struct{ Token, AgentID string }
		}
		w.api("GET", "/v1/permissions", nil, &open)
		for _, a := range open.Permissions {
			if a.AgentID == agent {
				token = a.Token
			}
		}
		return token != ""
	})
	return token
}

// A request appears in every page and in the terminal. Keys and clicks within 400 ms, in a
// field, or of a page that nobody reads answer nothing; the first answer wins, and the others
// show who was first.
func TestApproval(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, askScript, "")
	w.start()
	agent := w.agent("worker")
	first, second := w.visit("/"), w.visit("/approvals")
	second.expect("409")
	token := w.asks(agent)
	first.find("link", "Review what 0/ worker asks")
	first.wait("document.title.startsWith('(1)')", "the title counts the request")
	second.sees("1 to answer")

	// Nothing opens a request but choosing it, so no key answers one.
	second.press("o", "a", "d")
	if open := w.openAsks(); open != 1 {
		t.Fatalf("keys have answered a request that was not open: %d wait", open)
	}

	first.click("link", "Review what 0/ worker asks")
	first.wait("location.pathname === '/approvals/"+token+"'", "the request has its address")
	first.sees("U+200B")
	first.sees("U+202E")
	first.sees("2 characters that cannot be seen")
	first.looks("approval")

	// The moment it is shown is too early. The page is told to note when it answers.
	second.onNew(`
		const send = fetch;
		window.answeredAfter = null;
		window.fetch = (path, options) => {
			if (options?.method === "POST" && path.includes("/permissions/")) answeredAfter = performance.now() - shownAt;
			return send(path, options);
		};
		addEventListener("DOMContentLoaded", () => new MutationObserver((_, o) => {
			if (document.querySelector("main .asked") && !window.shownAt) { window.shownAt = performance.now(); o.disconnect(); }
		}).observe(document.body, { childList: true, subtree: true }));`)
	second.goTo("/approvals/" + token)
	for deadline := time.Now().Add(patience); w.openAsks() > 0 && time.Now().Before(deadline); {
		second.press("o")
		second.drawn()
	}
	if after := eval[float64](second, "answeredAfter ?? 0"); after < 400 {
		t.Errorf("the request was answered %v ms after it was shown, want at least 400", after)
	}
	first.sees("Allowed once by web:")
	first.press("d")
	w.state(agent, "idle")

	history := w.history(agent)
	if n := strings.Count(history, `"event":"once"`); n != 1 {
		t.Errorf("the request was answered %d times, want once", n)
	}
	if strings.Contains(history, `"event":"deny"`) {
		t.Error("it was answered a second time")
	}
	if !strings.Contains(history, `"by":"web:`) {
		t.Error("the answer does not say that it came from the page")
	}
	if status, answer := w.try("POST", "/v1/permissions/"+token, map[string]string{"decision": "deny"}); status != 409 {
		t.Errorf("a second answer from the terminal: %d %s, want 409", status, answer)
	}

	// Its address shows it, and who answered, also when the page is loaded anew.
	first.goTo("/approvals/" + token)
	first.sees("Allowed once by ")
	first.sees("2 characters that cannot be seen")
}

func (w *workspace) openAsks() int {
	w.t.Helper()
	var open struct{ Permissions []json.RawMessage }
	w.api("GET", "/v1/permissions", nil, &open)
	return len(open.Permissions)
}

// While the focus is in a text field, letters are letters.
func TestLettersInFields(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, askScript, "")
	w.start()
	token := w.asks(w.agent("worker"))
	p := w.visit("/approvals/" + token)
	p.wait("document.querySelector('main [data-decision=once][aria-disabled=false]')", "the request can be answered")
	p.press("Control+k")
	p.find("dialog", "Find or do")
	p.press("o", "a", "d")
	p.press("Escape")
	p.click("button", "Find or do")
	p.press("d")
	p.press("Escape")
	if w.openAsks() != 1 {
		t.Fatal("letters that were typed into a field have answered the request")
	}
	p.wait("!document.querySelector('dialog[open]')", "the palette is closed")
	p.focus("region", "The whole request")
	p.press("d")
	w.until("it is answered", func() bool { return w.openAsks() == 0 })
	p.sees("Denied")
}
