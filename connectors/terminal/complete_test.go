package terminal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"daycare/engine/event"
)

// A mention finds files by their letters, wherever they lie, and what begins as typed first.
func TestMentionFindsFilesByLetters(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"README.md", "engine/inbox/inbox.go", "engine/inbox/index.go", "docs/inbox.md", ".git/config",
		"inner/x.txt", "with space.md"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		typed string
		want  []string // in this order, among others
	}{
		{"@in", []string{"@inner/", "@docs/inbox.md ", "@engine/inbox/"}},
		{"look at @inbx", []string{"@docs/inbox.md ", "@engine/inbox/inbox.go "}},
		{"@engine/inbox/ind", []string{"@engine/inbox/index.go "}},
		{"@rdme", []string{"@README.md "}},
		{"@engindex", []string{"@engine/inbox/index.go "}},
		{"@", []string{"@README.md ", "@docs/", "@engine/", "@inner/"}},
		{"@.g", []string{"@.git/"}},
	} {
		t.Run(tt.typed, func(t *testing.T) {
			var n menu
			n.suggest(&Model{environment: environment{opts: Options{Workspace: root}}, world: newWorld()}, tt.typed)
			var got []string
			for _, c := range n.choices {
				got = append(got, c.text)
			}
			at := 0
			for _, want := range tt.want {
				i := slices.Index(got[at:], want)
				if i < 0 {
					t.Fatalf("offered %q, want %q in this order", got, tt.want)
				}
				at += i + 1
			}
		})
	}
	var n menu
	if n.suggest(&Model{environment: environment{opts: Options{Workspace: root}}, world: newWorld()}, "@zzzz"); n.open() {
		t.Errorf("letters that no file has find %+v", n.choices)
	}
}

// Tab in front of an idle agent sends nothing, least of all a mention that is only begun.
func TestTabSendsNothingToAnIdleAgent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		drive(t, d0, 80, 24, func(d *driver) {
			d.write("look at @nosuch")
			d.press("tab")
			d.shows("› look at @nosuch", "no file fits @nosuch")
			d.press("ctrl+c")
			d.write("hello")
			d.press("tab")
			d.shows("› hello", "Enter sends; Tab is for agents at work")
			if n := len(d0.got); n != 0 {
				t.Errorf("%d messages were sent", n)
			}
			d.press("enter")
			if n := len(d0.got); n != 1 {
				t.Errorf("Enter sent %d messages, want 1", n)
			}
		})
	})
}

// Columns in a panel stay columns, whatever the width of their cells.
func TestPanelKeepsColumns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		d0.models = []event.Service{{ID: "one", Model: "first"}, {ID: "a-longer-one", Model: "second"}}
		drive(t, d0, 100, 24, func(d *driver) {
			d.write("/status")
			d.press("enter")
			d.shows("model     one              first", "model     a-longer-one     second")
		})
	})
}
