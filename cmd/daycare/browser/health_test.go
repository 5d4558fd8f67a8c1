//go:build !race

package browser

import (
	"os"
	"strings"
	"testing"
	"time"
)

// What can be repaired is repaired from the page, after it was asked, and a model service is tested.
func TestHealth(t *testing.T) {
	t.Parallel()
	const id = "abcdefghijklmnopqrstuvwx"
	w := newWorkspace(t, talkScript, "")
	w.start()
	w.write(".daycare/files/"+id+"__lost.txt", "nobody refers to this")
	old := time.Now().Add(-24 * time.Hour) // a new one could still be on its way
	if err := os.Chtimes(w.path(".daycare/files/"+id+"__lost.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	reference := w.path(".daycare/files/" + id + ".json")
	p := w.visit("/health")
	p.sees(id + "__lost.txt")
	p.looks("findings")
	p.click("button", "Repair 1")
	p.find("dialog", "Repair 1 finding?")
	p.looks("repair")
	p.click("button", "Cancel")
	p.wait("!document.querySelector('dialog[open]')", "the dialog is closed")
	if _, err := os.Stat(reference); err == nil {
		t.Fatal("it was repaired though the answer was no")
	}

	p.click("button", "Repair file…")
	p.find("dialog", "Repair 1 finding?")
	p.click("button", "Repair")
	p.told("1 finding repaired")
	p.seesNot(id + "__lost.txt")
	if text, err := os.ReadFile(reference); err != nil || !strings.Contains(string(text), "lost.txt") {
		t.Errorf("the reference is %s, %v", text, err)
	}

	w.agent("made while the log is shown")
	p.wait("[...document.querySelectorAll('main .logs div')].at(-1)?.innerText.includes('agent.created')",
		"the log goes on while it is shown")

	p.click("button", "Test scripted")
	p.wait("document.querySelector('main td.detail.work')?.innerText.startsWith('It answered in ')", "the service has answered")
	p.click("button", "Check again")
	p.sees("It answered in ")
}
