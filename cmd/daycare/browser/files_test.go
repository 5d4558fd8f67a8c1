//go:build !race

package browser

import (
	"fmt"
	"strings"
	"testing"
)

// edits opens the state of a new agent and types a budget into it.
func (w *workspace) edits(t *testing.T) (p *tab, agent string) {
	t.Helper()
	agent = w.agent("worker")
	p = newTab(t)
	p.expect("409|422|404")
	p.login(w, "/files/0/state.json")
	p.wait("document.querySelector('main textarea')?.value.includes('permissions')", "the file is open")
	return p, agent
}

// replaces changes a piece of the text in the editor, as typing would.
func (p *tab) replaces(old, text string) {
	p.t.Helper()
	at := eval[int](p, fmt.Sprintf(`(() => {
		const field = document.querySelector("main .edit textarea"), at = field.value.indexOf(%s);
		field.focus();
		field.setSelectionRange(at, at + %s.length);
		return at;
	})()`, quote(old), quote(old)))
	if at < 0 {
		p.t.Fatalf("the editor has no %q", old)
	}
	p.types(text)
}

// elsewhere changes the file on disk, as an editor would.
func (w *workspace) elsewhere(agent, old, text string) {
	w.t.Helper()
	name := ".daycare/agents/" + agent + "/state.json"
	before := w.read(name)
	if !strings.Contains(before, old) {
		w.t.Fatalf("%s has no %q:\n%s", name, old, before)
	}
	w.write(name, strings.Replace(before, old, text, 1))
}

// Two versions of a file: each of the three ways keeps what it says, and nothing is lost.
func TestFileConflict(t *testing.T) {
	t.Parallel()
	const theirs = `"exec": ["git status"]`
	for _, way := range []struct {
		name, button string
		mine, theirs bool // what is on disk then
	}{
		{"mine on top", "Apply my change on top", true, true},
		{"theirs", "Use the version on disk", false, true},
		{"keep editing", "Keep editing", false, true},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, talkScript, "")
			w.start()
			p, agent := w.edits(t)
			p.replaces(`"web": false`, `"web": true`)
			w.elsewhere(agent, `"exec": []`, theirs)
			p.click("button", "Publish…")
			p.sees("state.json has changed on disk")
			p.sees("The two changes do not touch each other.")
			p.looks("conflict")
			p.click("button", way.button)
			p.wait("!document.querySelector('dialog[open]')", "the dialog is closed")
			file := ".daycare/agents/" + agent + "/state.json"
			if way.mine {
				w.until("both changes are on disk", func() bool { return strings.Contains(w.read(file), `"web": true`) })
			}
			if text := w.read(file); !strings.Contains(text, "git status") {
				t.Errorf("the change on disk is lost:\n%s", text)
			}
			switch way.button {
			case "Use the version on disk":
				p.wait(`document.querySelector("main textarea").value.includes("git status")`, "the editor has what is on disk")
				p.click("button", "Undo")
				p.wait(`document.querySelector("main textarea").value.includes('"web": true')`, "what was typed is there again")
			case "Keep editing":
				p.sees("Changed on disk")
				p.goTo("/files/0/state.json") // what was typed survives a reload
				p.wait(`document.querySelector("main textarea")?.value.includes('"web": true')`, "what was typed is still there")
			}
		})
	}
}

// Two pages edit one file: the second one sees that it has changed, and both changes are on disk in the end.
func TestTwoPagesEditOneFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	first, agent := w.edits(t)
	second := newTab(t)
	second.expect("409")
	second.login(w, "/files/0/state.json")
	second.wait("document.querySelector('main textarea')?.value.includes('permissions')", "the file is open")
	second.replaces(`"exec": []`, `"exec": ["git status"]`)
	first.replaces(`"web": false`, `"web": true`)
	first.press("Control+s")
	first.told("state.json is published")
	eval[bool](second, "dispatchEvent(new Event('focus'))") // someone turns to it
	second.sees("Changed on disk")
	second.press("Control+s")
	second.sees("The two changes do not touch each other.")
	second.click("button", "Apply my change on top")
	second.told("state.json is published")
	eval[bool](first, "dispatchEvent(new Event('focus'))")
	for _, p := range []*tab{first, second} {
		p.wait(`["git status", '"web": true'].every(s => document.querySelector("main textarea").value.includes(s))`,
			"the page has both changes")
	}
	text := w.read(".daycare/agents/" + agent + "/state.json")
	if !strings.Contains(text, `"web": true`) || !strings.Contains(text, "git status") {
		t.Errorf("a change is lost:\n%s", text)
	}
}

// A mistake is shown where daycare validate finds it, and cannot be published.
func TestMistakeInFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	p, agent := w.edits(t)
	p.replaces(`"web": false`, `"web": "sometimes"`)
	p.wait("document.querySelector('main .problems:not([hidden]) li')", "the problem is listed")
	p.looks("mistake")
	if off := eval[bool](p, "document.querySelector('main [data-key=publish]').disabled"); !off {
		t.Error("a file with an error can be published")
	}
	place := eval[string](p, "document.querySelector('main .problems .mono').innerText")
	w.write("elsewhere/state.json", eval[string](p, "document.querySelector('main textarea').value"))
	out, _ := w.command(t.Context(), "validate", w.path("elsewhere/state.json")).CombinedOutput()
	if !strings.Contains(string(out), "state.json:"+place) {
		t.Errorf("the page says %s, daycare validate says\n%s", place, out)
	}

	p.replaces(`"sometimes"`, `true`)
	p.wait("document.querySelector('main .problems').hidden", "the problem is gone")
	p.press("Control+s")
	p.told("state.json is published")
	w.until("it is on disk", func() bool { return strings.Contains(w.read(".daycare/agents/"+agent+"/state.json"), `"web": true`) })
}

// A question is cut out of a history with its answer, and nothing else changes.
func TestCutHistory(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "rules: [ { reply: [ { text: \"Noted: {{.Text}}\" } ] } ]\n", "")
	w.start()
	agent := w.agent("worker")
	for _, text := range []string{"the first", "the second", "the third"} {
		w.say(agent, text)
		w.until("it is answered", func() bool { return strings.Contains(w.history(agent), "Noted: "+text) })
		w.state(agent, "idle")
	}
	p := w.visit("/files/0/history.jsonl")
	p.sees("Noted: the second")
	p.looks("history")
	for _, text := range []string{"the second", "Noted: the second"} {
		seq := eval[int](p, fmt.Sprintf("+[...document.querySelectorAll('main .record')].find(e => "+
			"e.querySelector('.says').innerText === %s).dataset.seq", quote(text)))
		p.click("checkbox", fmt.Sprintf("Select record %d", seq))
	}
	p.sees("1 message, 1 answer")
	p.click("button", "Cut 2 records")
	p.looks("cut")
	p.click("button", "Cut")
	p.told("2 records cut")
	history := w.history(agent)
	if strings.Contains(history, "the second") {
		t.Errorf("the history still has what was cut:\n%s", history)
	}
	for _, text := range []string{"Noted: the first", "Noted: the third"} {
		if !strings.Contains(history, text) {
			t.Errorf("the history has lost %q", text)
		}
	}
}

// A file whose lines end as on Windows is not changed by being opened, and an edit leaves the ends of its lines as they are.
func TestLineEnds(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "log:\n  level: info\n")
	const file = ".daycare/settings.yaml"
	before := strings.ReplaceAll(w.read(file), "\n", "\r\n")
	w.write(file, before)
	w.start()
	p := w.visit("/files/settings.yaml")
	p.wait("document.querySelector('main .edit textarea')?.value.includes('level')", "the file is open")
	p.sees("Nothing is changed.")
	p.replaces("level: info", "level: warn")
	p.seesNot("Nothing is changed.")
	p.click("button", "Publish…")
	p.sees("settings.yaml is published")
	if got, want := w.read(file), strings.Replace(before, "level: info", "level: warn", 1); got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
	p.sees("Nothing is changed.")
}
