package watch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// fake is a source without a kernel, so that time can be the test's own.
type fake struct {
	events chan fsnotify.Event
	errors chan error

	mu     sync.Mutex
	added  []string         // to all sources
	refuse map[string]error // what add answers
	opens  error            // what open answers
	remote map[string]string
}

func newFake() *fake { return &fake{refuse: map[string]error{}, remote: map[string]string{}} }

// change alters how the fake behaves from now on.
func (f *fake) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) open() (*source, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opens != nil {
		return nil, f.opens
	}
	f.events, f.errors = make(chan fsnotify.Event), make(chan error)
	events := f.events

	return &source{
		events: f.events, errors: f.errors,
		add: func(dir string) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.added = append(f.added, dir)
			return f.refuse[dir]
		},
		remove: func(string) error { return nil },
		close:  func() error { close(events); return nil },
	}, nil
}

// bubble runs a test of two watched directories in synthetic time.
func bubble(t *testing.T, f *fake, test func(t *testing.T, w *Watcher, a, b string, said func() map[string]int)) {
	a, b := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := New(slog.New(slog.DiscardHandler))
		w.open = f.open
		w.remote = func(dir string) string {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.remote[dir]
		}
		counts := map[string]int{}
		hear := func(h Hint) { f.change(func() { counts[h.Dir]++ }) }
		for _, dir := range []string{a, b} {
			w.Add(dir, Options{}, hear)
		}

		said := func() (got map[string]int) {
			synctest.Wait()
			f.change(func() {
				got = map[string]int{"a": counts[a], "b": counts[b]}
				clear(counts)
			})
			return got
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Second)
		said() // the first hints
		test(t, w, a, b, said)
		cancel()
		<-done
	})
}

func wantHints(t *testing.T, got map[string]int, a, b int) {
	t.Helper()
	if got["a"] != a || got["b"] != b {
		t.Errorf("hints = %v, want a:%d b:%d", got, a, b)
	}
}

// TestLimit: only the directory that cannot be watched is looked at by time, and
// it is watched once there is room.
func TestLimit(t *testing.T) {
	f := newFake()
	test := func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		wantHints(t, said(), 0, 0)
		f.change(func() { f.refuse[b] = syscall.ENOSPC })
		w.Add(b, Options{}, w.dirs[b].hear)
		time.Sleep(Rescan + time.Second)
		wantHints(t, said(), 0, 1)
		if got := w.Degraded(); len(got) != 1 || !strings.HasPrefix(got[0], b+": ") || !strings.Contains(got[0], "limit") {
			t.Errorf("Degraded = %q, want %s and the limit", got, b)
		}

		time.Sleep(10 * Rescan)
		wantHints(t, said(), 0, 10)
		f.change(func() { f.refuse[b] = nil })
		time.Sleep(Rescan)
		wantHints(t, said(), 0, 1)
		time.Sleep(time.Hour)
		wantHints(t, said(), 0, 0)
		if got := w.Degraded(); got != nil {
			t.Errorf("Degraded = %q, want none", got)
		}
	}
	bubble(t, f, test)
}

// TestNoSource: without any event queue all directories are looked at by time,
// until there is one.
func TestNoSource(t *testing.T) {
	f := newFake()
	f.opens = syscall.EMFILE
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		time.Sleep(3 * Rescan)
		wantHints(t, said(), 3, 3)
		f.change(func() { f.opens = nil })
		time.Sleep(Rescan)
		wantHints(t, said(), 1, 1)
		time.Sleep(time.Hour)
		wantHints(t, said(), 0, 0)
	})
}

func TestSourceEnds(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		f.change(func() { f.added = nil })
		close(f.events)
		time.Sleep(time.Second)
		wantHints(t, said(), 1, 1)
		if got := w.Degraded(); got != nil {
			t.Errorf("Degraded = %q, want a new source at once", got)
		}
		if all := slices.Sorted(slices.Values(f.added)); !slices.Equal(all, slices.Sorted(slices.Values([]string{a, b}))) {
			t.Errorf("the new source watches %q, want both", all)
		}
		f.events <- fsnotify.Event{Name: a + "/x", Op: fsnotify.Write}
		time.Sleep(time.Second)
		wantHints(t, said(), 1, 0)
	})
}

func TestOverflowHintsAll(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		f.errors <- fsnotify.ErrEventOverflow
		time.Sleep(time.Second)
		wantHints(t, said(), 1, 1)
		f.errors <- errors.New("some other trouble")
		time.Sleep(time.Second)
		wantHints(t, said(), 1, 1)
	})
}

// TestRemoteFileSystem: events come, and it is looked at by time as well.
func TestRemoteFileSystem(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		f.change(func() { f.remote[a] = "NFS" })
		w.Add(a, Options{}, w.dirs[a].hear)
		f.events <- fsnotify.Event{Name: a + "/x", Op: fsnotify.Create}
		time.Sleep(time.Second)
		wantHints(t, said(), 1, 0)
		time.Sleep(2 * Rescan)
		wantHints(t, said(), 2, 0)
		if got := w.Degraded(); len(got) != 1 || !strings.Contains(got[0], "NFS") {
			t.Errorf("Degraded = %q, want the one on NFS", got)
		}
	})
}

// TestChmodAndAbsence: neither an indexer's chmod nor a directory that stays away
// gives a hint.
func TestChmodAndAbsence(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		f.events <- fsnotify.Event{Name: a + "/x", Op: fsnotify.Chmod}
		must(t, os.Remove(b))
		f.events <- fsnotify.Event{Name: b, Op: fsnotify.Remove}
		time.Sleep(time.Second)
		wantHints(t, said(), 0, 1)
		time.Sleep(time.Hour)
		wantHints(t, said(), 0, 0)
		must(t, os.Mkdir(b, 0o700))
		time.Sleep(Rescan + time.Second)
		wantHints(t, said(), 0, 1)
	})
}

// An event of one directory looks at those with something to say or without a watch,
// however many are watched.
func TestAnEventLooksAtNoQuietDirectory(t *testing.T) {
	f, root := newFake(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := New(slog.New(slog.DiscardHandler))
		w.open = f.open
		dir := func(n int) string {
			at := filepath.Join(root, strconv.Itoa(n))
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			return at
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait() // what is added before Run begins gets a hint

		heard := 0
		var last string
		for n := range 100 {
			last = dir(n)
			w.Add(last, Options{}, func(Hint) { heard++ })
		}

		looked := func() int {
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.waiting)
		}
		time.Sleep(time.Minute)
		if n := looked(); n != 0 || heard != 0 {
			t.Errorf("in peace %d directories are looked at, %d hints", n, heard)
		}

		f.events <- fsnotify.Event{Name: filepath.Join(last, "file"), Op: fsnotify.Create}
		if n := looked(); n != 1 {
			t.Errorf("after an event of one %d directories are looked at", n)
		}
		time.Sleep(time.Minute)
		if n := looked(); n != 0 || heard != 1 {
			t.Errorf("after its hint %d directories are looked at, %d hints", n, heard)
		}

		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
