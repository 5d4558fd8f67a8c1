package watch

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// What was removed, or is someone else's by now, is not hinted any more, and the system no
// longer watches it.
func TestWhoIsRemovedHearsNothing(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		var removed []string
		w.source.remove = func(dir string) error { removed = append(removed, dir); return nil }
		f.events <- fsnotify.Event{Name: a + "/x", Op: fsnotify.Write}
		f.events <- fsnotify.Event{Name: b + "/x", Op: fsnotify.Write}
		synctest.Wait() // both are noted, for those who listen now
		w.Remove(a)
		other := 0
		w.Add(b, Options{}, func(Hint) { other++ })
		w.Remove("/never added")
		time.Sleep(time.Minute)
		if wantHints(t, said(), 0, 0); other != 0 || !slices.Equal(removed, []string{a}) {
			t.Errorf("the new listener heard %d hints of before; no longer watched are %q, want %s", other, removed, a)
		}

		f.events <- fsnotify.Event{Name: a + "/x", Op: fsnotify.Write}
		f.events <- fsnotify.Event{Name: b + "/x", Op: fsnotify.Write}
		time.Sleep(time.Minute)
		if wantHints(t, said(), 0, 0); other != 1 {
			t.Errorf("the new listener heard %d hints, want 1", other)
		}
	})

	w := New(slog.New(slog.DiscardHandler))
	w.Add("/a", Options{}, func(Hint) {})
	w.Remove("/a") // nothing runs
	if len(w.dirs) != 0 {
		t.Error("it is still in the table")
	}
}

// Why a directory is looked at by time is logged when it begins and when the reason is
// another one, not at each look; that someone's directory is not there yet is not a warning.
func TestTroubleIsLoggedOnce(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		var log bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&log, nil))
		lines := func() []string {
			said()
			defer log.Reset()
			var levels []string
			for line := range strings.Lines(log.String()) {
				levels = append(levels, strings.TrimPrefix(strings.Fields(line)[1], "level="))
			}
			return levels
		}
		want := func(what string, levels ...string) {
			t.Helper()
			if got := lines(); !slices.Equal(got, levels) {
				t.Errorf("%s: logged %q, want %q", what, got, levels)
			}
		}
		refuse := func(err error) {
			f.change(func() { f.refuse[b] = err })
			w.Add(b, Options{}, func(Hint) {})
		}
		refuse(syscall.ENOSPC)
		time.Sleep(5 * Rescan)
		want("at the limit", "WARN")
		f.change(func() { f.refuse[b] = syscall.EIO })
		time.Sleep(5 * Rescan)
		want("another reason", "WARN")
		f.change(func() { f.refuse[b] = nil })
		time.Sleep(5 * Rescan)
		want("watched again", "INFO")
		w.Add(filepath.Join(a, "later"), Options{}, func(Hint) {})
		time.Sleep(5 * Rescan)
		want("not there yet")
		f.errors <- fsnotify.ErrEventOverflow
		want("too many events", "INFO")
		f.errors <- syscall.EIO
		want("another error", "WARN")
	})
}

// After its end nothing is wrong with a directory: whoever watched it ended that.
func TestAfterTheEndNothingIsWrong(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(hints, 1)
	w.Add(t.TempDir(), quick, func(h Hint) { heard <- h; cancel() })
	must(t, w.Run(ctx))
	heard.overflow(t)
	if left := w.Degraded(); left != nil {
		t.Errorf("%q", left)
	}
}

// Directories without a watch are listed by their names.
func TestDegradedIsInOrder(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler))
	w.open = func() (*source, error) { return nil, syscall.EMFILE }
	root := t.TempDir()
	var names []string
	for _, name := range []string{"d", "b", "e", "a", "c"} {
		dir := filepath.Join(root, name)
		must(t, os.Mkdir(dir, 0o700))
		w.Add(dir, Options{}, func(Hint) {})
		names = append(names, dir)
	}

	w.begin(&sync.WaitGroup{})
	var got []string
	for _, line := range w.Degraded() {
		dir, reason, _ := strings.Cut(line, ": ")
		if got = append(got, dir); !strings.Contains(reason, "queues") {
			t.Errorf("the reason is %q", reason)
		}
	}

	if slices.Sort(names); !slices.Equal(got, names) {
		t.Errorf("%v, want %v", got, names)
	}
	w.end()
	if left := w.Degraded(); left != nil {
		t.Errorf("after the end: %v", left)
	}
}

// A directory that is remade is looked for soon, then less and less often.
func TestHowSoonADirectoryIsLookedForAgain(t *testing.T) {
	for _, tt := range []struct{ away, most time.Duration }{
		{50 * time.Millisecond, firstRetry}, {time.Second, 2 * time.Second}, {time.Hour, Rescan},
	} {
		f := newFake()
		bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
			var at time.Time
			w.Add(b, Options{Debounce: -1}, func(Hint) { at = time.Now() })
			must(t, os.Remove(b))
			f.events <- fsnotify.Event{Name: b, Op: fsnotify.Remove}
			time.Sleep(tt.away)
			must(t, os.Mkdir(b, 0o700))
			back := time.Now()
			time.Sleep(time.Minute)
			said()
			if after := at.Sub(back); after < 0 || after > tt.most {
				t.Errorf("away for %v: found %v after it was back, want at most %v", tt.away, after, tt.most)
			}
		})
	}
}

// Whatever is in the way of a directory is said as it is.
func TestWhyADirectoryIsNotWatched(t *testing.T) {
	root := t.TempDir()
	file, round := filepath.Join(root, "file"), filepath.Join(root, "round")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Symlink(round, round))
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		f.change(func() { f.refuse[a], f.refuse[b] = syscall.ENOSPC, syscall.EACCES })
		for dir, want := range map[string]string{file: "not a directory", round: "too many levels",
			filepath.Join(root, "none"): "no such directory",
			a:                           "limit of watches", b: "permission denied", root: ""} {
			w.Add(dir, Options{}, func(Hint) {})
			reason := ""
			for _, line := range w.Degraded() {
				if rest, ok := strings.CutPrefix(line, dir+": "); ok {
					reason = rest
				}
			}
			if !strings.Contains(reason, want) || want == "" && reason != "" {
				t.Errorf("%s: %q, want %q", dir, reason, want)
			}
		}
	})
}

// What cannot be waited for is an error, not a wait without end.
func TestAMoveThatCannotBeWaitedFor(t *testing.T) {
	root := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Moved(ctx, []string{root, filepath.Join(root, "none")}, func() bool { return false }); err == nil || ctx.Err() != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// Where the system has no more errors to tell, its events still do.
func TestTheEndOfErrorsIsNotTheEnd(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		close(f.errors)
		time.Sleep(time.Second)
		wantHints(t, said(), 0, 0)
		f.events <- fsnotify.Event{Name: a + "/x", Op: fsnotify.Write}
		time.Sleep(time.Second)
		wantHints(t, said(), 1, 0)
	})
}

// The names in a hint are sorted, and each is there once.
func TestTheNamesOfAHint(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		var names []string
		w.Add(a, Options{}, func(h Hint) { names = h.Names })
		for _, name := range strings.Split("hgfedcbabcdefgh", "") {
			f.events <- fsnotify.Event{Name: filepath.Join(a, name), Op: fsnotify.Write}
		}
		time.Sleep(time.Second)
		said()
		if got := strings.Join(names, ""); got != "abcdefgh" {
			t.Errorf("the names are %q", got)
		}
	})
}

// Where the system's events end, everybody hears of it: also of a directory that went away
// unseen.
func TestADirectoryThatGoesWithTheEventsIsHinted(t *testing.T) {
	f := newFake()
	bubble(t, f, func(t *testing.T, w *Watcher, a, b string, said func() map[string]int) {
		must(t, os.Remove(b))
		close(f.events)
		time.Sleep(time.Second)
		wantHints(t, said(), 1, 1)
	})
}

// Run is woken by what it does not know yet: not by what is ignored, and not by more of what is due.
func TestOnlyNewsWakesRun(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler))
	dir := t.TempDir()
	w.Add(dir, Options{Ignore: func(name string) bool { return name == "own" }}, func(Hint) {})
	for _, c := range []struct {
		name string
		want int
	}{{"own", 0}, {"other", 1}, {"other", 0}, {"third", 0}, {"own", 0}} {
		w.note(fsnotify.Event{Name: filepath.Join(dir, c.name), Op: fsnotify.Write})
		if got := len(w.wake); got != c.want {
			t.Errorf("a write to %s: Run is woken %d times, want %d", c.name, got, c.want)
		}
		select {
		case <-w.wake:
		default:
		}
	}

	w.take(time.Now().Add(time.Hour))
	w.note(fsnotify.Event{Name: filepath.Join(dir, "other"), Op: fsnotify.Write})
	if len(w.wake) != 1 {
		t.Error("Run is not woken for the next hint")
	}
}
