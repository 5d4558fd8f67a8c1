package address

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// Who looks at one agent reads that one and what was started by it; by a name, all.
func TestALookReadsTheAgentThatIsAskedFor(t *testing.T) {
	root := t.TempDir()
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"a"}`)
	put(t, root, idB, `{"type":"subagent","id":"`+idB+`","name":"b","parentAgentId":"`+idA+`"}`)
	put(t, root, idC, `{"type":"permanent","id":"`+idC+`","name":"c"}`)
	lines := `{"handle":"0/","id":"` + idA + `","at":"2026-11-20T17:22:00.000Z"}` + "\n" +
		`{"handle":"0/0","id":"` + idB + `","parent":"` + idA + `","at":"2026-11-20T17:22:00.000Z"}` + "\n" +
		`{"handle":"1/","id":"` + idC + `","at":"2026-11-20T17:22:00.000Z"}` + "\n"
	if err := os.WriteFile(filepath.Join(root, "agents", "handles.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}

	look := func() *Index {
		x, found, err := Look(root, slog.New(slog.DiscardHandler))
		if err != nil || len(found) > 0 {
			t.Fatal(found, err)
		}
		return x
	}
	x := look()
	for _, ref := range []string{idA, "0/", "0"} {
		if id, err := x.Resolve(ref); err != nil || id != idA || len(x.known.byID) != 1 {
			t.Errorf("Resolve(%s) = %s, %v with %d read, want one", ref, id, err, len(x.known.byID))
		}
	}

	if list := x.Children(idA); len(list) != 1 || list[0].ID != idB || list[0].Handle != "0/0" || len(x.known.byID) != 2 {
		t.Errorf("its children are %v, with %d agents read", list, len(x.known.byID))
	}
	if id, err := x.Resolve("c"); err != nil || id != idC || len(x.known.byID) != 3 {
		t.Errorf("by its name: %s, %v, with %d agents read", id, err, len(x.known.byID))
	}
	if _, err := look().Resolve("7/"); err == nil {
		t.Error("an agent was found that is not there")
	}
	if n := len(look().All()); n != 3 {
		t.Errorf("all are %d, want 3", n)
	}

	// What is wrong with any descriptor is said once all are read, however that came.
	put(t, root, idC, `{"type":"permanent","id":"`+idA+`"}`)
	x = look()
	if _, ok := x.Get(idC); ok {
		t.Error("an agent whose descriptor is broken was found")
	}
	if found, err := x.Whole(); err != nil || len(found) == 0 {
		t.Errorf("its mistake is not said: %v, %v", found, err)
	}
}
