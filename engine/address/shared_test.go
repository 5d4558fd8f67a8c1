package address

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/disk"
)

// A registry plays the other machines: what they have already, and what they refuse.
type registry struct {
	owners map[string]string // address -> id
	taken  map[string]string // handle -> id
	given  map[string]string // id -> the handle that another machine gave it
	asked  int

	claiming, numbering error
}

func (r *registry) Claim(address, id string) (string, error) {
	r.asked++
	if owner := r.owners[address]; owner != "" {
		id = owner
	}
	return id, r.claiming
}

func (r *registry) Number(handle, id string) (string, error) {
	if have := r.given[id]; have != "" {
		handle = have
	}
	if r.taken[handle] != "" {
		handle = ""
	}
	return handle, r.numbering
}

// An agent that is made where machines share agents has the id and the handle that all of them know: a handle
// that another machine gave is not given again, and where they cannot be asked no agent is made.
func TestAgentsThatMachinesShare(t *testing.T) {
	x, _ := load(t, t.TempDir())
	r := &registry{owners: map[string]string{chat("2").Key(): idB}, taken: map[string]string{"0/": "other", "1/": "other"},
		given: map[string]string{idC: "9/"}}
	x.Share(r)

	m := create(t, x, chat("1"))
	if m.Handle != "2/" || r.asked != 1 {
		t.Errorf("it has the handle %q, others were asked %d times", m.Handle, r.asked)
	}
	if m := create(t, x, chat("2")); m.ID != idB || m.Handle != "3/" {
		t.Errorf("an address of another machine's agent makes %s %s", m.Handle, m.ID)
	}
	if m := create(t, x, Descriptor{Type: Permanent, ID: idC, Name: "Ops"}); m.Handle != "9/" || r.asked != 2 {
		t.Errorf("it has the handle %q, others were asked %d times", m.Handle, r.asked)
	}

	x.Met(Meta{ID: idA, Handle: "4/", Descriptor: Descriptor{Type: Permanent, ID: idA, Name: "Lab"}})
	r.owners[chat("4").Key()] = idA
	if m := create(t, x, chat("4")); m.ID != idA || m.Handle != "4/" || m.Descriptor.Type != Permanent {
		t.Errorf("an address of an agent that is known makes %+v", m)
	}

	silent := errors.New("no servers")
	for i, d := range []Descriptor{chat("3"), {Type: Permanent, Name: "Lab"}} {
		r.claiming, r.numbering = nil, silent
		if i == 0 {
			r.claiming, r.numbering = silent, nil
		}
		if _, err := x.Create(d, []byte("{}\n")); !errors.Is(err, silent) || len(x.All()) != 4 {
			t.Errorf("%s is made without them: %v", d.Type, err)
		}
	}
}

// Another handle alone is a change of an agent of another machine. Such an agent needs no folder here, until it
// was let go of.
func TestAnAgentOfAnotherMachineIsLetGoOf(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := Meta{ID: idA, Handle: "0/", Descriptor: Descriptor{Type: Permanent, ID: idA, Name: "Ops"}}
	x.Met(m)
	if m := create(t, x, chat("1")); m.Handle != "1/" {
		t.Errorf("the next one has the handle %q", m.Handle)
	}
	m.Handle = "4/"
	if x.Met(m) {
		t.Error("another handle makes another agent")
	}
	if got, _ := x.Get(idA); got.Handle != "4/" {
		t.Errorf("it has the handle %q", got.Handle)
	}
	if diff, _, err := x.Rescan(); err != nil || len(diff.Removed) > 0 {
		t.Errorf("without a folder here: %+v, %v", diff, err)
	}

	// Once it was let go of, and has a folder here, it is gone when its folder is.
	x.Forget(idA)
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"Ops"}`)
	if diff, _, err := x.Rescan(); err != nil || !slices.Equal(diff.Added, []string{idA}) {
		t.Errorf("with a folder here: %+v, %v", diff, err)
	}
	if err := os.RemoveAll(filepath.Join(root, "agents", idA)); err != nil {
		t.Fatal(err)
	}
	if diff, _, err := x.Rescan(); err != nil || !slices.Equal(diff.Removed, []string{idA}) {
		t.Errorf("without its folder: %+v, %v", diff, err)
	}
}

// An agent that was let go of is read anew when it is there again, also where its file is as it was.
func TestAnAgentThatIsThereAgain(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("1"))
	for range 2 {
		time.Sleep(2 * beneath.Tick) // so that an unchanged file is known to be as it was
		if _, _, err := x.Rescan(); err != nil {
			t.Fatal(err)
		}
		if c, err := x.Reread(m.ID, true); err != nil || len(c.Members)+len(c.Found) > 0 || c.Broken {
			t.Errorf("read again: %+v, %v", c, err)
		}
		x.Forget(m.ID)
		if diff, _, err := x.Rescan(); err != nil || !slices.Equal(diff.Added, []string{m.ID}) {
			t.Errorf("%+v, %v", diff, err)
		}
	}
}

// An agent whose folder does not get its name leaves nothing, and is made when it is asked for again.
func TestAFolderThatDoesNotGetItsName(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	for _, step := range []string{"emfile@folder.dirsync#1", "enospc@folder.rename#1"} {
		crash.Arm(t, step)
		if m, err := x.Create(chat("1"), []byte("{}\n")); err == nil {
			t.Fatalf("%s: made: %+v", step, m)
		}
		left, err := filepath.Glob(filepath.Join(root, "agents", "*", descriptorFile))
		hidden, herr := filepath.Glob(filepath.Join(root, "agents", newPrefix+"*"))
		if err := errors.Join(err, herr); err != nil || len(left)+len(hidden) > 0 {
			t.Errorf("%s: left are %v, %v, %v", step, left, hidden, err)
		}
		crash.Arm(t, "")
	}
	create(t, x, chat("1"))
	if n := len(x.All()); n != 1 {
		t.Errorf("there are %d agents", n)
	}
}

// An agent that cannot be moved to the trash stays, and works.
func TestAnAgentThatCannotBeRemoved(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("1"))
	trash := filepath.Join(root, "trash")
	if err := os.WriteFile(trash, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	there := func(what string) {
		t.Helper()
		to, err := x.Remove(m.ID)
		if _, ok := x.Get(m.ID); err == nil || to != "" || !ok || !disk.Exists(filepath.Join(root, "agents", m.ID)) {
			t.Errorf("%s: moved to %q, %v, known: %v", what, to, err, ok)
		}
	}
	there("a file in the place of the trash")
	if err := os.Remove(trash); err != nil {
		t.Fatal(err)
	}
	crash.Arm(t, "eacces@trash.rename#1")
	there("a refusal")
	crash.Arm(t, "")
	if to, err := x.Remove(m.ID); err != nil || !disk.Exists(to) {
		t.Errorf("moved to %q, %v", to, err)
	}

	m = create(t, x, chat("2"))
	if err := os.RemoveAll(filepath.Join(root, "agents", m.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Remove(m.ID); err != nil || len(x.All()) > 0 {
		t.Errorf("one that someone else took away: %v, there are %d", err, len(x.All()))
	}
}

// Handles that cannot be read are an error, before and while agents are made, and not none.
func TestHandlesThatCannotBeRead(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	create(t, x, chat("1"))
	path := filepath.Join(root, "agents", "handles.jsonl")
	if err := errors.Join(os.Rename(path, path+"~"), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if m, err := x.Create(chat("2"), []byte("{}\n")); err == nil || len(x.All()) != 1 {
		t.Errorf("made: %+v", m)
	}
	if _, _, err := Load(nil, root, nil); err == nil {
		t.Error("it can be loaded")
	}

	if err := errors.Join(os.Remove(path), os.Rename(path+"~", path)); err != nil {
		t.Fatal(err)
	}
	if m := create(t, x, chat("2")); m.Handle != "1/" {
		t.Errorf("then it has the handle %q", m.Handle)
	}
}

// A link in the place of the handles is not written through, and a line that daycare did not write does not count.
func TestHandlesThatAreNotOurs(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "agents", "handles.jsonl")
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"Ops"}`)
	lines := `{"handle":"x","id":"` + idA + `"}` + "\n" + `{"handle":"7/"}` + "\n" + `{"handle":8,"id":"` + idA + `"}` + "\n"
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	x, found := load(t, root)
	if m, _ := x.Get(idA); m.Handle != "0/" || len(found) != 3 || found[0].ID != "handle-invalid" {
		t.Errorf("it has the handle %q, found %v", m.Handle, found)
	}

	if err := errors.Join(os.Rename(path, path+"~"), os.Symlink(path+"~", path)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(disk.NewVolume(root), root, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it can be loaded through a link")
	}
}

// An agent gets no handle while one that was given cannot be put back into the file from which it was removed.
func TestAHandleThatWasRemovedByHand(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	create(t, x, chat("1"))
	path := filepath.Join(root, "agents", "handles.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	crash.Arm(t, "enospc@handles.write#1")
	if m, err := x.Create(chat("2"), []byte("{}\n")); !errors.Is(err, disk.ErrFull) {
		t.Errorf("made: %+v, %v", m, err)
	}
	crash.Arm(t, "")
	if m := create(t, x, chat("2")); m.Handle != "1/" {
		t.Errorf("then it has the handle %q", m.Handle)
	}
	create(t, x, chat("3"))
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), `"0/"`) != 1 || strings.Count(string(text), `"1/"`) != 1 {
		t.Errorf("the file has %s, %v", text, err)
	}
}

// A handle is durable before the folder of its agent is begun.
func TestAHandleIsDurableFirst(t *testing.T) {
	x, _ := load(t, t.TempDir())
	crash.Meanwhile(t, "folder.mkdir", func(int) { t.Error("the folder is begun") })
	crash.Arm(t, "enospc@handles.sync#1")
	if m, err := x.Create(chat("1"), []byte("{}\n")); err == nil {
		t.Errorf("made: %+v", m)
	}
}

// Agents without an address that are made at once are each their own.
func TestAgentsWithoutAnAddressAtOnce(t *testing.T) {
	x, _ := load(t, t.TempDir())
	var all, begun sync.WaitGroup
	begun.Add(2)
	both := make(chan struct{})
	go func() { begun.Wait(); close(both) }()
	for range 2 {
		all.Go(func() {
			_, err := x.CreateWith(Descriptor{Type: Permanent, Name: "Ops"}, []byte("{}\n"), func(string) error {
				begun.Done()
				select {
				case <-both:
				case <-time.After(10 * time.Second):
					t.Error("the other one is not made")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(x.All()); n != 2 {
		t.Errorf("there are %d", n)
	}
}

// What changed, and what is gone, is reported of all agents, in order, however they are read.
func TestWhatARescanTells(t *testing.T) {
	defer func(was int) { portion = was }(portion)
	portion = 1
	root := t.TempDir()
	x, _ := load(t, root)
	var made []string
	for i := range 5 {
		m := create(t, x, chat(fmt.Sprint(i)))
		put(t, root, m.ID, fmt.Sprintf(`{"type":"user","connector":"telegram","userId":"u","channelId":"%d","systemPrompt":"x"}`, i))
		made = append(made, m.ID)
	}
	slices.Sort(made)
	if diff, _, err := x.Rescan(); err != nil || !slices.Equal(slices.Sorted(maps.Keys(diff.Before)), made) {
		t.Errorf("before are %v, %v, want those of %v", diff.Before, err, made)
	}
	for _, id := range made {
		if err := os.RemoveAll(filepath.Join(root, "agents", id)); err != nil {
			t.Fatal(err)
		}
	}
	if diff, _, err := x.Rescan(); err != nil || !slices.Equal(diff.Removed, made) {
		t.Errorf("removed are %v, %v, want %v", diff.Removed, err, made)
	}
}

// A folder that is gone is no finding, one without its descriptor is.
func TestAFolderThatIsGoneIsNoFinding(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	if r := x.scan.read(idA); r != nil {
		t.Errorf("of no folder: %+v", r)
	}
	if err := os.MkdirAll(filepath.Join(root, "agents", idA), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := x.scan.read(idA); r == nil || len(r.found) != 1 || r.found[0].ID != "descriptor-missing" {
		t.Errorf("of a folder without one: %+v", r)
	}
}

// How many agents were looked at is counted, whatever looks: so a test can tell what grows with their number.
func TestWhatIsLookedAtIsCounted(t *testing.T) {
	x, _ := load(t, t.TempDir())
	parent := create(t, x, chat("1"))
	for i := range 3 {
		create(t, x, Descriptor{Type: Subagent, ParentAgentID: parent.ID, Name: fmt.Sprint(i)})
	}
	for what, tt := range map[string]struct {
		look func()
		want int64
	}{
		"all":      {func() { x.IDs() }, 4},
		"children": {func() { x.Children(parent.ID) }, 3},
		"one":      {func() { x.Get(parent.ID) }, 0},
		"no one":   {func() { x.Children("") }, 0},
		"a rescan": {func() { _, _, _ = x.Rescan() }, 4},
		"one's":    {func() { _, _, _ = x.Rescan(parent.ID) }, 0},
	} {
		before := x.Visited()
		tt.look()
		if got := x.Visited() - before; got != tt.want {
			t.Errorf("%s: %d agents, want %d", what, got, tt.want)
		}
	}
}

// Who looks at one agent that has no handle yet sees it with the one that it will get.
func TestALookAtAnAgentWithoutAHandle(t *testing.T) {
	root := t.TempDir()
	for _, id := range []string{idA, idB} {
		put(t, root, id, `{"type":"permanent","id":"`+id+`","name":"Ops"}`)
		at := time.Unix(int64(len(id))+map[string]int64{idA: 2, idB: 1}[id], 0)
		if err := os.Chtimes(filepath.Join(root, "agents", id, descriptorFile), at, at); err != nil {
			t.Fatal(err)
		}
	}
	look, _, err := Look(root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{idA, idB} {
		all, _, err := Load(nil, root, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := all.Get(id)
		if got, ok := look.Get(id); !ok || got.Handle != want.Handle {
			t.Errorf("it has the handle %q, and will have %q", got.Handle, want.Handle)
		}
	}
}

// A pipe in the place of the index file holds up no start.
func TestAPipeInThePlaceOfTheIndexFile(t *testing.T) {
	v := newVillage(t)
	path := filepath.Join(v.root, IndexFile)
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	v.known()
}

// Agents without a parent are not the children of one without an id.
func TestNoParentHasNoChildren(t *testing.T) {
	x, _ := load(t, t.TempDir())
	create(t, x, chat("1"))
	create(t, x, Descriptor{Type: Permanent, Name: "Ops"})
	if n := len(x.Children("")) + len(x.Made("")) + len(x.Running("")); n > 0 {
		t.Errorf("it has %d", n)
	}
}

// Who only looks writes nothing, not even what is known of the files.
func TestWhoLooksWritesNoIndexFile(t *testing.T) {
	v := newVillage(t)
	path := filepath.Join(v.root, IndexFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	x, _, err := Load(nil, v.root, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.SaveKnown()
	if disk.Exists(path) {
		t.Error("it is there")
	}
}
