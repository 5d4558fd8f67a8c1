package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/tools"
)

// lateContext ends when it was asked a number of times whether it has ended.
type lateContext struct {
	context.Context
	left  atomic.Int64
	ended atomic.Bool
}

func (c *lateContext) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	c.ended.Store(true)
	return context.Canceled
}

// run is call that returns whatever the tool reports as an error.
func (w *world) run(ctx context.Context, name string, args a) (tools.Result, error) {
	w.t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.tools[name].Run(ctx, tools.Call{ID: "c", Name: name, Arguments: data, Agent: agent, Access: w.access,
		Progress: func(string) {}})
	switch {
	case err != nil || res.Status == "" || res.Status == tools.OK:
	case res.Status == tools.Canceled:
		err = context.Canceled
	default:
		err = errors.New(res.Text)
	}

	return res, err
}

// contents is what all files of the workspace hold, by path.
func (w *world) contents() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w.ws, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}

	return all
}

// changing is one call of each tool that changes files.
var changing = map[string]struct {
	tool string
	args a
}{
	"a new file":     {"write", a{"path": "new/deep/b.txt", "content": "x"}},
	"another text":   {"write", a{"path": "a.txt", "content": "two\n"}},
	"an edit":        {"edit", a{"path": "a.txt", "old": "one", "new": "two"}},
	"an added file":  {"apply_patch", patchOf("*** Add File: p/q.txt", "+x")},
	"a changed file": {"apply_patch", patchOf("*** Update File: a.txt", "-one", "+two")},
	"a deleted file": {"apply_patch", patchOf("*** Delete File: a.txt")},
	"a moved file":   {"apply_patch", patchOf("*** Update File: a.txt", "*** Move to: m/n.txt", "-one", "+two")},
}

// A call that is stopped says so whenever that is, and one that changes files has then
// changed none.
func TestACallThatIsStoppedSaysSo(t *testing.T) {
	type call struct {
		tool  string
		args  a
		looks int // at least: in a long file more than once
	}
	calls := map[string]call{
		"read":       {"read", a{"path": "long.txt"}, 1},
		"read part":  {"read", a{"path": "long.txt", "offset": 2500, "limit": 10}, 4},
		"ls":         {"ls", a{}, 1},
		"glob":       {"glob", a{"pattern": "**"}, 1},
		"grep":       {"grep", a{"pattern": "nothing like it"}, 5},
		"grep files": {"grep", a{"pattern": "line 2", "path": "long.txt"}, 1},
	}
	for name, c := range changing {
		calls[name] = call{c.tool, c.args, 1}
	}

	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			for asked := range 100 {
				w := newWorld(t)
				w.file("a.txt", "one\n")
				var long strings.Builder
				for n := range 3000 {
					fmt.Fprintf(&long, "line %d\n", n)
				}

				w.file("long.txt", long.String())
				before := w.contents()
				ctx := &lateContext{Context: t.Context()}
				ctx.left.Store(int64(asked))
				_, err := w.run(ctx, c.tool, c.args)
				if !ctx.ended.Load() {
					if err != nil {
						t.Errorf("not stopped: %v", err)
					}
					if asked < c.looks {
						t.Errorf("it looks %d times whether it is stopped, want %d at least", asked, c.looks)
					}
					return
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("stopped after %d looks: %v", asked, err)
				}
				if now := w.contents(); !maps.Equal(now, before) {
					t.Errorf("stopped after %d looks it changed %d files to %d", asked, len(before), len(now))
				}
			}

			t.Error("it asks for ever")
		})
	}
}

// A change of files is reported as failed if any step of it fails, and each file is then
// what it was or what it should become, as a whole.
func TestEachFailedStepOfAChangeIsReported(t *testing.T) {
	for name, c := range changing {
		for _, fault := range []string{"eio", "enospc"} {
			t.Run(name, func(t *testing.T) {
				crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
					w := newWorld(t)
					w.file("a.txt", "one\n")
					return func() error {
						_, err := w.run(context.Background(), c.tool, c.args)
						crash.Arm(t, "")
						for path, text := range w.contents() {
							if !slices.Contains([]string{"one\n", "two\n", "x", "x\n"}, text) {
								t.Errorf("%s holds %q", path, text)
							}
						}

						return err
					}
				})
			})
		}
	}
}

// busyContext counts how often it was asked whether it has ended; at its last time, a user saves a file.
type busyContext struct {
	context.Context
	asked, last int
	saves       func()
}

func (c *busyContext) Err() error {
	if c.asked++; c.asked == c.last {
		c.saves()
	}
	return nil
}

// What a user saves between the look of a call and its change is not lost, and the call says so.
func TestASaveInTheMiddleOfACallIsNotLost(t *testing.T) {
	for name, c := range changing {
		t.Run(name, func(t *testing.T) {
			begin := func() *world {
				w := newWorld(t)
				w.file("a.txt", "one\n")
				return w
			}
			ctx := &busyContext{Context: t.Context()}
			w := begin()
			if _, err := w.run(ctx, c.tool, c.args); err != nil {
				t.Fatal(err)
			}
			path := "a.txt"
			if name == "a new file" {
				path = "new/deep/b.txt"
			} else if name == "an added file" {
				path = "p/q.txt"
			}

			w = begin()
			ctx = &busyContext{Context: t.Context(), last: ctx.asked, saves: func() {
				must(t, os.MkdirAll(filepath.Join(w.ws, filepath.Dir(path)), 0o755))
				w.file(path, "one, by the user\n")
			}}
			if _, err := w.run(ctx, c.tool, c.args); err == nil || !strings.Contains(err.Error(), "changed in the meantime") {
				t.Errorf("%v, want that the file has changed in the meantime", err)
			}
			if got := w.content(path); got != "one, by the user\n" {
				t.Errorf("the file has %q", got)
			}
		})
	}
}

// What an agent wrote, in whatever way, is watched: another's change of it is not overwritten unread.
func TestWhatWasWrittenIsWatched(t *testing.T) {
	for name, c := range changing {
		if name == "a deleted file" {
			continue
		}
		w := newWorld(t)
		w.file("a.txt", "one\n")
		if _, err := w.run(t.Context(), c.tool, c.args); err != nil {
			t.Fatal(err)
		}
		for path := range w.contents() {
			w.file(path, "by the user\n")
			w.call("write", a{"path": path, "content": "three\n"})
			if got := w.content(path); got != "by the user\n" && filepath.Base(path) == wrote(c.args) {
				t.Errorf("%s: %s has %q after it was saved by the user", name, path, got)
			}
		}
	}
}

// wrote is the name of the file that a call of changing leaves.
func wrote(args a) string {
	if path, ok := args["path"].(string); ok {
		return filepath.Base(path)
	}
	for _, name := range []string{"n.txt", "q.txt"} {
		if strings.Contains(args["patch"].(string), name) {
			return name
		}
	}
	return "a.txt"
}

// A file that is not what the agent read is not changed, in whatever it differs.
func TestAFileThatChangedMeanwhileIsNotChanged(t *testing.T) {
	for what, change := range map[string]func(path string, was os.FileInfo) error{
		"another size": func(path string, was os.FileInfo) error {
			return errors.Join(os.WriteFile(path, []byte("one and more\n"), 0o644), os.Chtimes(path, was.ModTime(), was.ModTime()))
		},
		"another time": func(path string, was os.FileInfo) error {
			return os.Chtimes(path, was.ModTime().Add(time.Hour), was.ModTime().Add(time.Hour))
		},
		"another file": func(path string, was os.FileInfo) error {
			return errors.Join(os.WriteFile(path+".new", []byte("eno\n"), 0o644),
				os.Chtimes(path+".new", was.ModTime(), was.ModTime()), os.Rename(path+".new", path))
		},
	} {
		w := newWorld(t)
		path := w.file("a.txt", "one\n")
		w.want(w.call("read", a{"path": "a.txt"}), tools.OK, "one")
		was, err := os.Stat(path)
		must(t, err)
		must(t, change(path, was))
		before := w.content(path)
		w.want(w.call("write", a{"path": "a.txt", "content": "two\n"}), tools.Denied, "has changed since you read it")
		if now := w.content(path); now != before {
			t.Errorf("%s: it was changed to %q", what, now)
		}

		w.want(w.call("read", a{"path": "a.txt"}), tools.OK)
		w.want(w.call("write", a{"path": "a.txt", "content": "two\n"}), tools.OK, "overwrote a.txt")
		w.want(w.call("write", a{"path": "a.txt", "content": "three\n"}), tools.OK) // its own version is known
	}
}

// A large file is overwritten, without a diff; a small one with one.
func TestAnOverwrittenFileShowsWhatChanged(t *testing.T) {
	w := newWorld(t)
	w.file("small.txt", "one\n")
	w.file("large.txt", strings.Repeat("x", maxDiff+1))
	for path, blocks := range map[string]int{"small.txt": 1, "large.txt": 0} {
		res := w.call("write", a{"path": path, "content": "two\n"})
		w.want(res, tools.OK, "overwrote "+path)
		if w.content(path) != "two\n" {
			t.Errorf("%s holds %q", path, w.content(path))
		}
		if path == "small.txt" && len(res.Blocks) != blocks {
			t.Errorf("%s: %d blocks, want %d", path, len(res.Blocks), blocks)
		}
	}
}

// Only a folder can be looked through, and a folder is not a file.
func TestPathsOfTheWrongKind(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "one\n")
	w.file("sub/b.txt", "two\n")
	must(t, os.Symlink("loop", filepath.Join(w.ws, "loop")))

	for _, tt := range []struct {
		tool string
		args a
		want string
	}{
		{"ls", a{"path": "none"}, "no such folder: none"},
		{"ls", a{"path": "loop"}, "too many symbolic links"},
		{"glob", a{"pattern": "*", "path": "none"}, "no such folder: none"},
		{"read", a{"path": "loop"}, "too many symbolic links"},
		{"read", a{"path": "none"}, "none"},
		{"write", a{"path": "sub", "content": "x"}, "sub is a folder"},
		{"write", a{"path": "a.txt/b", "content": "x"}, "a.txt"},
		{"edit", a{"path": "sub", "old": "x", "new": "y"}, "sub"},
		{"apply_patch", patchOf("*** Delete File: sub"), "sub"},
	} {
		if _, err := w.run(t.Context(), tt.tool, tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v: %v, want %q", tt.tool, tt.args, err, tt.want)
		}
	}

	w.want(w.call("ls", a{"path": "a.txt"}), tools.OK, "a.txt")
	w.want(w.call("ls", a{"path": "sub"}), tools.OK, "b.txt")
}

// A new file in a place that is out of reach is as much out of reach as an old one, where
// the folder around it was given.
func TestNewFilesInClosedPlacesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.access.WriteDirs = append(w.access.WriteDirs, w.home)
	w.access.ReadDirs = append(w.access.ReadDirs, w.home)
	must(t, os.MkdirAll(filepath.Join(w.home, ".ssh"), 0o700))
	must(t, os.MkdirAll(filepath.Join(w.ws, ".daycare", "agents"), 0o700))

	for _, path := range []string{filepath.Join(w.home, ".ssh", "new"), filepath.Join(w.home, ".ssh", "deep", "new"),
		".daycare/new", ".daycare/agents/x/state.json"} {
		if _, err := w.run(t.Context(), "write", a{"path": path, "content": "x"}); err == nil {
			t.Errorf("%s was written", path)
		}
		if _, err := w.run(t.Context(), "read", a{"path": path}); err == nil {
			t.Errorf("%s was read", path)
		}
	}

	if _, err := w.run(t.Context(), "write", a{"path": filepath.Join(w.home, "notes.txt"), "content": "x"}); err != nil {
		t.Errorf("a file beside them: %v", err)
	}
}
