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
	p := newTab(t)
	p.expect("ERR_|Failed to load|network error|404|409|503")
	p.login(w, "/agents/0")
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

// Events that were lost are made good: the server says that there is a gap, and the page reads again what it shows.
func TestGap(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "rules: [ { reply: [ { text: \"Noted: {{.Text}}\" } ] } ]\n", "")
	w.start()
	agent := w.agent("worker")
	w.say(agent, "heard")
	w.state(agent, "idle")
	p := w.visit("/agents/0", `
		const send = fetch;
		window.deaf = false;
		window.streams = [];
		window.fetch = async (path, options) => {
			const answer = await send(path, options);
			if (!String(path).startsWith("/v1/events")) return answer;
			const lossy = new TransformStream({
				start: to => streams.push(to),
				transform: (piece, to) => { if (!deaf) to.enqueue(piece); },
			});
			return new Response(answer.body.pipeThrough(lossy), { status: answer.status, headers: answer.headers });
		};`)
	p.sees("Noted: heard")
	p.wait("document.querySelector('main aside').innerText.includes('empty')", "the inbox is read")
	p.settled()
	eval[bool](p, "deaf = true")
	w.say(agent, "missed")
	w.agent("made in the gap")
	w.until("it is answered", func() bool { return strings.Contains(w.history(agent), "Noted: missed") })
	w.state(agent, "idle")
	if text := p.text(); strings.Contains(text, "missed") || strings.Contains(text, "made in the gap") {
		t.Fatalf("the page hears what the test keeps from it:\n%s", text)
	}

	eval[bool](p, `(() => {
		deaf = false;
		const gap = new TextEncoder().encode('event: gap\ndata: {"to":""}\n\n');
		for (const s of streams) s.enqueue(gap);
		return true;
	})()`)
	p.sees("Noted: missed")
	p.wait("document.querySelector('#agents').innerText.includes('made in the gap')", "the new agent is listed")
	if n := strings.Count(p.transcript(), "Noted: missed"); n != 1 {
		t.Errorf("the answer is shown %d times, want once", n)
	}
}
