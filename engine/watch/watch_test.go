package watch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs w until the test ends and fails the test if Run does not end then.
func start(t *testing.T, w *Watcher) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(time.Minute):
			t.Error("Run did not return after its context ended")
		}
	})
}

// hints collects what is said of a directory until a hint satisfies want.
type hints chan Hint

func (h hints) hear(x Hint) { h <- x }

func (h hints) until(t *testing.T, what string, want func(Hint) bool) Hint {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case x := <-h:
			if want(x) {
				return x
			}
		case <-timeout:
			t.Fatalf("no hint %s within 5 s", what)
		}
	}
}

func (h hints) naming(t *testing.T, name string) {
	t.Helper()
	h.until(t, "naming "+name, func(x Hint) bool { return slices.Contains(x.Names, name) })
}

func (h hints) overflow(t *testing.T) {
	t.Helper()
	h.until(t, "saying that anything may have changed", func(x Hint) bool { return x.Overflow })
}

func (h hints) none(t *testing.T, during time.Duration) {
	t.Helper()
	select {
	case x := <-h:
		t.Fatalf("hint %+v, want none", x)
	case <-time.After(during):
	}
}

// watched gives a directory under watch, its first hint taken.
func watched(t *testing.T, o Options) (*Watcher, string, hints) {
	t.Helper()
	dir, heard := filepath.Join(t.TempDir(), "watched"), make(hints, 100)
	must(t, os.Mkdir(dir, 0o700))
	w := New(slog.New(slog.DiscardHandler))
	w.Add(dir, o, heard.hear)
	start(t, w)
	heard.overflow(t)

	return w, dir, heard
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var quick = Options{Debounce: 10 * time.Millisecond}

// TestEditors: however a program saves, moves or removes, the last state is hinted.
func TestEditors(t *testing.T) {
	patterns := []struct {
		name string
		save func(path string) error
	}{
		{"write in place", func(p string) error { return os.WriteFile(p, []byte("new"), 0o600) }},
		{"rename over", func(p string) error {
			temp := filepath.Join(filepath.Dir(p), ".tmp-x")
			if err := os.WriteFile(temp, []byte("new"), 0o600); err != nil {
				return err
			}
			return os.Rename(temp, p)
		}},
		{"backup, then write anew", func(p string) error {
			if err := os.Rename(p, p+"~"); err != nil {
				return err
			}
			return os.WriteFile(p, []byte("new"), 0o600)
		}},
		{"truncate and write in pieces", func(p string) error {
			f, err := os.OpenFile(p, os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			for range 3 {
				time.Sleep(5 * time.Millisecond)
				if _, err := f.WriteString("piece"); err != nil {
					return err
				}
			}
			return nil
		}},
		{"moved in from elsewhere", func(p string) error {
			other := filepath.Join(filepath.Dir(filepath.Dir(p)), "elsewhere")
			if err := os.WriteFile(other, []byte("new"), 0o600); err != nil {
				return err
			}
			return os.Rename(other, p)
		}},
		{"delete", os.Remove},
		{"hard link removed and made", func(p string) error {
			if err := os.Link(p, p+".link"); err != nil {
				return err
			}
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Rename(p+".link", p)
		}},
	}
	for _, pattern := range patterns {
		t.Run(pattern.name, func(t *testing.T) {
			_, dir, heard := watched(t, quick)
			path := filepath.Join(dir, "settings.yaml")
			must(t, os.WriteFile(path, []byte("old"), 0o600))
			heard.naming(t, "settings.yaml")
			for range 2 { // a file watch would be gone the second time
				time.Sleep(20 * time.Millisecond)
				for len(heard) > 0 {
					<-heard
				}
				if _, err := os.Stat(path); err != nil {
					must(t, os.WriteFile(path, []byte("old"), 0o600))
				}
				must(t, pattern.save(path))
				heard.naming(t, "settings.yaml")
			}
		})
	}
}

// TestDebounce: what happens within the time is one hint.
func TestDebounce(t *testing.T) {
	// Longer than a machine under load keeps the writer from its next file.
	_, dir, heard := watched(t, Options{Debounce: time.Second})
	for i := range 20 {
		must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i%4)), nil, 0o600))
	}
	got := heard.until(t, "of the four files", func(Hint) bool { return true })
	if want := []string{"0", "1", "2", "3"}; !slices.Equal(got.Names, want) || got.Overflow || got.Dir != dir {
		t.Errorf("hint = %+v, want names %v of %s in one hint", got, want, dir)
	}
}

func TestIgnore(t *testing.T) {
	t.Run("hidden by default", func(t *testing.T) {
		_, dir, heard := watched(t, quick)
		must(t, os.WriteFile(filepath.Join(dir, ".tmp-1"), nil, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, ".x.swp"), nil, 0o600))
		heard.none(t, 60*time.Millisecond)
	})

	t.Run("as the caller says", func(t *testing.T) {
		_, dir, heard := watched(t, Options{Debounce: -1, Ignore: func(n string) bool { return n == "history.jsonl" }})
		must(t, os.WriteFile(filepath.Join(dir, "history.jsonl"), nil, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, ".env"), nil, 0o600))
		if x := heard.until(t, "of .env", func(Hint) bool { return true }); !slices.Equal(x.Names, []string{".env"}) {
			t.Errorf("hint = %+v, want .env alone", x)
		}
	})
}

// TestDirectoryRemade: a directory that is removed or moved away and made again
// is hinted and watched like before, whether or not its parent is watched too.
func TestDirectoryRemade(t *testing.T) {
	away := map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+"-old") },
	}
	for name, leave := range away {
		for _, parentToo := range []bool{false, true} {
			t.Run(name+", parent watched: "+strconv.FormatBool(parentToo), func(t *testing.T) {
				w, dir, heard := watched(t, quick)
				if parentToo {
					w.Add(filepath.Dir(dir), quick, func(Hint) {})
				}
				must(t, leave(dir))
				heard.overflow(t)
				if got := w.Degraded(); len(got) != 1 {
					t.Errorf("Degraded = %q, want the directory that is gone", got)
				}

				must(t, os.Mkdir(dir, 0o700))
				heard.overflow(t)
				must(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
				heard.naming(t, "a")
				if got := w.Degraded(); len(got) != 0 {
					t.Errorf("Degraded = %q, want none", got)
				}
			})
		}
	}
}

func TestAddBeforeTheDirectoryIsThere(t *testing.T) {
	w, dir, _ := watched(t, quick)
	sub, heard := filepath.Join(dir, "later"), make(hints, 100)
	w.Add(sub+"/", quick, heard.hear)
	must(t, os.Mkdir(sub, 0o700))
	heard.overflow(t)
	must(t, os.WriteFile(filepath.Join(sub, "a"), nil, 0o600))
	heard.naming(t, "a")
}

func TestRemove(t *testing.T) {
	w, dir, heard := watched(t, quick)
	w.Remove(dir)
	w.Remove(dir) // twice is no harm
	must(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	heard.none(t, 60*time.Millisecond)
	w.Add(dir, quick, heard.hear)
	must(t, os.WriteFile(filepath.Join(dir, "b"), nil, 0o600))
	heard.naming(t, "b")
}

// TestAddFromListener: a listener may change the table while events pour in.
func TestAddFromListener(t *testing.T) {
	w, dir, heard := watched(t, quick)
	deep := make(hints, 1000)
	w.Add(dir, quick, func(h Hint) {
		for _, name := range h.Names {
			w.Add(filepath.Join(dir, name), quick, deep.hear)
		}
		heard.hear(h)
	})

	for i := range 200 {
		must(t, os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700))
	}
	heard.naming(t, "199")
	must(t, os.WriteFile(filepath.Join(dir, "199", "x"), nil, 0o600))
	deep.naming(t, "x")
}

func TestRunAgain(t *testing.T) {
	dir, heard := t.TempDir(), make(hints, 100)
	w := New(slog.New(slog.DiscardHandler))
	w.Add(dir, quick, heard.hear)
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		heard.overflow(t)
		must(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
		heard.naming(t, "a")
		cancel()
		<-done
	}
}
