//go:build !race

package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// found are the results of the palette, in order.
func (p *tab) found() []string {
	p.t.Helper()
	return eval[[]string](p, "[...document.querySelectorAll('dialog [role=option]')].map(e => e.innerText.replace(/\\s+/g, ' ').trim())")
}

// Find or do has every page and every action, however many agents there are; what begins with what is typed comes first,
// and nothing that destroys ever does.
func TestPalette(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	for i := range 70 {
		w.agent(fmt.Sprintf("helper %d", i))
	}
	p := w.visit("/agents/0")
	p.find("textbox", "Message to 0/ helper 0")
	p.press("Control+k")
	p.find("dialog", "Find or do")
	all := p.found()
	for _, want := range []string{"0/ helper 0", "Home g h", "Trash g r", "New agent n", "Fork this agent", "Rename this agent",
		"Set a checkpoint", "Compact its context", "Stop x", "Rewind: undo the newest turn",
		"Take back files that it wrote in rewound turns", "Start a new conversation", "Why the newest answer w", "Keys ?"} {
		if !slices.Contains(all, want) {
			t.Errorf("%q is not among the results:\n%s", want, strings.Join(all, "\n"))
		}
	}
	for typed, want := range map[string]string{"he": "Health g e", "helper 69": "69/ helper 69", "new": "New agent n",
		"agent": "1/ helper 1"} {
		p.press("Control+a")
		p.types(typed)
		if list := p.found(); !slices.Contains(list, want) {
			t.Errorf("%q does not find %q:\n%s", typed, want, strings.Join(list, "\n"))
		}
	}
	for _, typed := range []string{"s", "st", "re", "new conversation", "rewind", "agent"} {
		p.press("Control+a")
		p.types(typed)
		list := p.found()
		if len(list) > 1 && slices.ContainsFunc([]string{"Stop", "Rewind", "Start a new", "Take files"}, func(bad string) bool {
			return strings.HasPrefix(list[0], bad)
		}) {
			t.Errorf("%q finds %q first, which destroys", typed, list[0])
		}
	}
}
