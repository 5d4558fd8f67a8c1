package address

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// A registry plays the other machines: what they have already, and what they refuse.
type registry struct {
	owners map[string]string // address -> id
	taken  map[string]string // handle -> id
	given  map[string]string // id -> the handle that another machine gave it
	err    error
	asked  int
}

func (r *registry) Claim(address, id string) (string, error) {
	r.asked++
	if owner := r.owners[address]; owner != "" {
		id = owner
	}
	return id, r.err
}

func (r *registry) Number(handle, id string) (string, error) {
	if have := r.given[id]; have != "" {
		handle = have
	}
	if r.taken[handle] != "" {
		handle = ""
	}
	return handle, r.err
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

	r.err = errors.New("no servers")
	for _, d := range []Descriptor{chat("3"), {Type: Permanent, ID: idA, Name: "Lab"}} {
		if _, err := x.Create(d, []byte("{}\n")); !errors.Is(err, r.err) || len(x.All()) != 3 {
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
		x.Forget(m.ID)
		if diff, _, err := x.Rescan(); err != nil || !slices.Equal(diff.Added, []string{m.ID}) {
			t.Errorf("%+v, %v", diff, err)
		}
	}
}

// An agent whose folder has its name and cannot be made durable is not there: it is asked for again, and
// there are not two then.
func TestAFolderWhoseNameIsNotDurable(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	crash.Arm(t, "emfile@folder.dirsync#1")
	if m, err := x.Create(chat("1"), []byte("{}\n")); err == nil {
		t.Fatalf("made: %+v", m)
	}
	if left, err := filepath.Glob(filepath.Join(root, "agents", "*", descriptorFile)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	crash.Arm(t, "")
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
