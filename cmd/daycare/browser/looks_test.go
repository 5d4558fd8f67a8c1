//go:build !race

package browser

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/dom"
)

// looksScript measures a page: landmarks, headings, contrast, targets, sideways scrolling.
//
//go:embed testdata/looks.js
var looksScript string

// focusScript describes where the focus is, and whether that comes after the last place in
// the order of the document and can be seen.
//
//go:embed testdata/focus.js
var focusScript string

// interactive are the roles of what a user acts on; each needs a name.
var interactive = []string{"button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "option", "menuitem",
	"tab", "switch", "slider", "spinbutton", "DisclosureTriangle", "dialog", "image", "img", "navigation", "complementary", "table"}

// looks checks what is shown now: everything that can be measured about accessibility.
func (p *tab) looks(view string) {
	p.t.Helper()
	for _, problem := range append(eval[[]string](p, looksScript), p.nameless()...) {
		p.t.Errorf("%s: %s", view, problem)
	}
}

// nameless lists the elements that a screen reader could not name.
func (p *tab) nameless() (list []string) {
	p.t.Helper()
	for _, n := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		role := said(n.Role)
		if n.Ignored || !slices.Contains(interactive, role) || strings.TrimSpace(said(n.Name)) != "" {
			continue
		}
		html := call(p, dom.GetOuterHTML, dom.GetOuterHTMLParams{BackendNodeID: n.BackendDOMNodeID}).OuterHTML
		if strings.HasPrefix(html, "<table>") { // of a Markdown text, which has no names for its tables
			continue
		}
		list = append(list, "a "+role+" without a name: "+html[:min(len(html), 200)])
	}
	return list
}

// where is what focusScript returns.
type where struct {
	Name    string // what has the focus; "" is nothing
	Ordered bool   // it comes after what had it before
	Seen    bool   // it has an outline or changes otherwise
	Inside  bool   // it is within the window
}

// tour presses Tab until the focus has been everywhere, and returns what had it.
func (p *tab) tour() (visited []where) {
	p.t.Helper()
	eval[bool](p, "(document.activeElement?.blur(), getSelection().removeAllRanges(), window.focusedBefore = null, true)")
	for range 400 {
		p.press("Tab")
		at := eval[where](p, focusScript)
		if at.Name == "" || len(visited) > 0 && at == visited[0] && !at.Ordered {
			return visited // it has left the page, or begins anew
		}
		visited = append(visited, at)
	}
	p.t.Errorf("after 400 times Tab the end is not reached")
	return visited
}

func names(visited []where) (list []string) {
	for _, at := range visited {
		list = append(list, at.Name)
	}
	return list
}

// walks checks that Tab leads to each name, in the order of the page, and that the focus can be
// seen on the way.
func (p *tab) walks(view string, wanted ...string) {
	p.t.Helper()
	visited := p.tour()
	for _, at := range visited {
		switch {
		case !at.Ordered:
			p.t.Errorf("%s: the focus goes back to %s", view, at.Name)
		case !at.Seen:
			p.t.Errorf("%s: the focus cannot be seen on %s", view, at.Name)
		case !at.Inside:
			p.t.Errorf("%s: %s has the focus and is outside of the window", view, at.Name)
		}
	}
	all := strings.Join(names(visited), "\n")
	for _, name := range wanted {
		if !strings.Contains(all, name) {
			p.t.Errorf("%s: Tab does not lead to %q; it leads to:\n%s", view, name, all)
		}
	}
}
