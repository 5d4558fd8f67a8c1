//go:build !race

package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// What cannot be read, or is not UTF-8, is no empty text that could be published in its place: the page says why.
func TestFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	const latin = "# Caf\xe9\n"
	w.write(".daycare/USER.md", latin)
	w.write(".daycare/SOUL.md/inside", "a folder in the place of a file")
	w.start()
	p := newTab(t)
	p.expect("SOUL.md")
	p.login(w, "/files/SOUL.md")
	p.sees("SOUL.md cannot be edited here")
	if eval[bool](p, "document.querySelector('main textarea') !== null") {
		t.Error("a file that was not read can be edited")
	}
	p.looks("file that cannot be read")
	if err := os.RemoveAll(w.path(".daycare/SOUL.md")); err != nil {
		t.Fatal(err)
	}
	w.write(".daycare/SOUL.md", "Be kind.\n")
	p.click("button", "Read it again")
	p.wait("document.querySelector('main textarea')?.value === 'Be kind.\\n'", "the file is read")

	p.goTo("/files/USER.md")
	p.sees("it is not UTF-8 text")
	if eval[bool](p, "document.querySelector('main textarea') !== null") {
		t.Error("a file that is not UTF-8 can be edited")
	}
	p.press("Control+s")
	if got := w.read(".daycare/USER.md"); got != latin {
		t.Errorf("the file is %q, want %q", got, latin)
	}
}

// An edit changes the lines that were edited, and no other byte: neither a byte order mark nor line ends of two kinds.
func TestEditKeepsOtherBytes(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	const before = "\ufeff# Me\r\nI like tea.\nI live here.\r\nand there\rGoodbye.\n"
	w.write(".daycare/USER.md", before)
	w.start()
	p := w.visit("/files/USER.md")
	p.wait("document.querySelector('main textarea')?.value.includes('tea')", "the file is open")
	p.replaces("tea", "coffee")
	p.click("button", "Publish…")
	p.told("USER.md is published")
	if got, want := w.read(".daycare/USER.md"), strings.Replace(before, "tea", "coffee", 1); got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
}

// holdScript holds requests of a method until release is called; held counts them.
const holdScript = `(() => {
	const send = fetch;
	window.held = 0;
	window.fetch = async (path, options) => {
		if (options?.method === %q && String(path).includes(%q) && !window.unheld) {
			held++;
			await new Promise(go => { const before = window.release; window.release = () => { before?.(); go(); }; });
		}
		return send(path, options);
	};
	return true;
})()`

// publishing is a page of which one change of a file is on its way, held there, and a later one is typed.
func publishing(t *testing.T) (w *workspace, p *tab) {
	t.Helper()
	w = newWorkspace(t, talkScript, "")
	w.write(".daycare/USER.md", "one\n")
	w.start()
	p = w.visit("/files/USER.md")
	p.wait("document.querySelector('main textarea')?.value === 'one\\n'", "the file is open")
	eval[bool](p, fmt.Sprintf(holdScript, "PUT", "USER.md"))
	p.replaces("one", "two")
	p.press("Control+s")
	p.wait("held === 1", "the file is on its way")
	p.replaces("two", "three")

	return w, p
}

// Publishing twice, and typing in between, is no conflict with what this page itself wrote, and nothing typed is lost.
func TestPublishTwice(t *testing.T) {
	t.Parallel()
	w, p := publishing(t)
	p.press("Control+s", "Control+s")
	eval[bool](p, "(window.unheld = true, release(), true)")
	w.until("both are on disk", func() bool { return w.read(".daycare/USER.md") == "three\n" })
	p.sees("Nothing is changed.")
	if eval[bool](p, "document.querySelector('dialog[open]') !== null") {
		t.Errorf("the page asks about a conflict:\n%s", p.text())
	}
}

// What is typed while a file is written is kept over a reload.
func TestTypedWhilePublished(t *testing.T) {
	t.Parallel()
	_, p := publishing(t)
	eval[bool](p, "(release(), true)")
	p.told("USER.md is published")
	p.goTo("/files/USER.md")
	p.wait("document.querySelector('main textarea')?.value === 'three\\n'", "what was typed is still there")
}

// A record that is edited keeps numbers that JavaScript cannot hold, and its date shows the year.
func TestEditRecord(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "agents:\n  maxSpawned: 5\n")
	w.start()
	agent := w.agent("worker")
	w.say(agent, "the first")
	w.until("it is answered", func() bool { return strings.Contains(w.history(agent), "Noted.") })
	w.state(agent, "idle")
	const number = `"big":9007199254740993,"text":"the first"`
	history := strings.Replace(w.history(agent), `"text":"the first"`, number, 1)
	_, at, _ := strings.Cut(history, `"at":"`)
	history = strings.Replace(history, at[:4], "2020", 1)
	w.write(".daycare/agents/"+agent+"/history.jsonl", history)

	p := w.visit("/files/0/history.jsonl")
	p.sees("the first")
	p.sees("2020")
	seq := eval[int](p, `+[...document.querySelectorAll('main .record')]
		.find(e => e.querySelector('.says').innerText === 'the first').dataset.seq`)
	p.click("button", fmt.Sprintf("Edit record %d", seq))
	p.sees("Change a text")
	p.looks("edit a record")
	p.do("select text beyond the edge", chromedp.MouseEvent("mousePressed", 600, 400, chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent("mouseMoved", 5, 5, chromedp.ButtonLeft),
		chromedp.MouseEvent("mouseReleased", 5, 5, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	p.sees("Change a text")
	p.do("click beside what is not changed", chromedp.MouseClickXY(5, 5))
	p.seesNot("Change a text")
	p.click("button", fmt.Sprintf("Edit record %d", seq))
	p.sees("Change a text")
	eval[bool](p, `(() => {
		const field = document.querySelector("dialog textarea");
		field.value = field.value.replace("the first", "the other");
		return true;
	})()`)
	p.do("click beside what is changed", chromedp.MouseClickXY(5, 5))
	p.press("Escape")
	p.told("Press Esc again")
	p.wait(`(() => {
		const said = document.getElementById("toast"), at = said.getBoundingClientRect();
		return said.contains(document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2));
	})()`, "the message is before the dialog")
	p.click("button", "Publish")
	p.told(fmt.Sprintf("Record %d is published", seq))
	p.wait(`!document.querySelector("dialog") && document.getElementById("toast").innerText.includes("is published")`,
		"the message stays when the dialog is closed")
	w.until("it is on disk", func() bool { return strings.Contains(w.history(agent), "the other") })
	if want := strings.Replace(number, "first", "other", 1); !strings.Contains(w.history(agent), want) {
		t.Errorf("the history has no %s:\n%s", want, w.history(agent))
	}

	p.goTo("/settings")
	p.wait("document.getElementById('set-agents-maxSpawned')?.value === '5'", "the form has the value of the text")
	p.change("set-agents-maxSpawned", "9007199254740993")
	p.wait("document.querySelector('main .edit textarea').value.includes('maxSpawned: 9007199254740993')", "the text has the number")
}

// Files that go with the next message are still there when the agent is shown again.
func TestFilesStayWithTheirAgent(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.write("list.txt", "milk")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/agents/0")
	p.find("textbox", "Message to 0/ worker")
	p.drops(w.path("list.txt"))
	p.find("button", "Remove list.txt")
	p.jump("h", "/")
	eval[bool](p, "(history.back(), true)")
	p.find("button", "Remove list.txt")
	p.focus("textbox", "Message to 0/ worker")
	p.types("a file")
	p.press("Enter")
	p.sees("Noted.")
	if got := fmt.Sprint(w.filesIn(agent)); got != "[user_message list.txt]" {
		t.Errorf("the history has the files %s", got)
	}
	p.wait("document.querySelector('main .chips').innerText === ''", "a file that was sent is no longer attached")
}

// A page of older records that comes after the transcript was read anew leaves no hole in it.
func TestOlderRecordsLeaveNoHole(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	agent := w.agent("worker")
	w.say(agent, "hello")
	w.until("it is answered", func() bool { return strings.Contains(w.history(agent), "Noted.") })
	w.state(agent, "idle")
	w.kill()
	w.lengthen(agent, 400)
	w.start()
	p := w.visit("/agents/0")
	const seqs = `[...document.querySelectorAll('main .log small')].map(e => +e.innerText.match(/#(\d+)/)?.[1]).filter(Boolean)`
	p.wait(seqs+".length > 10", "the transcript is shown")
	oldest := eval[int](p, "Math.min(..."+seqs+")")
	const up = "(document.querySelector('main .log').scrollTop = 0, true)"
	eval[bool](p, up)
	p.wait(fmt.Sprintf("Math.min(...%s) < %d", seqs, oldest), "older records are shown")
	eval[bool](p, fmt.Sprintf(strings.Replace(holdScript, "options?.method ===", "(options?.method ?? 'GET') ===", 1),
		"GET", "limit=40"))
	p.wait(up+" && held > 0", "still older ones are asked for")
	w.write(".daycare/agents/"+agent+"/history.jsonl", strings.Replace(w.history(agent), "record 390", "RECORD 390", 1))
	p.wait("document.querySelector('main .log').innerText.includes('RECORD 390')", "the transcript is read anew")
	eval[bool](p, "(window.unheld = true, release(), true)")
	p.wait(up+" && Math.min(..."+seqs+") < 100", "the older records are shown")
	if holes := eval[[]int](p, seqs+".filter((seq, i, all) => i && seq - all[i - 1] > 30)"); len(holes) > 0 {
		t.Errorf("records are missing before #%v", holes)
	}
}
