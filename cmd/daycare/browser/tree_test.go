//go:build !race

package browser

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chromedp/cdproto/accessibility"
)

// changing is what differs from run to run in the names of controls, and what stands for it in the golden files.
var changing = []struct {
	found *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`\b(web-\w+)-[0-9a-f]{8}\b`), "$1-ID"}, // first, as one may look like a time: 7654321d
	{regexp.MustCompile(`(?:\d{1,2} [A-Z][a-z]{2}|[A-Z][a-z]{2} \d{1,2}),? (?:\d{4}, )?\d\d:\d\d(?::\d\d)?`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?`), "DAY"},
	{regexp.MustCompile(`\b\d\d:\d\d(?::\d\d)?\b`), "TIME"},
	{regexp.MustCompile(`\bjust now\b|\b\d+(?:\.\d+)?[smhd] ago\b`), "AGO"},
	{regexp.MustCompile(`\b(?:in )?\d+(?:\.\d+)?(?: ?(?:ms|min|s|m|h|d|days))\b|\bnow\b`), ""},
	{regexp.MustCompile(`\d+(?:\.\d+)? (?:B|KB|MB|GB)\b`), "SIZE"},
	{regexp.MustCompile(`\b(?:[a-z][a-z0-9]{23}|[0-9a-f]{8}|[0-9a-f]{12,64}|\d{8}T\d{6}\.\d+Z)\b|\b[a-z0-9]{4,8}…`), "ID"},
	{regexp.MustCompile(`~?\$\d+(?:\.\d+)?`), "MONEY"},
	{regexp.MustCompile(`/\S*/notes\b|…/notes`), "WORKSPACE"},
	{regexp.MustCompile(`\d+ errors?, \d+ warnings?`), "N errors, N warnings"},
	{regexp.MustCompile(`pid \d+`), "PID"},
	{regexp.MustCompile(`\b(?:Queue watch|Index|Morning review)\b`), "TASK"}, // what is next depends on the time of day
	{regexp.MustCompile(`\b\d[\d,.]*k?\b`), "N"},
}

// tree is the accessibility tree of what is shown, a line for each element that has a role and a name or children:
// what a screen reader announces. from is the role of the element that it begins with.
func (p *tab) tree(from string) string {
	p.t.Helper()
	nodes := call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
	byID := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range nodes {
		byID[n.NodeID] = n
	}
	var out strings.Builder
	var write func(n *accessibility.Node, within string, depth int)
	write = func(n *accessibility.Node, within string, depth int) {
		role, name, line := announced(n)
		if role == "text" && strings.Contains(within, name) {
			return
		}
		if role != "" {
			out.WriteString(strings.Repeat("  ", depth) + line + "\n")
			depth, within = depth+1, name
		}
		for _, id := range n.ChildIDs {
			if child := byID[id]; child != nil && !strange(role, name) {
				write(child, within, depth)
			}
		}
	}
	at := slices.IndexFunc(nodes, func(n *accessibility.Node) bool { return said(n.Role) == from })
	if at < 0 {
		p.t.Fatalf("the page has no %s", from)
	}
	write(nodes[at], "", 0)
	return out.String()
}

// strange reports whether what is in an element depends on the machine, is the text of a file, or comes in no certain order.
func strange(role, name string) bool {
	return role == "log" || role == "textbox" || role == "region" && name == "Findings"
}

// silent are the roles that say nothing by themselves.
var silent = []string{"none", "generic", "InlineTextBox", "LineBreak", "ListMarker", "RootWebArea", "paragraph", "LayoutTable",
	"LayoutTableRow", "LayoutTableCell", "strong", "code", "time", "DescriptionListTerm", "Abbr", "mark", "emphasis"}

// states are the properties that are part of what is announced.
var states = []accessibility.PropertyName{"disabled", "checked", "pressed", "selected", "expanded", "level", "required", "readonly"}

// announced is an element as a line; role is "" for those that say nothing.
func announced(n *accessibility.Node) (role, name, line string) {
	role = said(n.Role)
	if n.Ignored || slices.Contains(silent, role) {
		return "", "", ""
	}
	name = stable(said(n.Name))
	if role == "StaticText" {
		if name == "" {
			return "", "", ""
		}
		role = "text"
	}
	line = role
	if name != "" {
		line += " " + quote(name)
	}
	for _, state := range states {
		for _, is := range n.Properties {
			if value := string(is.Value.Value); is.Name == state && value != "false" && value != `"false"` {
				line += " " + string(state) + "=" + strings.Trim(value, `"`)
			}
		}
	}
	return role, name, line
}

func stable(text string) string {
	for _, c := range changing {
		text = c.found.ReplaceAllString(text, c.shown)
	}
	return strings.Join(strings.Fields(text), " ")
}

// A part of a name that differs from run to run is never taken for another one.
func TestWhatDiffersIsLeftOut(t *testing.T) {
	for name, want := range map[string]string{
		"web-chrome-1a2b3c4d this one": "web-chrome-ID this one", "web-chrome-7654321d": "web-chrome-ID",
		"web-chrome-12345678": "web-chrome-ID", "ran 3m ago": "ran AGO", "ran 12 s": "ran",
	} {
		if got := stable(name); got != want {
			t.Errorf("%q is compared as %q, want %q", name, got, want)
		}
	}
}

// announces compares the accessibility tree of a view with a golden file, in which a change of what a screen reader
// announces can be read.
func (p *tab) announces(v view) {
	p.t.Helper()
	from := "main"
	if v.name == "home" { // what is around the views, once
		from = "RootWebArea"
	}
	golden := filepath.Join("testdata", "trees", v.name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(p.tree(from)), 0o644); err != nil {
			p.t.Fatal(err)
		}
		return
	}

	want, err := os.ReadFile(golden)
	if err != nil {
		p.t.Fatal(err)
	}
	got := p.tree(from)
	for end := time.Now().Add(time.Minute); got != string(want) && time.Now().Before(end); got = p.tree(from) {
		time.Sleep(100 * time.Millisecond) // something still comes in
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		p.t.Errorf("%s is announced in another way; if that is better: go test ./cmd/daycare/browser -run TestViews -update\n%s",
			v.name, d)
	}
}
