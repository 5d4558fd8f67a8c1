package crash

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A reflected is a folder with its mirror.
type reflected struct {
	t   *testing.T
	dir string
	*Mirror
}

func newReflected(t *testing.T) *reflected {
	return &reflected{t, t.TempDir(), OpenMirror(t.TempDir())}
}

func (r *reflected) path(name string) string { return filepath.Join(r.dir, name) }

func (r *reflected) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// sync syncs a file or a folder.
func (r *reflected) sync(name string) {
	r.t.Helper()
	f, err := os.Open(r.path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if err := r.Sync(f, (*os.File).Sync); err != nil {
		r.t.Fatal(err)
	}
}

// id is that of a file or folder.
func (r *reflected) id(name string) string {
	r.t.Helper()
	id, err := FileID(r.path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// kept is the content that is kept of a file, "-" for none.
func (r *reflected) kept(id string) string {
	r.t.Helper()
	data, err := os.ReadFile(r.Path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		r.t.Fatal(err)
	}

	return string(data)
}

// names are those that are kept of a folder, with a journal and without one.
func (r *reflected) names(dir string) (journal, own string) {
	r.t.Helper()
	list := func(m map[string]Name, err error) string {
		if err != nil {
			r.t.Fatal(err)
		}
		var names []string
		for name, n := range m {
			if n.Dir {
				name += "/"
			}
			names = append(names, name)
		}
		slices.Sort(names)

		return strings.Join(names, " ")
	}

	return list(r.Names(r.id(dir))), list(r.OwnNames(r.id(dir)))
}

// What is kept of a file is what it held at its last sync, however it came to that.
func TestAMirrorKeepsWhatWasSynced(t *testing.T) {
	r := newReflected(t)
	r.write("f", "one")
	id := r.id("f")
	if got := r.kept(id); got != "-" {
		t.Errorf("before any sync %q is kept", got)
	}

	long := strings.Repeat("0123456789", 20)
	for _, text := range []string{"one", "one two", "one two", "two one", "two", "", long, long + "more", "x" + long, long[:199] + "y"} {
		before := r.kept(id)
		r.write("f", text)
		if got := r.kept(id); got != before {
			t.Errorf("%.10q is kept before it is synced", got)
		}
		if r.sync("f"); r.kept(id) != text {
			t.Errorf("%q is kept of %q", r.kept(id), text)
		}
	}

	// Another process knows nothing of what is kept already.
	r.write("f", "by another")
	other := &reflected{t, r.dir, OpenMirror(filepath.Dir(r.Path(id)))}
	if other.sync("f"); r.kept(id) != "by another" {
		t.Errorf("%q is kept of what another process synced", r.kept(id))
	}

	at := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(r.path("f"), at, at); err != nil {
		t.Fatal(err)
	}
	r.sync("f")
	if info, err := os.Stat(r.Path(id)); err != nil || !info.ModTime().Equal(at) {
		t.Errorf("the time of the save is not kept: %v, %v", info.ModTime(), err)
	}
}

// A file that is open for writing only, or has no name or another's any more, is kept too.
func TestAMirrorOfAFileWithoutItsName(t *testing.T) {
	for name, move := range map[string]func(path string) error{
		"as it was": func(string) error { return nil },
		"renamed":   func(path string) error { return os.Rename(path, path+".old") },
		"with another": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("other"), 0o600))
		},
		"without a name": os.Remove,
	} {
		r := newReflected(t)
		f, err := os.OpenFile(r.path("f"), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		id := r.id("f")
		_, err = f.WriteString("mine")
		if err := errors.Join(err, move(r.path("f")), r.Sync(f, (*os.File).Sync)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := r.kept(id); got != "mine" {
			t.Errorf("%s: %q is kept", name, got)
		}

		f.Close()
	}
}

// A sync that failed covers nothing.
func TestAFailedSyncKeepsNothing(t *testing.T) {
	r := newReflected(t)
	r.write("f", "one")
	failed := errors.New("failed")
	for _, name := range []string{"f", "."} {
		f, err := os.Open(r.path(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Sync(f, func(*os.File) error { return failed }); err != failed {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
		if err := r.Sync(f, (*os.File).Sync); err == nil {
			t.Errorf("%s: a closed one was synced", name)
		}
	}

	if names, own := r.names("."); names+own != "" || r.kept(r.id("f")) != "-" {
		t.Errorf("kept are the names %q and %q", names, own)
	}
}

// The names of a folder are its files and folders; links are none that anything rests on.
func TestNamesOfAFolder(t *testing.T) {
	r := newReflected(t)
	r.write("f", "")
	if err := errors.Join(os.Mkdir(r.path("d"), 0o700), os.Symlink("f", r.path("l"))); err != nil {
		t.Fatal(err)
	}
	if names, own := r.names("."); names+own != "" {
		t.Errorf("before any sync there are %q and %q", names, own)
	}

	r.sync(".")
	r.write("later", "")
	if names, own := r.names("."); names != "d/ f" || own != "d/ f" {
		t.Errorf("kept are %q and %q", names, own)
	}
	if _, err := List(r.path("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// With a journal a rename is durable in both folders as soon as one of them is synced, and only
// what was renamed: a file that was made, or removed, in the other folder is not.
func TestARenameIsKeptInBothFolders(t *testing.T) {
	for _, synced := range []string{"a", "b"} {
		r := newReflected(t)
		for _, dir := range []string{"a", "b", "c"} {
			if err := os.Mkdir(r.path(dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}

		for _, name := range []string{"a/moves", "a/stays", "a/goes", "b/there", "c/other"} {
			r.write(name, "")
		}
		for _, dir := range []string{"a", "b", "c"} {
			r.sync(dir)
		}

		r.write("b/new", "")
		if err := errors.Join(os.Rename(r.path("a/moves"), r.path("b/moved")), os.Remove(r.path("a/goes")),
			os.Remove(r.path("c/other"))); err != nil {
			t.Fatal(err)
		}
		r.sync(synced)
		a, ownA := r.names("a")
		b, ownB := r.names("b")
		want := [4]string{"goes stays", "goes moves stays", "moved new there", "moved new there"}
		if synced == "a" {
			want = [4]string{"stays", "stays", "moved there", "there"}
		}
		if got := [4]string{a, ownA, b, ownB}; got != want {
			t.Errorf("after a sync of %s there are %q, want %q", synced, got, want)
		}
		if c, own := r.names("c"); c != "other" || own != "other" {
			t.Errorf("of a folder that has nothing to do with it are kept %q and %q", c, own)
		}
	}
}

// What came and what went are both looked for, also where a new file has the old name.
func TestFilesThatPassEachOther(t *testing.T) {
	r := newReflected(t)
	for _, dir := range []string{"a", "b", "c"} {
		if err := os.Mkdir(r.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	r.write("a/in", "")
	r.write("b/out", "")
	for _, dir := range []string{"a", "b", "c"} {
		r.sync(dir)
	}
	if err := errors.Join(os.Rename(r.path("b/out"), r.path("c/out")), os.Rename(r.path("a/in"), r.path("b/in"))); err != nil {
		t.Fatal(err)
	}

	r.write("a/in", "another")
	r.sync("b")
	a, _ := r.names("a")
	b, _ := r.names("b")
	c, _ := r.names("c")
	if a != "" || b != "in" || c != "out" {
		t.Errorf("kept are %q, %q and %q", a, b, c)
	}
}

// A sync of one folder says nothing of a second name in another one, neither that it is there
// nor that it is gone.
func TestASecondNameIsDurableByItsOwnSync(t *testing.T) {
	r := newReflected(t)
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(r.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	r.write("a/f", "")
	r.sync("a")
	r.sync("b")
	if err := os.Link(r.path("a/f"), r.path("b/g")); err != nil {
		t.Fatal(err)
	}

	r.sync("a")
	if b, _ := r.names("b"); b != "" {
		t.Errorf("after a sync of the other folder are kept %q", b)
	}
	r.sync("b")
	if err := os.Remove(r.path("b/g")); err != nil {
		t.Fatal(err)
	}

	r.sync("a")
	if b, _ := r.names("b"); b != "g" {
		t.Errorf("a name that was removed and not synced: kept are %q", b)
	}
}

// A folder that is gone, or whose mirror is, is an error before anything is synced.
func TestWhatCannotBeMirroredIsNotSynced(t *testing.T) {
	r := newReflected(t)
	dir, err := os.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	gone, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if err := os.Remove(gone.Name()); err != nil {
		t.Fatal(err)
	}

	for what, sync := range map[string]func(how func(*os.File) error) error{
		"a folder that is gone": func(how func(*os.File) error) error { return r.Sync(gone, how) },
		"a mirror that is gone": func(how func(*os.File) error) error { return OpenMirror(r.path("none")).Sync(dir, how) },
	} {
		synced := false
		if err := sync(func(*os.File) error { synced = true; return nil }); err == nil || synced {
			t.Errorf("%s: %v, synced: %v", what, err, synced)
		}
	}
}

// Of a folder that is not where it was nothing is believed that was not synced.
func TestAFolderThatWasMovedKeepsItsNames(t *testing.T) {
	r := newReflected(t)
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(r.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	r.write("a/f", "")
	r.sync("a")
	r.sync("b")
	if err := errors.Join(os.Rename(r.path("a/f"), r.path("b/f")), os.Rename(r.path("a"), r.path("z"))); err != nil {
		t.Fatal(err)
	}

	r.sync("b")
	if names, _ := r.names("z"); names != "f" {
		t.Errorf("kept are %q", names)
	}
}

// What is kept and cannot be read is an error, not nothing.
func TestAMirrorThatIsBroken(t *testing.T) {
	r := newReflected(t)
	broken := r.Path(namesFile)
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if names, err := r.Names("id"); err == nil {
		t.Errorf("the names %v are read from it", names)
	}

	if names, err := r.OwnNames("id"); err == nil {
		t.Errorf("the names %v are read from it as those of own syncs", names)
	}

	f, err := os.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := r.Sync(f, (*os.File).Sync); err == nil {
		t.Error("names are kept in it")
	}

	data, _ := json.Marshal(listings{})
	if err := os.WriteFile(broken, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Sync(f, (*os.File).Sync); err != nil {
		t.Errorf("once it is repaired: %v", err)
	}

	gone := OpenMirror(filepath.Join(r.dir, "none"))
	if err := gone.Sync(f, (*os.File).Sync); err == nil {
		t.Error("names are kept where no mirror is")
	}
	r.write("f", "x")
	file, err := os.Open(r.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := gone.Sync(file, (*os.File).Sync); err == nil {
		t.Error("content is kept where no mirror is")
	}
}

// A file that grew is kept by its end: what was durable before is not away for a moment, and a
// long log is not copied at each of its syncs. One that was written anew is copied.
func TestAMirrorKeepsTheEndOfAFileThatGrows(t *testing.T) {
	r := newReflected(t)
	text := strings.Repeat("line of a log\n", 20)
	r.write("log", text)
	r.sync("log")
	before, err := os.Stat(r.Path(r.id("log")))
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		text string
		same bool
	}{{text + "more\n", true}, {text + "more\nand more\n", true}, {"another text, as long as before: " + text + text, false}} {
		id := r.id("log")
		r.write("log", tt.text)
		r.sync("log")
		after, err := os.Stat(r.Path(id))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.kept(id); got != tt.text || os.SameFile(before, after) != tt.same {
			t.Errorf("kept are %d bytes of %d, in the copy of before: %v", len(got), len(tt.text), os.SameFile(before, after))
		}
	}
}

// A sync whose mirror cannot be written failed: what it reflects would pass for lost.
func TestASyncThatCannotBeReflectedFails(t *testing.T) {
	r := newReflected(t)
	r.write("file", "x")
	if err := errors.Join(os.Mkdir(r.Path(r.id("file")), 0o700), os.WriteFile(r.Path(r.id("file"))+"/in the way", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(r.path("file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := r.Sync(f, (*os.File).Sync); err == nil {
		t.Error("a sync that nothing was kept of is done")
	}
}

// Without a mirror a sync is that of the system, and its error is its own.
func TestASyncWithoutAMirror(t *testing.T) {
	f, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := errors.New("the disk is gone")
	called := 0
	for _, how := range []error{nil, want} {
		err := Sync(f, func(*os.File) error { called++; return how })
		if !errors.Is(err, how) {
			t.Errorf("a sync with the error %v reports %v", how, err)
		}
	}
	if called != 2 {
		t.Errorf("synced %d times, want 2", called)
	}
}

// What goes away while it is synced cannot be kept, and that is an error.
func TestWhatGoesAwayDuringASyncIsAnError(t *testing.T) {
	r := newReflected(t)
	r.write("f", "one")
	for name, tt := range map[string]struct {
		open string
		goes func(f *os.File) error
	}{
		"a folder":              {"d", func(f *os.File) error { return os.Remove(f.Name()) }},
		"the current folder":    {".", func(*os.File) error { return os.Remove(r.path("d")) }},
		"a file that is closed": {"f", (*os.File).Close},
	} {
		if err := os.MkdirAll(r.path("d"), 0o700); err != nil {
			t.Fatal(err)
		}
		path := r.path(tt.open)
		if tt.open == "." {
			path = "."
			t.Chdir(r.path("d"))
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Sync(f, tt.goes); err == nil {
			t.Errorf("%s: it is synced", name)
		}
		f.Close()
	}
}

// A folder of which a name cannot be looked at is not kept without it.
func TestANameThatCannotBeLookedAt(t *testing.T) {
	dir := t.TempDir()
	for len(dir) < 4000 {
		dir = filepath.Join(dir, strings.Repeat("d", min(200, 4000-len(dir))))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile(strings.Repeat("f", 200), nil, 0o600); err != nil { // longer than a path may be
		t.Fatal(err)
	}
	if names, err := List(dir); err == nil {
		t.Errorf("the names are %v", names)
	}
	if id, err := FileID(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there is %q, %v", id, err)
	}
}

// What comes to a file while it is synced is not taken for durable.
func TestWhatComesDuringASyncIsNotKept(t *testing.T) {
	r := newReflected(t)
	r.write("log", "one\n")
	f, err := os.OpenFile(r.path("log"), os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, want := range []string{"one\n", "one\nmore\n", "one\nmore\nmore\n"} {
		if err := r.Sync(f, func(*os.File) error { _, err := f.WriteString("more\n"); return err }); err != nil {
			t.Fatal(err)
		}
		if got := r.kept(r.id("log")); got != want {
			t.Errorf("kept is %q, want %q", got, want)
		}
	}
}

// What a sync that failed left of a file is not in the copy that the next one makes.
func TestWhatAFailedSyncLeftIsReplaced(t *testing.T) {
	r := newReflected(t)
	r.write("log", "one\n")
	r.sync("log")
	id := r.id("log")
	f, err := os.OpenFile(r.Path(id), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("tw")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	r.write("log", "one\ntwo\n")
	if r.sync("log"); r.kept(id) != "one\ntwo\n" {
		t.Errorf("kept is %q", r.kept(id))
	}

	// A copy that is gone is made again.
	if err := os.Remove(r.Path(id)); err != nil {
		t.Fatal(err)
	}
	if r.sync("log"); r.kept(id) != "one\ntwo\n" {
		t.Errorf("kept is %q", r.kept(id))
	}
}

// While the names of one folder are read and synced, no other process does that: it could keep
// older names for newer ones.
func TestFoldersAreSyncedOneAfterTheOther(t *testing.T) {
	r := newReflected(t)
	dir, err := os.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	other, synced := OpenMirror(r.Mirror.dir), make(chan error, 1)
	err = r.Sync(dir, func(*os.File) error {
		go func() { synced <- other.Sync(dir, (*os.File).Sync) }()
		select {
		case err := <-synced:
			t.Errorf("another one synced it meanwhile: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		return nil
	})
	if err := errors.Join(err, <-synced); err != nil {
		t.Error(err)
	}
}

// Processes that sync by turns keep what each of them synced, and a sync that covers nothing new writes nothing.
func TestProcessesMirrorByTurns(t *testing.T) {
	r := newReflected(t)
	other := &reflected{t, r.dir, OpenMirror(r.Mirror.dir)}
	if err := errors.Join(os.Mkdir(r.path("a"), 0o700), os.Mkdir(r.path("b"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for n, name := range []string{"a/one", "a/two", "b/three", "a/four", "b/five"} {
		r.write(name, "")
		by := r
		if n%2 == 1 {
			by = other
		}
		by.sync(filepath.Dir(name))
	}
	if err := os.Rename(r.path("a/one"), r.path("b/one")); err != nil {
		t.Fatal(err)
	}
	other.sync("b")
	for _, by := range []*reflected{r, other} {
		a, ownA := by.names("a")
		b, ownB := by.names("b")
		want := [4]string{"four two", "four one two", "five one three", "five one three"}
		if got := [4]string{a, ownA, b, ownB}; got != want {
			t.Errorf("kept are %q, want %q", got, want)
		}
	}

	before, err := os.Stat(r.Path(namesFile))
	if err != nil {
		t.Fatal(err)
	}
	other.sync("b")
	r.sync("b")
	if after, err := os.Stat(r.Path(namesFile)); err != nil || !os.SameFile(before, after) {
		t.Errorf("nothing new was synced, and the names were written: %v", err)
	}
}
