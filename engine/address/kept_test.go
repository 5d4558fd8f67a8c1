package address

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/finding"
)

// A descriptor that is broken at a start leaves its address with its agent: the next
// message from there must not make a second one.
func TestABrokenDescriptorKeepsItsAddressAfterARestart(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	made := create(t, x, chat("1"))
	edited := chat("2")
	byHand := create(t, x, edited)
	edited.Name = "Ada"
	put(t, root, byHand.ID, `{"type":"user","connector":"telegram","userId":"u","channelId":"2","name":"Ada"}`)
	copiedIn := chat("3")
	put(t, root, idA, `{"type":"user","connector":"telegram","userId":"u","channelId":"3"}`)
	if _, _, err := x.Rescan(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{byHand.ID, idA} { // as when it was edited, or wakes
		x.Keep(id)
	}
	beat := create(t, x, Descriptor{Type: Heartbeat})

	for _, broken := range []string{"{", `{"type":"user"}`, ""} {
		for _, id := range []string{made.ID, byHand.ID, idA, beat.ID} {
			put(t, root, id, broken)
		}
		if broken == "" { // not even a file
			os.Remove(filepath.Join(root, "agents", made.ID, descriptorFile))
		}
		for name, load := range map[string]func() (*Index, []finding.Finding){
			"running": func() (*Index, []finding.Finding) { return load(t, root) },
			"looking": func() (*Index, []finding.Finding) {
				x, found, err := Load(nil, root, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				return x, found
			},
		} {
			again, found := load()
			if len(found) < 4 {
				t.Errorf("%s, %q: %d findings; each broken file is to be told", name, broken, len(found))
			}
			for d, want := range map[Descriptor]string{chat("1"): made.ID, edited: byHand.ID, copiedIn: idA, {Type: Heartbeat}: beat.ID} {
				if got, _ := again.Lookup(d); got != want {
					t.Errorf("%s, %q: %s is %q, want %s as before", name, broken, d.Key(), got, want)
				}
			}
			if diff := cmp.Diff(handlesOf(x), handlesOf(again)); diff != "" {
				t.Errorf("%s, %q: handles (-before +now):\n%s", name, broken, diff)
			}
			if m, _ := again.Get(byHand.ID); m.Name != "Ada" {
				t.Errorf("%s, %q: in force is %q, want the last good version", name, broken, m.Name)
			}
			if name == "running" {
				if m := create(t, again, chat("1")); m.ID != made.ID {
					t.Errorf("a second agent was made for the address: %+v", m)
				}
			}
		}
	}

	last, _ := load(t, root)
	put(t, root, made.ID, `{"type":"user","connector":"telegram","userId":"u","channelId":"9"}`)
	if diff, found, err := last.Rescan(); err != nil || len(found) > 0 || !cmp.Equal(diff.Changed, []string{made.ID}) {
		t.Errorf("a corrected descriptor does not count: %+v, %v, %v", diff, found, err)
	}
	if _, ok := last.Lookup(chat("1")); ok {
		t.Error("its old address is not free")
	}
}

// Of two folders with one address the first keeps it, however broken its descriptor is.
func TestACopiedFolderDoesNotTakeAnAddressFromABrokenOne(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("1"))
	put(t, root, m.ID, "{")
	put(t, root, idA, `{"type":"user","connector":"telegram","userId":"u","channelId":"1"}`)
	again, _ := load(t, root)
	if id, _ := again.Lookup(chat("1")); id != m.ID {
		t.Errorf("the address went to %q, want it with %s", id, m.ID)
	}
	if _, ok := again.Get(idA); ok {
		t.Error("the second agent of the address is in the index")
	}
}

// A copy that is not of this agent, or of one that is found by its id, gives nobody an address.
func TestCopiesThatDoNotCount(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("1"))
	path := filepath.Join(root, "agents", m.ID, keptFile)
	for text, want := range map[string]bool{
		`{"type":"user","connector":"telegram","userId":"u","channelId":"1"}`:        true,
		`{"type":"user","id":"` + m.ID + `","connector":"telegram","channelId":"1"}`: true,
		`{"type":"user","id":"` + idA + `","connector":"telegram","channelId":"1"}`:  false,
		`{"type":"permanent","id":"` + m.ID + `","name":"Ops"}`:                      false,
		`{"type":"user"}`: false,
		`{`:               false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := x.scan.lastGood(m.ID); (got != nil) != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
