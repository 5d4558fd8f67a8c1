package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/crash"
	"daycare/engine/disk"
)

// eachStep runs an operation once for each step of the disk that it makes, on which this fault happens, and once more without.
func eachStep(t *testing.T, fault string, least int, do func(k int, arm func(), met func() bool)) {
	t.Helper()
	for k, more := 1, true; more; k++ {
		var steps func() []string
		came := false
		met := func() bool {
			came = came || len(steps()) > 0
			crash.Arm(t, "")
			return came
		}
		do(k, func() { steps = crash.Arm(t, fmt.Sprintf("%s@#%d", fault, k)) }, met)
		if more = came; !more && k <= least {
			t.Errorf("%s: there are %d steps", fault, k-1)
		}
	}
}

// somewhere reports whether a content is in a file of this name in one of the folders below root.
func somewhere(t *testing.T, root, name, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name && !d.IsDir() {
			data, rerr := os.ReadFile(path)
			found, err = found || string(data) == text, rerr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// Whatever step fails while a folder is built and takes the place of an older one: the error is reported or the folder is there,
// and what was new in the older one is never lost. Built again, it is there, and what was new is kept beside it.
func TestAFolderIsBuiltWhileAStepFails(t *testing.T) {
	want := map[string][]byte{"history.jsonl": []byte("1\n"), "blobs/x": []byte("x")}
	files := map[string]file{}
	for name, data := range want {
		files[name] = file{tail: data}
	}
	for _, fault := range []string{"eio", "eacces"} {
		for _, before := range []string{"nothing", "an edit", "as it was", "cut before"} {
			eachStep(t, fault, 3, func(k int, arm func(), met func() bool) {
				root := t.TempDir()
				copied := func() *workingCopy {
					return &workingCopy{root: root, vol: disk.NewVolume(root), covers: covered, log: slog.New(slog.DiscardHandler)}
				}
				w := copied()
				var old mark
				if before != "nothing" {
					old.Files = map[string]stamp{"state.json": {Size: int64(len("edited")), SHA: sum([]byte("edited"))}}
					if before != "as it was" {
						old.Files = nil
					}
					dirs := []string{w.folder("one")}
					if before == "cut before" {
						dirs = []string{filepath.Join(root, "away", "one.claimed")}
					}
					for _, dir := range append(dirs, w.folder("one")) {
						err := errors.Join(os.MkdirAll(dir, 0o700))
						if dir == dirs[0] {
							err = errors.Join(err, os.WriteFile(filepath.Join(dir, "state.json"), []byte("edited"), 0o600))
						}
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				check := func(again string, err error) {
					t.Helper()
					got, lerr := w.list(w.folder("one"))
					if diff := cmp.Diff(want, got); err == nil && (diff != "" || lerr != nil) {
						t.Errorf("%s, %s at step %d%s: nothing is reported, and (-want +got), %v:\n%s", before, fault, k, again, lerr, diff)
					}
					new := before == "an edit" || before == "cut before"
					if new && !somewhere(t, root, "state.json", "edited") {
						t.Errorf("%s, %s at step %d%s: the edit is lost (%v)", before, fault, k, again, err)
					}
				}
				arm()
				have, err := w.build(t.Context(), nil, "one", files, old)
				failed := met()
				if err == nil && len(have) != len(want) || err != nil && !failed {
					t.Errorf("%s: %d files, %v", before, len(have), err)
				}
				check("", err)
				w = copied()
				if _, err = w.build(t.Context(), nil, "one", files, old); err != nil {
					t.Errorf("%s, %s at step %d, built again: %v", before, fault, k, err)
				}
				check(", built again", err)
				if left, _ := filepath.Glob(filepath.Join(root, "agents", "*")); len(left) != 1 {
					t.Errorf("%s, %s at step %d: there are %q", before, fault, k, left)
				}
				data, err := os.ReadFile(filepath.Join(root, "away", "one", "state.json"))
				if before == "an edit" && (err != nil || string(data) != "edited") {
					t.Errorf("%s, %s at step %d: kept is %q, %v", before, fault, k, data, err)
				}
			})
		}
	}
}

// A removed agent's folder is moved away or stays, whatever step fails: nothing of it is lost, and the caller gets the error.
func TestARemovedAgentsFolderWhileAStepFails(t *testing.T) {
	eachStep(t, "eacces", 1, func(k int, arm func(), met func() bool) {
		root := t.TempDir()
		w := &workingCopy{root: root, vol: disk.NewVolume(root), covers: covered, log: slog.New(slog.DiscardHandler)}
		dir := w.folder("one")
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "state.json"), []byte("kept"), 0o600)); err != nil {
			t.Fatal(err)
		}
		w.writeMark("one", mark{Seq: 1, N: 1})
		if gone, err := w.outlived("one", logged{n: 1, ending: ending{retired: true}}); gone || err != nil {
			t.Errorf("a folder that is as new as the removal is gone: %v, %v", gone, err)
		}
		arm()
		_, err := w.outlived("one", logged{n: 2, ending: ending{retired: true}})
		failed := met()
		if (err != nil) != disk.Exists(dir) || err != nil && !failed || !somewhere(t, root, "state.json", "kept") {
			t.Errorf("at step %d: %v, and the folder is there: %v", k, err, disk.Exists(dir))
		}
		if _, err := w.outlived("one", logged{n: 2, ending: ending{retired: true}}); err != nil || disk.Exists(dir) ||
			!somewhere(t, root, "state.json", "kept") {
			t.Errorf("again after step %d: %v, and the folder is there: %v", k, err, disk.Exists(dir))
		}
	})
}

// Whatever step of the disk fails while files of all machines are brought together, the machine tries again, and nothing is lost.
func TestSharedFilesWhileAStepFails(t *testing.T) {
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	for _, fault := range []string{"eacces", "eio"} {
		agreeing(t, a, b, fault, func(n int) (met func() bool) {
			steps := crash.Arm(t, fmt.Sprintf("%s@#%d", fault, n))
			return func() bool {
				came := len(steps()) > 0
				crash.Arm(t, "")
				a.files.vol = disk.NewVolume(a.root) // as after a restart
				return came
			}
		})
	}
}

// Whatever step of the disk fails while an agent moves from machine to machine, the next owner has all of it.
func TestAnAgentMovesWhileAStepFails(t *testing.T) {
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	eachStep(t, "eacces", 8, func(k int, arm func(), met func() bool) {
		agent := fmt.Sprint("agent", k)
		a.make(agent + "/blobs")
		err := errors.Join(os.WriteFile(a.path(agent, "history.jsonl"), []byte("1\n"), 0o600),
			os.WriteFile(a.path(agent, "blobs/x"), []byte("x"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		a.own(agent)
		a.Release(agent, false)
		arm()
		first := b.Acquire(agent)
		b.Release(agent, false)
		if failed := met(); first != nil && !failed {
			t.Errorf("acquired: %v", first)
		}
		if b.vol.Err() != nil { // the process ends, and is started again
			b.Close()
			b = join(t, s, b.root)
		}
		b.own(agent)
		l := b.open(agent, "history.jsonl")
		add(t, l, "2")
		l.Close()
		b.Release(agent, false)
		a.own(agent)
		got := append(a.lines(agent, "history.jsonl"), a.lines(agent, "blobs/x")...)
		if !slices.Equal(got, []string{"1", "2", "x"}) {
			t.Errorf("at step %d (%v) the next owner has %q", k, first, got)
		}
	})
}
