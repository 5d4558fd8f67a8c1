//go:build !race

package browser

import (
	"os"
	"strings"
	"testing"
)

// undoScript has an agent that changes two files and makes one.
const undoScript = `
rules:
  - { contains: "change them", round: 1, reply: [ { calls: [
      { name: edit, arguments: { path: a.txt, old: one, new: ONE } },
      { name: edit, arguments: { path: b.txt, old: two, new: TWO } },
      { name: write, arguments: { path: new.txt, content: "made" } } ] } ] }
  - { reply: [ { text: "Noted." } ] }
`

const undoText = "one\ntwo\nthree\nfour\nfive\nsix\n"

// Rewinding says which files the agent wrote since and how they stand, and takes those back that nobody else changed,
// if it is told to; the others later, by name.
func TestRewindTakesFilesBack(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, undoScript, "")
	w.write("a.txt", undoText)
	w.write("b.txt", undoText)
	w.start()
	agent := w.agent("worker")
	w.say(agent, "hello")
	w.state(agent, "idle")
	w.say(agent, "change them")
	w.until("the files are changed", func() bool { return strings.Count(w.history(agent), `"turn_end"`) == 2 })
	w.write("b.txt", strings.Replace(w.read("b.txt"), "six", "SIX", 1)) // by someone else

	p := w.visit("/agents/0")
	p.sees("change them")
	p.click("button", "Rewind")
	p.find("dialog", "Undo the newest turn")
	p.sees("Its tools have written these files since then:")
	p.wait(`[...document.querySelectorAll("dialog .taken li")].map(e => e.innerText.replace(/\s+/g, " ")).join("|") ===
		"a.txt can be taken back|b.txt someone else changed it since|new.txt can be taken back"`, "the files are listed")
	p.looks("rewind")
	p.click("checkbox", "Take back 2 files, as before these turns")
	p.click("button", "Rewind")
	p.told("2 files taken back")
	p.sees("Rewound: the model no longer sees the greyed part above")
	if got := w.read("a.txt"); got != undoText {
		t.Errorf("a.txt is %q", got)
	}
	if _, err := os.Stat(w.path("new.txt")); !os.IsNotExist(err) {
		t.Errorf("new.txt is still there: %v", err)
	}
	if got := w.read("b.txt"); !strings.Contains(got, "TWO") || !strings.Contains(got, "SIX") {
		t.Errorf("b.txt is not as it was left: %q", got)
	}

	p.press("Control+k")
	p.types("take files back")
	p.click("option", "Take back files that it wrote in rewound turns")
	p.find("dialog", "Take files back")
	p.click("checkbox", "b.txt…")
	p.click("checkbox", "Keep what others changed since…")
	p.looks("undo")
	p.click("button", "Take back")
	w.until("b.txt is taken back, with the change of somebody else", func() bool {
		return w.read("b.txt") == strings.Replace(undoText, "six", "SIX", 1)
	})
}

// Fork, checkpoint and rewind to a record: what is made, and what the conversation says.
func TestForkMarkRewind(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, undoScript, "")
	w.start()
	agent := w.agent("worker")
	for _, text := range []string{"first", "second"} {
		w.say(agent, text)
		w.state(agent, "idle")
	}
	p := w.visit("/agents/0")
	p.sees("second")

	p.click("button", "Mark")
	p.find("dialog", "Set a checkpoint")
	p.types("here")
	p.press("Enter")
	p.sees("Checkpoint here")

	first := eval[string](p, `[...document.querySelectorAll("main .log li")].find(e => e.innerText.startsWith("first"))
		.querySelector("[aria-label^='Rewind to']").getAttribute("aria-label")`)
	p.click("button", first)
	p.find("dialog", first)
	p.sees("Its tools have written no files since then that can be taken back.")
	p.click("button", "Rewind")
	p.sees("Rewound")
	p.wait(`[...document.querySelectorAll("main .log li.forgotten")].some(e => e.innerText.includes("second"))`, "what follows is greyed")
	if got := w.history(agent); !strings.Contains(got, `"type":"rewind","to":`+strings.TrimPrefix(first, "Rewind to #")) {
		t.Errorf("%s: the history is\n%s", first, got)
	}

	p.click("button", "Fork")
	p.find("dialog", "Fork")
	p.types("a twin")
	p.press("Enter")
	p.find("textbox", "Message to 1/ a twin")
	p.sees("first")

	p.press("Control+k")
	p.find("dialog", "Find or do")
	p.types("rename")
	p.press("Enter")
	p.find("dialog", "Rename 1/")
	p.types("a sister") // over the name that it has
	p.press("Enter")
	p.sees("1/ is a sister now")
	p.find("textbox", "Message to 1/ a sister")
	p.wait(`document.title.includes("a sister")`, "the tab has the new name")
}
