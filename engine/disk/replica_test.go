package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/disk/disktest"
)

// replicated are the files of these tests that a replica covers.
func replicated(rel string) bool {
	return slices.Contains([]string{"log.jsonl", "old/1.jsonl", "old/2.jsonl", "state.json", "blob"}, rel)
}

// A writer works on a folder that is replicated.
type writer struct {
	vol *disk.Volume
	dir string
	log *disk.Log
}

func newWriter(dir string, r disk.Replica, local bool) (*writer, error) {
	w := &writer{vol: disk.NewVolume(dir), dir: dir}
	w.vol.Replicate(r, local)
	return w, w.open()
}

func (w *writer) open() (err error) {
	w.log, _, err = w.vol.OpenLog(w.path("log.jsonl"), disk.LogOptions{Name: "history"})
	return err
}

func (w *writer) path(rel string) string { return filepath.Join(w.dir, rel) }

// add appends lines and syncs them, after a hand edit on top of what it left.
func (w *writer) add(lines ...string) error {
	for _, line := range lines {
		_, err := w.log.Append([]byte(line + "\n"))
		if errors.Is(err, disk.ErrChanged) {
			var release func()
			if _, release, err = w.log.Reload(); err == nil {
				_, err = w.log.Append([]byte(line + "\n"))
			}
			release()
		}
		if err != nil {
			return err
		}
	}

	return w.log.Barrier()
}

// works is a life of a folder. Each step changes the replica once, or not at all.
var works = []struct {
	name string
	do   func(w *writer) error
}{
	{"one line", func(w *writer) error { return w.add("a") }},
	{"two lines, one barrier", func(w *writer) error { return w.add("b", "c") }},
	{"a barrier with nothing new", func(w *writer) error { return w.log.Barrier() }},
	{"a new file", func(w *writer) error { return w.vol.WriteFile("state", w.path("state.json"), []byte("{}")) }},
	{"a file replaced", func(w *writer) error { return w.vol.WriteFile("state", w.path("state.json"), []byte(`{"a":1}`)) }},
	{"a draft is nobody's", func(w *writer) error { return w.vol.WriteDraft("draft", w.path("draft.json"), []byte("x")) }},
	{"an exchange", func(w *writer) error {
		_, err := w.vol.Exchange("state", w.path("state.json"), []byte(`{"a":2}`), []byte(`{"a":1}`))
		return err
	}},
	{"an amendment", func(w *writer) error {
		_, err := w.vol.Amend("state", w.path("state.json"), []byte(`{"a":3}`), []byte(`{"a":2}`))
		return err
	}},
	{"an exchange of a new file", func(w *writer) error {
		_, err := w.vol.Exchange("edit", w.path("blob"), []byte("blob"), nil)
		return err
	}},
	{"a removal", func(w *writer) error { return w.vol.Remove("history.rotate", w.path("blob")) }},
	{"a hand edit", func(w *writer) error {
		data, err := os.ReadFile(w.path("log.jsonl"))
		if err == nil {
			err = os.WriteFile(w.path("log.jsonl"), bytes.Replace(data, []byte("b"), []byte("by hand"), 1), 0o600)
		}
		return errors.Join(err, w.add("d"))
	}},
	{"a line after it", func(w *writer) error { return w.add("e") }},
	{"opened again", func(w *writer) error { return errors.Join(w.log.Close(), w.open(), w.log.Barrier()) }},
	{"a line after that", func(w *writer) error { return w.add("f") }},
	{"a rotation that keeps the old file", func(w *writer) error {
		return w.log.Replace([]byte("g\n"), w.path("old/1.jsonl"))
	}},
	{"a line of the new file", func(w *writer) error { return w.add("h") }},
	{"a rotation that keeps nothing", func(w *writer) error { return w.log.Replace([]byte("i\n"), "") }},
	{"a file cut short by hand", func(w *writer) error {
		return errors.Join(os.Truncate(w.path("log.jsonl"), 0), w.add("j"))
	}},
	{"a file cut short while nobody has it open", func(w *writer) error {
		return errors.Join(w.log.Close(), os.Truncate(w.path("log.jsonl"), 0), w.open(), w.add("k"))
	}},
}

// folder is what is in dir of the files that are replicated.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || !d.Type().IsRegular() || !replicated(rel) {
			return err
		}
		data, err := os.ReadFile(path)
		files[rel] = string(data)

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return files
}

// lives is what the folder has after each of the works, by number; lives[0] is before them.
func lives(t *testing.T) (list []map[string]string) {
	t.Helper()
	dir := t.TempDir()
	r := disktest.New(dir, replicated, nil)
	w, err := newWriter(dir, r, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { w.log.Close() }()
	list = append(list, r.Files())
	for _, work := range works {
		if err := work.do(w); err != nil {
			t.Fatalf("%s: %v", work.name, err)
		}
		list = append(list, folder(t, dir))
	}

	return list
}

// After each operation the replica is the folder, whether the disk is synced or not.
func TestReplicaIsTheFolder(t *testing.T) {
	for _, local := range []bool{true, false} {
		t.Run(fmt.Sprintf("local sync %v", local), func(t *testing.T) {
			dir := t.TempDir()
			r := disktest.New(dir, replicated, nil)
			w, err := newWriter(dir, r, local)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { w.log.Close() }()
			for _, work := range works {
				before := len(r.Calls())
				if err := work.do(w); err != nil {
					t.Fatalf("%s: %v", work.name, err)
				}
				if there, here := r.Files(), folder(t, dir); !maps.Equal(there, here) {
					t.Errorf("%s: the replica has %q\nthe folder %q", work.name, there, here)
				}
				if n := len(r.Calls()) - before; n > 1 {
					t.Errorf("%s: %d changes of the replica: %q", work.name, n, r.Calls()[before:])
				}
			}
		})
	}
}

// A log that another program cut short before it was shipped is at the replica as it is now, in the end.
func TestALogThatIsCutShortBeforeItIsReplicated(t *testing.T) {
	dir := t.TempDir()
	r := disktest.New(dir, replicated, nil)
	w, err := newWriter(dir, r, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { w.log.Close() }()
	if err := w.add("aaaa"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.log.Append([]byte("b\n")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Truncate(w.path("log.jsonl"), 3), w.log.Barrier()); err != nil {
		t.Fatal(err)
	}
	if there, here := r.Files(), folder(t, dir); !maps.Equal(there, here) {
		t.Errorf("the replica has %q, the folder %q", there, here)
	}
}

// The replica gets what is new, not the whole file again.
func TestReplicaGetsWhatIsNew(t *testing.T) {
	dir := t.TempDir()
	r := disktest.New(dir, replicated, nil)
	w, err := newWriter(dir, r, true)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.add("line"); err != nil {
			t.Fatal(err)
		}
	}
	w.log.Close()
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	defer w.log.Close()
	if err := w.add("line"); err != nil {
		t.Fatal(err)
	}
	own := w.path("here alone.json")
	if err := errors.Join(w.vol.WriteFile("state", own, []byte("{}")), w.vol.Remove("state", own)); err != nil {
		t.Errorf("a file that is not replicated: %v", err)
	}
	want := []string{"append log.jsonl", "append log.jsonl", "append log.jsonl", "append log.jsonl"}
	if got := r.Calls(); !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
}

// A barrier that failed on this disk alone is made again: the replica gets what it lacks.
func TestBarrierThatFailedHereAlone(t *testing.T) {
	dir := t.TempDir()
	r := disktest.New(dir, replicated, nil)
	w, err := newWriter(dir, r, true)
	if err != nil {
		t.Fatal(err)
	}
	defer w.log.Close()
	crash.Arm(t, "emfile@log.dirsync#1")
	if err := w.add("a"); !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("a barrier without a descriptor: %v", err)
	}
	crash.Arm(t, "")
	if err := w.add("b"); err != nil {
		t.Error(err)
	}
	if got, want := r.Files()["log.jsonl"], "a\nb\n"; got != want {
		t.Errorf("the replica has %q, want %q", got, want)
	}
}

// unreachable is a replica whose appends wait until it ends.
type unreachable struct {
	disk.Replica
	end chan struct{}
}

func (u unreachable) Append(string, int64, []byte) error { <-u.end; return disk.ErrAway }

// A barrier that fails because this disk does says so at once: a replica that cannot be reached is not waited for.
func TestAFailedDiskDoesNotWaitForTheReplica(t *testing.T) {
	dir := t.TempDir()
	r := unreachable{disktest.New(dir, replicated, nil), make(chan struct{})}
	defer close(r.end)
	w, err := newWriter(dir, r, true)
	if err != nil {
		t.Fatal(err)
	}
	crash.Arm(t, "eio@history.sync#1")
	done := make(chan error, 1)
	go func() { done <- w.add("a") }()
	select {
	case err := <-done:
		if !errors.Is(err, disk.ErrFailed) {
			t.Errorf("a barrier on a failed disk: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the replica")
	}
	w.log.Close()
}

// live does the works until one of them fails, and returns how many succeeded.
func live(dir string, r disk.Replica, did func(n int)) (done int) {
	w, err := newWriter(dir, r, true)
	if err != nil {
		return 0
	}
	defer func() { w.log.Close() }()
	for n, work := range works {
		if err := work.do(w); err != nil {
			return n
		}
		if did != nil {
			did(n + 1)
		}
	}

	return len(works)
}

// oneOf checks that a replica is as after n works, or as after one more.
func oneOf(t *testing.T, got map[string]string, want []map[string]string, n int) {
	t.Helper()
	if maps.Equal(got, want[n]) || n < len(works) && maps.Equal(got, want[n+1]) {
		return
	}
	t.Errorf("after %d operations the replica has %q\nwant %q\nor %q", n, got, want[n], want[min(n+1, len(works))])
}

// liveAndKeep writes down what the replica has and how many works are done, each in one
// step, so that it outlives the process.
func liveAndKeep(t *testing.T, dir string) {
	t.Helper()
	work := filepath.Join(dir, "work")
	put := func(name string, data []byte) {
		err := os.WriteFile(filepath.Join(dir, ".new"), data, 0o600)
		if err == nil {
			err = os.Rename(filepath.Join(dir, ".new"), filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}

	all := map[string][]byte{}
	r := disktest.New(work, replicated, func(files map[string][]byte) {
		maps.Copy(all, files)
		var b strings.Builder
		for rel, data := range all {
			if data != nil {
				fmt.Fprintf(&b, "%q %q\n", rel, data)
			}
		}
		put("replica", []byte(b.String()))
	})
	live(work, r, func(n int) { put("done", []byte(strconv.Itoa(n))) })
}

// kept reads what liveAndKeep wrote.
func kept(t *testing.T, dir string) (done int, files map[string]string) {
	t.Helper()
	files = map[string]string{}
	data, _ := os.ReadFile(filepath.Join(dir, "replica")) // none: it died before
	for line := range strings.Lines(string(data)) {
		var rel, content string
		if _, err := fmt.Sscanf(line, "%q %q", &rel, &content); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		files[rel] = content
	}
	if data, err := os.ReadFile(filepath.Join(dir, "done")); err == nil {
		done, _ = strconv.Atoi(string(data))
	}

	return done, files
}

// A writer that was replaced is told by its next barrier, and the disk is as good as before.
func TestFencedWriter(t *testing.T) {
	dir := t.TempDir()
	r := disktest.New(dir, replicated, nil)
	w, err := newWriter(dir, r, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.add("mine"); err != nil {
		t.Fatal(err)
	}

	r.Fence()
	checks := map[string]func() error{
		"barrier": func() error { return w.add("late") },
		"file":    func() error { return w.vol.WriteFile("state", w.path("state.json"), []byte("{}")) },
		"rotate":  func() error { return w.log.Replace([]byte("x\n"), "") },
		"remove":  func() error { return w.vol.Remove("state", w.path("blob")) },
	}
	for name, check := range checks {
		if err := check(); !errors.Is(err, disk.ErrFenced) || errors.Is(err, disk.ErrFailed) {
			t.Errorf("%s: %v, want ErrFenced", name, err)
		}
	}
	if err := w.vol.Err(); err != nil {
		t.Errorf("that failed the volume: %v", err)
	}
	if err := w.log.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if got := r.Files()["log.jsonl"]; got != "mine\n" {
		t.Errorf("the replica has %q", got)
	}
}

func TestAway(t *testing.T) {
	v := disk.NewVolume(t.TempDir())
	if v.Away() {
		t.Error("a volume without a replica is away from it")
	}
	r := disktest.New(t.TempDir(), replicated, nil)
	v.Replicate(r, true)
	for _, away := range []bool{true, false} {
		if r.SetAway(away); v.Away() != away {
			t.Errorf("Away is %v", !away)
		}
	}
}
