package address

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An agent that comes back from the trash is the same one, with its handle, however little time
// has passed.
func TestAnAgentThatComesBack(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	create(t, x, chat("0"))
	m := create(t, x, Descriptor{Type: Permanent, Name: "Ops"})
	for range 2 {
		trash, err := x.Remove(m.ID)
		if err == nil {
			err = os.Rename(trash, filepath.Join(root, "agents", m.ID))
		}
		if err != nil {
			t.Fatal(err)
		}
		diff, found, err := x.Rescan(m.ID)
		if back, ok := x.Get(m.ID); err != nil || len(found) > 0 || !ok || back != m || cmp.Diff(Diff{Added: []string{m.ID}}, diff) != "" {
			t.Errorf("%+v, %+v, %v, %v", back, diff, found, err)
		}
	}
}

// A rescan of some agents looks at their folders alone: what has no folder is gone, and what is
// none is not an agent.
func TestARescanOfSomeAgents(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	a, b := create(t, x, Descriptor{Type: Permanent, Name: "a"}), create(t, x, Descriptor{Type: Permanent, Name: "b"})
	agents := filepath.Join(root, "agents")
	if err := errors.Join(os.WriteFile(filepath.Join(agents, idA), nil, 0o600), os.Symlink(a.ID, filepath.Join(agents, idB)),
		os.RemoveAll(filepath.Join(agents, a.ID)), os.RemoveAll(filepath.Join(agents, b.ID))); err != nil {
		t.Fatal(err)
	}

	diff, found, err := x.Rescan(a.ID, idA, idB, idC, "../agents", "")
	if err != nil || len(found) > 0 || cmp.Diff(Diff{Removed: []string{a.ID}}, diff) != "" {
		t.Errorf("%+v, %v, %v; want that %s is gone", diff, found, err, a.ID)
	}
	if _, ok := x.Get(b.ID); !ok {
		t.Error("an agent that was not looked at is gone")
	}
}

// A number is given to agents that count, and one that two lines give is told.
func TestWhoGetsANumber(t *testing.T) {
	root := t.TempDir()
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`"`)
	put(t, root, idB, `{"type":"permanent","id":"`+idB+`","name":"b"}`)
	x, found := load(t, root)
	if diff := cmp.Diff(map[string]string{idB: "0/"}, handlesOf(x)); diff != "" || len(found) != 1 || x.Handle(idA) != "" {
		t.Errorf("%v, %v", found, diff)
	}

	x.Close()
	line := `{"handle":"0/","id":"` + idB + `","at":"2026-11-20T17:22:00.000Z"}` + "\n"
	for extra, want := range map[string]int{line: 0, `{"handle":"0/","id":"` + idC + `"}` + "\n": 1,
		`{"handle":"0","id":"` + idC + `"}` + "\n": 1,
		`{"handle":"1/","id":""}` + "\n":           1, "\n  \n": 0, "{}\n": 1} {
		if err := os.WriteFile(filepath.Join(root, "agents", "handles.jsonl"), []byte(line+extra), 0o600); err != nil {
			t.Fatal(err)
		}
		_, found, err := Look(root, slog.New(slog.DiscardHandler))
		if err != nil || len(found) != want || want > 0 && (found[0].ID != "handle-invalid" || found[0].Line != 2) {
			t.Errorf("%q: %+v, %v; want %d", extra, found, err, want)
		}
	}
}

// Who only looks finds an agent by whatever it is known by, though nothing was read before.
func TestALookFindsByAnything(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("1"))
	ops := create(t, x, Descriptor{Type: Permanent, Name: "Ops", CreatedBy: m.ID})
	child := create(t, x, Descriptor{Type: Subagent, ParentAgentID: m.ID, Name: "n"})
	for name, find := range map[string]func(x *Index) string{
		"its address": func(x *Index) string { id, _ := x.Lookup(chat("1")); return id },
		"its handle":  func(x *Index) string { id, _ := x.Resolve(m.Handle); return id },
		"its name":    func(x *Index) string { id, _ := x.Resolve(m.Name); return id },
		"all":         func(x *Index) string { return x.All()[0].ID },
		"who it made": func(x *Index) string { made := x.Made(m.ID); return map[bool]string{true: m.ID}[len(made) == 2] },
		"its children": func(x *Index) string {
			return map[bool]string{true: m.ID}[len(x.Children(m.ID)) == 1 && len(x.Running(m.ID)) == 1 && x.Running(m.ID)[0].ID == child.ID]
		},
		"its colleagues": func(x *Index) string {
			found := ""
			x.Live(Colleagues, func(o Meta) bool { found = map[bool]string{true: m.ID}[o.ID == ops.ID]; return true })
			return found
		},
	} {
		look, found, err := Look(root, slog.New(slog.DiscardHandler))
		if err != nil || len(found) > 0 {
			t.Fatal(found, err)
		}
		if got := find(look); got != m.ID {
			t.Errorf("by %s it is %q, want %s", name, got, m.ID)
		}
	}
}
