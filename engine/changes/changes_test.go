package changes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// TestMain is also the process that is killed while it applies.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CHANGES_APPLY"); dir != "" {
		os.Exit(applyAll(dir))
	}
	if dir := os.Getenv("CHANGES_BACK"); dir != "" {
		os.Exit(takeAll(dir))
	}
	os.Setenv("TMPDIR", crashtest.Memory())
	os.Exit(m.Run())
}

func applyAll(dir string) int {
	c, err := read(dir)
	if err == nil {
		var list []Change
		if list, err = c.Changes(context.Background()); err == nil {
			_, err = c.Apply(context.Background(), list, true)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A bench is a folder, and its copy.
type bench struct {
	t    *testing.T
	of   string
	copy Copy
}

func newBench(t *testing.T, files map[string]string) bench {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	b := bench{t: t, of: t.TempDir()}
	for path, text := range files {
		b.put(b.of, path, text)
	}
	var err error
	if b.copy, err = Make(t.Context(), workspace.At(b.of), b.of, "agent", disk.StampOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b bench) put(dir, path, text string) {
	b.t.Helper()
	path = filepath.Join(dir, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

// has is what a folder holds: path and text of each file.
func has(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (b bench) changes() []Change {
	b.t.Helper()
	list, err := b.copy.Changes(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// told is each change in words, to compare.
func told(list []Change) (out []string) {
	for _, c := range list {
		out = append(out, strings.TrimSpace(c.Kind()+" "+c.Path+" "+c.Why()))
	}
	return out
}

func (b bench) expect(want ...string) []Change {
	b.t.Helper()
	list := b.changes()
	if got := told(list); !slices.Equal(got, want) {
		b.t.Fatalf("changes are %q, want %q", got, want)
	}
	return list
}

func (b bench) apply(list []Change, merge bool) (out []string) {
	b.t.Helper()
	results, err := b.copy.Apply(b.t.Context(), list, merge)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range results {
		out = append(out, strings.TrimSpace(string(r.Outcome)+" "+r.Path+" "+r.Why))
	}
	return out
}

func TestACopyHasWhatTheFolderHas(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	of := t.TempDir()
	b := bench{t: t, of: of}
	b.put(of, "src/a.txt", "a\n")
	b.put(of, ".daycare/settings.yaml", "secret")
	b.put(of, "sub/.daycare/x", "secret")
	b.put(of, "run.sh", "#!/bin/sh\n")
	if err := errors.Join(os.Chmod(filepath.Join(of, "run.sh"), 0o755), os.Symlink("src/a.txt", filepath.Join(of, "link")),
		os.Mkdir(filepath.Join(of, "empty"), 0o755)); err != nil {
		t.Fatal(err)
	}
	c, err := Make(t.Context(), workspace.At(of), of, "agent", disk.StampOf(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	b.copy = c
	if got := has(t, c.Tree()); len(got) != 2 || got["src/a.txt"] != "a\n" {
		t.Errorf("the copy has %q", got)
	}
	info, err := os.Stat(filepath.Join(c.Tree(), "run.sh"))
	target, lerr := os.Readlink(filepath.Join(c.Tree(), "link"))
	if err != nil || lerr != nil || info.Mode().Perm() != 0o755 || target != "src/a.txt" {
		t.Error(info, target, err, lerr)
	}
	b.expect()
	if found, ok := Of(c.Tree()); !ok || found.Of != c.Of {
		t.Errorf("the copy of the tree is %+v", found)
	}
	for path, want := range map[string]string{filepath.Join(c.Of, "src/a.txt"): filepath.Join(c.Tree(), "src/a.txt"),
		c.Of: c.Tree(), filepath.Join(c.Tree(), "x"): filepath.Join(c.Tree(), "x"), "/etc/passwd": "/etc/passwd"} {
		if got := Inside(c.Tree(), path); got != want {
			t.Errorf("%s is %s in the copy, want %s", path, got, want)
		}
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if all, err := List(workspace.At(of)); err != nil || len(all.Copies)+len(all.Halves) > 0 {
		t.Error(all, err)
	}
}

func TestChangesAreAppliedOneByOne(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n", "b": "1\n", "c": "1\n", "dir/d": "1\n", "gone": "1\n", ".git/HEAD": "x"})
	tree := b.copy.Tree()
	for _, path := range []string{"a", "b", "dir/d", "new/deep/e", ".envrc", ".git/HEAD"} {
		b.put(tree, path, "2\n")
	}
	if err := errors.Join(os.Remove(filepath.Join(tree, "gone")), os.Chmod(filepath.Join(tree, "c"), 0o755)); err != nil {
		t.Fatal(err)
	}
	list := b.expect("added .envrc", "changed a", "changed b", "changed c", "changed dir/d", "removed gone", "added new/deep/e")
	if !list[0].Later || list[1].Later {
		t.Error("of these .envrc alone runs later")
	}
	got := b.apply(list[1:4], false)
	if want := []string{"done a", "done b", "done c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	files := has(t, b.of)
	if files["a"] != "2\n" || files["dir/d"] != "1\n" || files["gone"] != "1\n" || files["new/deep/e"] != "" {
		t.Errorf("the folder has %q", files)
	}
	info, err := os.Stat(filepath.Join(b.of, "c"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info, err)
	}
	rest := b.expect("added .envrc", "changed dir/d", "removed gone", "added new/deep/e")
	b.apply(rest, false)
	files = has(t, b.of)
	if _, there := files["gone"]; there || files["new/deep/e"] != "2\n" || files["dir/d"] != "2\n" {
		t.Errorf("the folder has %q", files)
	}
	b.expect()
	b.put(tree, "a", "3\n") // the work goes on from what was applied
	if got := b.apply(b.expect("changed a"), false); !slices.Equal(got, []string{"done a"}) {
		t.Error(got)
	}
}

func TestWhatChangedMeanwhileIsLeftAlone(t *testing.T) {
	text := "one\ntwo\nthree\nfour\nfive\nsix\n"
	b := newBench(t, map[string]string{"a": text, "b": text, "c": text, "same": text})
	for _, path := range []string{"a", "b", "c", "same"} {
		b.put(b.copy.Tree(), path, strings.Replace(text, "two", "TWO", 1))
	}
	b.put(b.of, "a", strings.Replace(text, "five", "FIVE", 1))
	b.put(b.of, "b", strings.Replace(text, "two", "Zwei", 1))
	if err := os.Remove(filepath.Join(b.of, "c")); err != nil {
		t.Fatal(err)
	}
	b.put(b.of, "same", strings.Replace(text, "two", "TWO", 1))
	list := b.expect("changed a it has changed since", "changed b it has changed since", "changed c it has changed since")
	before := has(t, b.of)
	for _, line := range b.apply(list, false) {
		if !strings.HasPrefix(line, "refused ") {
			t.Error(line)
		}
	}
	if after := has(t, b.of); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("%q became %q", before, after)
	}

	got := b.apply(list, true)
	want := []string{"done a", "refused b it has changed since and cannot be merged: both sides changed line 2, or lines beside it",
		"refused c one side removed it, the other changed it"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	both := "one\nTWO\nthree\nfour\nFIVE\nsix\n"
	if a, own := has(t, b.of)["a"], has(t, b.copy.Tree())["a"]; a != both || own != both {
		t.Errorf("merged to %q, and in the copy %q", a, own)
	}
	b.expect("changed b it has changed since", "changed c it has changed since")
}

// A file that the agent made a folder of keeps no other change from being applied, and is one when the file is gone.
func TestAFileThatBecameAFolder(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n", "c": "1\n"})
	tree := b.copy.Tree()
	if err := os.Remove(filepath.Join(tree, "a")); err != nil {
		t.Fatal(err)
	}
	b.put(tree, "a/b", "2\n")
	b.put(tree, "c", "2\n")
	got := b.apply(b.expect("removed a", "added a/b in the folder not a directory", "changed c"), false)
	if want := []string{"done a", "refused a/b in the folder not a directory", "done c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := b.apply(b.expect("added a/b"), false); !slices.Equal(got, []string{"done a/b"}) {
		t.Errorf("where the file is gone: %q", got)
	}
}

// A mode that one side changed is that of the merged file; if both did, they are not merged.
func TestMergedModes(t *testing.T) {
	text := "one\ntwo\nthree\nfour\nfive\nsix\n"
	b := newBench(t, map[string]string{"agents": text, "both": text, "theirs": text})
	for _, path := range []string{"agents", "both", "theirs"} {
		b.put(b.copy.Tree(), path, strings.Replace(text, "two", "TWO", 1))
		b.put(b.of, path, strings.Replace(text, "five", "FIVE", 1))
	}
	err := errors.Join(os.Chmod(filepath.Join(b.copy.Tree(), "agents"), 0o755), os.Chmod(filepath.Join(b.copy.Tree(), "both"), 0o755),
		os.Chmod(filepath.Join(b.of, "both"), 0o600), os.Chmod(filepath.Join(b.of, "theirs"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	got := b.apply(b.changes(), true)
	want := []string{"done agents", "refused both it has changed since and cannot be merged: both sides changed its mode", "done theirs"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for path, want := range map[string]os.FileMode{"agents": 0o755, "both": 0o600, "theirs": 0o600} {
		info, err := os.Stat(filepath.Join(b.of, path))
		if err != nil || info.Mode() != want {
			t.Errorf("%s has the mode %v, want %v: %v", path, info.Mode(), want, err)
		}
	}
	b.expect("changed both it has changed since")
}

// What an agent, or someone else, puts in the way is not followed and not overwritten.
func TestWhatIsNoFileIsLeftAlone(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n", "dir/b": "1\n", "c": "1\n", "d": "1\n"})
	tree, outside := b.copy.Tree(), filepath.Join(t.TempDir(), "outside")
	b.put(filepath.Dir(outside), "outside", "private\n")
	for _, path := range []string{"a", "dir/b"} {
		b.put(tree, path, "2\n")
	}
	err := errors.Join(os.Remove(filepath.Join(tree, "c")), os.Symlink(outside, filepath.Join(tree, "c")),
		os.Remove(filepath.Join(tree, "d")), os.Link(outside, filepath.Join(tree, "d")),
		os.Remove(filepath.Join(b.of, "a")), os.Symlink(outside, filepath.Join(b.of, "a")),
		os.RemoveAll(filepath.Join(b.of, "dir")), os.Symlink(filepath.Dir(outside), filepath.Join(b.of, "dir")))
	if err != nil {
		t.Fatal(err)
	}
	list := b.changes()
	if len(list) != 4 {
		t.Fatal(told(list))
	}
	for _, line := range b.apply(list, true) {
		if !strings.HasPrefix(line, "refused ") {
			t.Error(line)
		}
	}
	if got := has(t, filepath.Dir(outside)); len(got) != 1 || got["outside"] != "private\n" {
		t.Errorf("outside there is %q", got)
	}
}

// cutCopies cuts a file as soon as a copy of it is being made, which would fill the disk, until stop is called.
func cutCopies(t *testing.T, of, file string) (stop func()) {
	t.Helper()
	home, err := Home(workspace.At(of))
	if err != nil {
		t.Fatal(err)
	}
	begun := filepath.Join(home, newName+"*", treeName, filepath.Base(file))
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if copies, _ := filepath.Glob(begun); len(copies) > 0 {
				_ = os.Truncate(file, 0)
			}
		}
	}()
	return func() { close(over); <-ended }
}

func TestNoRoom(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	of := t.TempDir()
	f, err := os.Create(filepath.Join(of, "sparse"))
	if err == nil {
		err = errors.Join(f.Truncate(1<<43), f.Close())
	}
	if err != nil {
		t.Skip("no sparse files here:", err)
	}
	defer cutCopies(t, of, f.Name())()
	_, err = Make(t.Context(), workspace.At(of), of, "agent", disk.StampOf(time.Now()))
	var none *NoRoom
	if !errors.As(err, &none) || !strings.HasPrefix(err.Error(), "copy "+of+": ") {
		t.Fatal(err)
	}
	if got := (&NoRoom{5<<20 + 1, -1}).Error(); got != "the copy needs 6 MB and the disk has 0 MB to spare" {
		t.Error(got)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := os.Remove(filepath.Join(of, "sparse")); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(stopped, workspace.At(of), of, "agent", disk.StampOf(time.Now())); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	home, err := Home(workspace.At(of))
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Error("copies that were not made whole leave", left, err)
	}
}

// An apply of which a step fails says so, and can be tried again.
func TestFailedApplies(t *testing.T) {
	for _, fault := range []string{"eio", "eacces"} {
		failedApplies(t, fault)
	}
}

func failedApplies(t *testing.T, fault string) {
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		b := newBench(t, map[string]string{"a": "1\n", "b": "1\n"})
		b.put(b.copy.Tree(), "a", "2\n")
		b.put(b.copy.Tree(), "new/c", "2\n")
		list := b.changes()
		return func() error {
			results, err := b.copy.Apply(context.Background(), list, false)
			if err == nil && len(Refusals(results)) > 0 {
				err = errors.New(Refusals(results)[0].Why)
			}
			return err
		}
	})
}

// A merge that was cut between the folder and the copy loses neither side's change, whatever the
// agent does before the next command.
func TestTheAgentGoesOnWhileAMergeIsCut(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n"})
	tree := b.copy.Tree()
	b.put(tree, "a", "ONE\n2\n3\n4\n5\n6\n7\n")
	b.put(b.of, "a", "1\n2\n3\n4\n5\n6\nSEVEN\n")
	met := crash.Arm(t, "eio@changes.file.rename#2")
	if _, err := b.copy.Apply(t.Context(), b.changes(), true); err == nil || len(met()) == 0 {
		t.Fatalf("nothing failed: %v", err)
	}
	crash.Arm(t, "")

	b.put(tree, "a", "ONE\n2\n3\nFOUR\n5\n6\n7\n")
	if err := b.copy.Resume(); err != nil {
		t.Fatal(err)
	}
	b.apply(b.expect("changed a it has changed since"), true)
	want := "ONE\n2\n3\nFOUR\n5\n6\nSEVEN\n"
	if got := has(t, b.of)["a"]; got != want {
		t.Errorf("the folder has %q, want %q", got, want)
	}
	if got := has(t, tree)["a"]; got != want {
		t.Errorf("the copy has %q, want %q", got, want)
	}
}

// A file that cannot be written is left alone; it keeps neither the others nor the next command.
func TestWhatCannotBeWrittenIsLeftAlone(t *testing.T) {
	for _, step := range []string{"eacces@changes.file.rename#1", "eacces@changes.file.sync#1"} {
		b := newBench(t, map[string]string{"a": "1\n", "b": "1\n"})
		b.put(b.copy.Tree(), "a", "2\n")
		b.put(b.copy.Tree(), "b", "2\n")
		list := b.changes()
		crash.Arm(t, step)
		got := b.apply(list, false)
		crash.Arm(t, "")
		if want := []string{"refused a permission denied", "done b"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
		if got := b.apply(b.expect("changed a"), false); !slices.Equal(got, []string{"done a"}) {
			t.Errorf("%s: the next try: %q", step, got)
		}
	}
}

// A step of making a copy that fails makes none.
func TestFailedCopies(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	of := t.TempDir()
	if err := os.WriteFile(filepath.Join(of, "a"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		return func() error {
			_, err := Make(context.Background(), workspace.At(of), of, "agent", disk.StampOf(time.Now()))
			return err
		}
	})
}

func TestOneApplyAtATime(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n"})
	err := b.copy.store().Locked(b.copy.settle, func() error {
		_, err := b.copy.Apply(t.Context(), nil, false)
		return err
	})
	if !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct{ name, base, ours, theirs, want string }{
		{"both ends", "a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n", "A\nb\nc\nD\n"},
		{"the same", "a\nb\n", "a\nB\n", "a\nB\n", "a\nB\n"},
		{"added apart", "a\nb\nc\n", "x\na\nb\nc\n", "a\nb\nc\ny\n", "x\na\nb\nc\ny\n"},
		{"one removes", "a\nb\nc\nd\n", "b\nc\nd\n", "a\nb\nc\nd\ne\n", "b\nc\nd\ne\n"},
		{"the same line", "a\nb\n", "a\nB\n", "a\nBB\n", ""},
		{"neighbours", "a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n", ""},
		{"inside what the other removed", "a\nb\nc\nd\n", "a\nd\n", "a\nb\nx\nc\nd\n", ""},
		{"both add there", "a\n", "a\nx\n", "a\ny\n", ""},
		{"no text", "a\n", "a\x00\n", "b\n", ""},
		{"no text to begin with", "a\xff\nb\nc\n", "A\xff\nb\nc\n", "a\xff\nb\nC\n", ""},
		{"no text from the others", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\xff\n", ""},
		{"NUL at another line", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\x00\n", ""},
	} {
		got, err := Merge(tt.base, tt.ours, tt.theirs)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// Merging with a side that changed nothing gives the other.
func FuzzMerge(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\n", "x\na\nb\nc\n")
	f.Add("", "a", "b\n")
	f.Fuzz(func(t *testing.T, base, ours, theirs string) {
		if merged, err := Merge(base, ours, base); err == nil && merged != ours {
			t.Errorf("%q and no change of %q: %q", ours, base, merged)
		}
		one, err := Merge(base, ours, theirs)
		other, err2 := Merge(base, theirs, ours)
		if (err == nil) != (err2 == nil) || err == nil && one != other {
			t.Errorf("%q and %q of %q: %q, %q, %v, %v", ours, theirs, base, one, other, err, err2)
		}
	})
}

// A copy that cannot be read hides no other, and one that a crash left unfinished is none.
func TestOneBrokenCopyHidesNoOther(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n"})
	home := filepath.Dir(b.copy.Dir)
	for path, text := range map[string]string{"torn/copy.json": `{"of":"/x`, "far/copy.json": `{"of":"x"}`,
		"gone/tree/a": "1", "no-folder": "1", newName + "half/tree/a": "1"} {
		b.put(home, path, text)
	}
	shelf, err := List(workspace.At(b.of))
	if err != nil || len(shelf.Copies) != 1 || len(shelf.Broken) != 4 || len(shelf.Halves) != 1 {
		t.Fatalf("%+v %v", shelf, err)
	}
	for i, name := range []string{"far", "gone", "no-folder", "torn"} {
		if !strings.Contains(shelf.Broken[i].Error(), filepath.Join(name, "copy.json")) {
			t.Errorf("it is not said which copy is broken: %v", shelf.Broken[i])
		}
	}
	if err := os.Chmod(filepath.Join(shelf.Halves[0], "tree"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := Discard(shelf.Halves[0]); err != nil {
		t.Error(err)
	}
	if err := RemoveAll(workspace.At(b.of)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(home); err == nil {
		t.Error("the folder of the copies is there")
	}
}

// A copy has the modes of the files, and large ones as they are; what an apply overwrites is kept.
func TestModesAndLargeFiles(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20_000)
	b := bench{t: t, of: t.TempDir()}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	b.put(b.of, "large", large)
	b.put(b.of, "bin", "\xff\xfe")
	b.put(b.of, "run.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(b.of, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.copy, err = Make(t.Context(), workspace.At(b.of), b.of, "agent", disk.StampOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"run.sh": 0o755, "large": 0o644} {
		if info, err := os.Stat(filepath.Join(b.copy.Tree(), name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if got := has(t, b.copy.Tree())["large"]; got != large {
		t.Errorf("the large file has %d bytes in the copy", len(got))
	}
	b.expect()
	b.put(b.copy.Tree(), "large", large[:len(large)-1]+"!")
	b.put(b.copy.Tree(), "bin", "\xff\xff")
	if err := os.Chmod(filepath.Join(b.copy.Tree(), "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.apply(b.expect("changed bin", "changed large", "changed run.sh"), false)
	b.expect()
	if got := has(t, b.of); got["large"] != large[:len(large)-1]+"!" || got["bin"] != "\xff\xff" {
		t.Errorf("the folder has %d bytes, %q", len(got["large"]), got["bin"])
	}
	for _, before := range []string{large, "\xff\xfe", "#!/bin/sh\n"} {
		if got, err := b.copy.store().Get(StateOf([]byte(before), 0o644)); err != nil || string(got) != before {
			t.Errorf("what was overwritten is not kept: %d bytes, %v", len(got), err)
		}
	}
	b.put(b.of, "large", large)
	b.put(b.copy.Tree(), "large", large[1:])
	got := b.apply(b.expect("changed large it has changed since"), true)
	if len(got) != 1 || !strings.HasPrefix(got[0], "refused large it has changed since and cannot be merged: it is too large") {
		t.Errorf("a merge of what is too large: %q", got)
	}
}
