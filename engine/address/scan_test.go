package address

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/cuid"
	"daycare/engine/disk"
)

func TestRescan(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("0"))
	step := func(want Diff, ids ...string) {
		t.Helper()
		diff, found, err := x.Rescan()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, diff); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}

		var got []string
		for _, f := range found {
			got = append(got, f.ID)
		}
		if d := cmp.Diff(ids, got); d != "" {
			t.Errorf("findings:\n%s", d)
		}
	}
	step(Diff{})
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"Ops"}`)
	put(t, root, "not-an-id", `{}`)
	step(Diff{Added: []string{idA}})
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"Operations"}`)
	step(Diff{Changed: []string{idA}, Before: map[string]Descriptor{idA: {Type: Permanent, ID: idA, Name: "Ops"}}})
	put(t, root, idA, `{"type":"permanent","id"`)
	step(Diff{}, "descriptor-syntax")
	step(Diff{}) // told once
	if got, _ := x.Get(idA); got.Name != "Operations" || got.Handle != "1/" {
		t.Errorf("the last good version is not in force: %+v", got)
	}

	put(t, root, idB, `{"type":"cron","id":"`+idC+`"}`)
	put(t, root, idC, `{"type":"user","connector":"telegram","channelId":"0","userId":"u"}`)
	if err := os.MkdirAll(filepath.Join(root, "agents", cuid.New()), 0o700); err != nil {
		t.Fatal(err)
	}
	_, found, err := x.Rescan()
	seen := map[string]int{}
	for _, f := range found {
		seen[f.ID]++
	}

	if diff := cmp.Diff(map[string]int{"descriptor-id": 1, "descriptor-duplicate": 1, "descriptor-missing": 1},
		seen); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := os.RemoveAll(filepath.Join(root, "agents", m.ID)); err != nil {
		t.Fatal(err)
	}

	step(Diff{Removed: []string{m.ID}})
	step(Diff{Added: []string{idC}}) // its address is free now
}

func TestParentsGetTheirHandlesFirst(t *testing.T) {
	root := t.TempDir()
	put(t, root, idB, `{"type":"subagent","id":"`+idB+`","name":"child","parentAgentId":"`+idC+`"}`)
	put(t, root, idA, `{"type":"subagent","id":"`+idA+`","name":"grandchild","parentAgentId":"`+idB+`"}`)
	put(t, root, idC, `{"type":"permanent","id":"`+idC+`","name":"p"}`)
	if err := os.Chtimes(filepath.Join(root, "agents", idA, descriptorFile), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	x, _ := load(t, root)
	if diff := cmp.Diff(map[string]string{idC: "0/", idB: "0/0", idA: "0/0/0"}, handlesOf(x)); diff != "" {
		t.Error(diff)
	}
}

// What is read a portion at a time is what is read at once: of two agents with one address the one with the lower
// handle keeps it, wherever it is, and agents without a handle get theirs after all others, parents first.
func TestPortions(t *testing.T) {
	defer func(was int) { portion = was }(portion)
	all := make([]string, 9)
	for i := range all {
		all[i] = fmt.Sprintf("a%023d", 100-i) // names and handles are in opposite orders
	}
	var first map[string]string
	var reported []string
	for _, portion = range []int{100, 1, 2, 3, 8} {
		root := t.TempDir()
		var handles []byte
		for i, id := range all {
			text := fmt.Sprintf(`{"type":"user","connector":"telegram","channelId":"%d","userId":"u"}`, i%5)
			switch i {
			case 6: // a child that has no handle, of a parent that has none
				text = `{"type":"subagent","id":"` + id + `","name":"child","parentAgentId":"` + all[7] + `"}`
			case 7, 8:
				text = `{"type":"permanent","id":"` + id + `","name":"p"}`
			default:
				handles = fmt.Appendf(handles, `{"handle":"%d/","id":"%s","at":"2026-11-20T17:22:00.000Z"}`+"\n", i+9, id)
			}
			put(t, root, id, text)
			at := time.Unix(int64(1000-i), 0)
			if err := os.Chtimes(filepath.Join(root, "agents", id, descriptorFile), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, "agents", "handles.jsonl"), handles, 0o600); err != nil {
			t.Fatal(err)
		}

		x, found := load(t, root)
		got, names := handlesOf(x), []string{}
		for _, f := range found {
			names = append(names, f.ID+" "+strings.TrimPrefix(f.File, root))
		}
		if first == nil {
			first, reported = got, names
			if len(got) != 8 || len(names) != 1 || got[all[5]] != "" || got[all[8]] != "15/" || got[all[7]] != "16/" ||
				got[all[6]] != "16/0" {
				t.Errorf("%v %v", got, names)
			}
		}
		if diff := cmp.Diff(first, got) + cmp.Diff(reported, names); diff != "" {
			t.Errorf("in portions of %d:\n%s", portion, diff)
		}
	}
}

func TestCrashLeftovers(t *testing.T) {
	root := t.TempDir()
	put(t, root, newPrefix+idA, `{"type":"cr`)
	lines := `{"handle":"0/","id":"` + idA + `","at":"2026-11-20T17:22:00.000Z"}` + "\n" + `{"handle":"1/","id":"bz`
	if err := os.WriteFile(filepath.Join(root, "agents", "handles.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}

	reader, found, err := Load(nil, root, slog.New(slog.DiscardHandler))
	if err != nil || len(reader.All()) != 0 || len(found) != 1 {
		t.Errorf("looking only: %v, %v", found, err)
	}
	if _, err := reader.Create(chat("0"), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("create: %v", err)
	}
	if !disk.Exists(filepath.Join(root, "agents", newPrefix+idA)) {
		t.Error("looking only removed something")
	}

	x, found := load(t, root)
	if disk.Exists(filepath.Join(root, "agents", newPrefix+idA)) || len(found) > 0 {
		t.Errorf("leftover still there; %v", found)
	}

	// The agent whose making was cut gets the handle that it was given then.
	if m := create(t, x, chat("0")); m.Handle != "1/" {
		t.Errorf("another agent: %+v", m)
	}
	if m := create(t, x, Descriptor{Type: Cron, ID: idA}); m.Handle != "0/" {
		t.Errorf("the agent itself: %+v", m)
	}
}

func TestHandlesEditedByHand(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "agents", "handles.jsonl")
	x, _ := load(t, root)
	a, b := create(t, x, chat("0")), create(t, x, chat("1"))
	edit := func(change func(string) string) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path+"~", []byte(change(string(data))), 0o600)
		}
		if err == nil {
			err = os.Rename(path+"~", path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit(func(s string) string { return `{"handle":"2/","id":"` + idC + `"}` + "\n" }) // two lines taken out, one put in
	if m := create(t, x, chat("2")); m.Handle != "3/" {
		t.Errorf("after an edit: %+v", m)
	}

	edit(func(s string) string {
		return s + "no JSON\n" + `{"handle":"0/","id":"` + idB + `"}` + "\n" + `{"handle":"7","id":"` + idA + `"}`
	})
	if m := create(t, x, chat("3")); m.Handle != "8/" {
		t.Errorf("after another edit: %+v", m)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}

	create(t, x, chat("4"))
	again, found := load(t, root)
	want := map[string]string{a.ID: "0/", b.ID: "1/"}
	got := handlesOf(again)
	for id, h := range want {
		if got[id] != h {
			t.Errorf("%s has %s, want %s (%v)", id, got[id], h, found)
		}
	}

	if diff := cmp.Diff(handlesOf(x), got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkLoad10000(b *testing.B) {
	root := b.TempDir()
	var handles []byte
	for i := range 10_000 {
		id := cuid.New()
		put(b, root, id, fmt.Sprintf(`{ "type": "user", "connector": "telegram", "userId": "%d", "channelId": "%d" }`, i, i))
		handles = fmt.Appendf(handles, `{"handle":"%d/","id":"%s","at":"2026-11-20T17:22:00.000Z"}`+"\n", i, id)
	}

	if err := os.WriteFile(filepath.Join(root, "agents", "handles.jsonl"), handles, 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x, found := load(b, root)
		if len(found) > 0 || len(x.All()) != 10_000 {
			b.Fatal(found)
		}
		x.Close()
	}
}

func BenchmarkCreate(b *testing.B) {
	x, _ := load(b, b.TempDir())
	for i := 0; b.Loop(); i++ {
		create(b, x, chat(fmt.Sprint(i)))
	}
}
