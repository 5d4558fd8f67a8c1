package unseen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// ground is a workspace with one text, as a runtime uses it.
type ground struct {
	t    *testing.T
	ws   string
	path string
	*Texts
}

func newGround(t *testing.T) *ground {
	g := &ground{t: t, ws: t.TempDir()}
	g.path = filepath.Join(g.ws, "AGENTS.md")
	if err := os.Mkdir(filepath.Join(g.ws, ".daycare"), 0o700); err != nil {
		t.Fatal(err)
	}
	g.restart()
	return g
}

func (g *ground) restart() {
	g.t.Helper()
	var err error
	if g.Texts, err = Open(disk.NewVolume(filepath.Join(g.ws, ".daycare")), workspace.At(g.ws)); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) write(text string) {
	g.t.Helper()
	if err := errors.Join(os.WriteFile(g.path+".new", []byte(text), 0o600), os.Rename(g.path+".new", g.path)); err != nil {
		g.t.Fatal(err)
	}
}

// save writes as a user does, who is slower than the clock of a file system: the file has
// another time than before.
func (g *ground) save(text string) {
	g.t.Helper()
	changed := func() (at time.Time) {
		if info, err := os.Lstat(g.path); err == nil {
			at = beneath.ChangedAt(info)
		}
		return at
	}
	for was := changed(); changed().Equal(was); {
		g.write(text)
	}
}

// used is the text in use, "-" for none, with ! if a change waits.
func (g *ground) used() string {
	g.t.Helper()
	data, err := os.ReadFile(g.path)
	info, serr := os.Lstat(g.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || serr != nil && err == nil {
		g.t.Fatal(err, serr)
	}
	if serr != nil {
		info = nil
	}

	text, there, waits := g.Use(g.path, data, info)
	shown := string(text)
	if !there {
		shown = "-"
	}
	if waits != nil {
		shown += "!"
		if f := waits.Finding(g.path); !strings.Contains(f.Reason, "agent mole") ||
			!strings.Contains(f.Remedy, "touch "+g.path) && !waits.Removed {
			g.t.Errorf("%v", f)
		}
	}

	return shown
}

func (g *ground) want(when, want string) {
	g.t.Helper()
	for range 2 {
		if got := g.used(); got != want {
			g.t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
}

func TestEditsOfAPersonApplyAtOnce(t *testing.T) {
	g := newGround(t)
	g.want("nothing", "-")
	g.write("one")
	g.want("made", "one")
	g.write("two")
	g.want("edited", "two")
	ended := g.Began("mole", g.path)
	g.write("three")
	g.want("edited while a command runs that cannot change it", "three")
	ended()
	if err := os.Remove(g.path); err != nil {
		t.Fatal(err)
	}

	g.want("removed", "-")
}

func TestWhatACommandChangedWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		before string // "": there is no file
		do     func(g *ground)
		used   string // until it is seen
		after  string // when it was seen
	}{
		"changed": {"old", func(g *ground) { g.write("evil") }, "old!", "evil"},
		"made":    {"", func(g *ground) { g.write("evil") }, "-!", "evil"},
		"removed": {"old", func(g *ground) { os.Remove(g.path) }, "old!", "old!"},
		"made from what was prepared": {"", func(g *ground) {
			os.Rename(filepath.Join(g.ws, "prepared"), g.path)
		}, "-!", "evil"},
		"changed twice": {"old", func(g *ground) { g.write("bad"); g.used(); g.write("evil") }, "old!", "evil"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			if err := os.WriteFile(filepath.Join(g.ws, "prepared"), []byte("evil"), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.before != "" {
				g.write(tt.before)
			}

			g.used()
			ended := g.Began("mole")
			tt.do(g)
			g.want("while it runs", tt.used)
			ended()
			g.want("when it has ended", tt.used)
			g.restart()
			g.want("after a restart", tt.used)
			if tt.after == "evil" {
				g.save("evil") // its owner does
			}

			g.want("when it was seen", tt.after)
			if n := len(g.Waiting()); (n == 0) != (tt.after == "evil") {
				t.Errorf("%d wait", n)
			}
			g.write("mine")
			g.want("when its owner wrote another", "mine")
			g.restart()
			if len(g.Waiting()) > 0 {
				t.Error("it waits for ever")
			}

			attacktest.Held(t, attacktest.Row{Class: "prompts, skills, memory",
				How: "the old text is used until its owner saw the new one", Name: "by a command: " + name})
		})
	}
}

// While one command runs that could have done it, even its owner's save waits: nothing tells the
// two apart.
func TestNothingIsSeenWhileItMayBeTheCommand(t *testing.T) {
	g := newGround(t)
	g.write("old")
	g.used()
	one, two := g.Began("mole", g.path), g.Began("mole")
	g.write("new")
	g.want("two commands", "old!")
	two()
	g.want("the one that cannot", "old!")
	g.save("new")
	g.want("saved again", "new")
	one()
}

func TestBrokenRecordsSayWhatToDo(t *testing.T) {
	g := newGround(t)
	dir := filepath.Join(g.ws, ".daycare", Dir)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "x.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(nil, workspace.At(g.ws)); err == nil || !strings.Contains(err.Error(), "\ndelete it") {
		t.Errorf("%v", err)
	}
}

// A file of the workspace is known by its path in it, which stays when the workspace moves; any other
// by its whole path.
func TestNamesOfFiles(t *testing.T) {
	g := newGround(t)
	for path, of := range map[string]string{filepath.Join(g.ws, "dir", "a.md"): "dir/a.md", "/elsewhere/a.md": "/elsewhere/a.md",
		filepath.Join(filepath.Dir(g.ws), "a.md"): filepath.Join(filepath.Dir(g.ws), "a.md")} {
		if _, file := g.name(path); file != sum([]byte(of))[:16]+".json" {
			t.Errorf("%s: %s", path, file)
		}
	}
}
