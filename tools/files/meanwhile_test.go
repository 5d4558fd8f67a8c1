package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
)

// A file that was looked at is written only if it still is that file, as it was; one that was not there only if it
// still is not.
func TestAFileThatChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	path, at := filepath.Join(dir, "f"), time.Now().Add(-time.Hour)
	make := func(path, content string, at time.Time) {
		t.Helper()
		must(t, os.WriteFile(path, []byte(content), 0o600))
		must(t, os.Chtimes(path, at, at))
	}
	for name, tt := range map[string]struct {
		there  bool // when it was looked at
		change func()
		ok     bool
	}{
		"nothing":          {true, func() {}, true},
		"another file":     {true, func() { make(dir+"/g", "one", at); must(t, os.Rename(dir+"/g", path)) }, false},
		"another size":     {true, func() { make(path, "three", at) }, false},
		"another time":     {true, func() { make(path, "one", at.Add(time.Second)) }, false},
		"it was removed":   {true, func() { must(t, os.Remove(path)) }, false},
		"it was made":      {false, func() { make(path, "one", at) }, false},
		"it was not there": {false, func() {}, true},
	} {
		must(t, os.RemoveAll(path))
		p := &place{dir: root, name: "f"}
		if tt.there {
			make(path, "one", at)
			p.info, err = root.Lstat("f")
			must(t, err)
		}
		tt.change()
		if err := p.unchanged(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An edit that makes a file too large changes nothing.
func TestAnEditThatMakesAFileTooLarge(t *testing.T) {
	w := newWorld(t)
	text := "here\n" + strings.Repeat("x", maxChange-1000)
	w.file("large", text)
	w.want(w.call("edit", a{"path": "large", "old": "here", "new": strings.Repeat("y", 2000)}), tools.Failed,
		"at most 10.5 MB can be written")
	if w.content("large") != text {
		t.Error("the file was changed")
	}
}

// A line that is the text looked for is as alike as can be, also where it has one letter.
func TestHowAlikeLinesAre(t *testing.T) {
	for _, tt := range []struct {
		want, line string
		alike      float64
	}{{"x", "x", 1}, {"x", "y", 0}, {"ab", "ab", 1}, {"ab", "x", 0}, {"abc", "abd", 0.5}} {
		if got := alike(bigrams(tt.want), tt.want, tt.line); got != tt.alike {
			t.Errorf("%q and %q are %v alike, want %v", tt.want, tt.line, got, tt.alike)
		}
	}
}

// A right to a folder around a prompt does not name it, and one to a prompt names no other.
func TestARightAroundAPromptDoesNotNameIt(t *testing.T) {
	for _, right := range []string{".", "..", ".agents"} {
		w := newWorld(t)
		w.file("AGENTS.md", "be kind\n")
		w.file(".agents/skills/tea/SKILL.md", "x")
		w.access.WriteDirs = []string{filepath.Join(w.ws, right)}
		if need, err := w.needs("write", a{"path": "AGENTS.md", "content": "obey me\n"}); err != nil || need == nil || !need.AskAlways {
			t.Errorf("with a right to %s: %+v, %v", right, need, err)
		}
	}
}

// A path that runs something later and that a right names is accepted when it is written, not when it is looked at,
// and no other path is.
func TestWrittenPathsThatRunSomethingLaterAreAccepted(t *testing.T) {
	w := newWorld(t)
	var accepted []string
	for _, tool := range New(Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home, Folders: w.folders,
		Accept: func(path string) { accepted = append(accepted, path) }}) {
		w.tools[tool.Spec().Name] = tool
	}
	hook := w.file(".husky/pre-commit", "x")
	w.access.WriteDirs = []string{hook}
	w.want(w.call("read", a{"path": ".husky/pre-commit"}), tools.OK)
	w.want(w.call("write", a{"path": "plain", "content": "x"}), tools.OK)
	if _, err := w.needs("write", a{"path": ".husky/pre-commit", "content": "y"}); err != nil {
		t.Error(err)
	}
	if len(accepted) > 0 {
		t.Errorf("accepted are %q", accepted)
	}
	w.want(w.call("write", a{"path": ".husky/pre-commit", "content": "y"}), tools.OK)
	if len(slices.Compact(accepted)) != 1 || accepted[0] != hook {
		t.Errorf("accepted are %q, want %q", accepted, hook)
	}

	accepted, w.access = nil, permission.Default(w.ws)
	outside := w.file(w.outside+"/.husky/pre-commit", "x")
	if need, run := w.unasked("write", a{"path": outside, "content": "y"}); need == nil || len(accepted) > 0 {
		t.Errorf("asked is %+v, accepted are %q", need, accepted)
	} else {
		w.want(run(), tools.OK)
	}
	if len(slices.Compact(accepted)) != 1 || accepted[0] != outside {
		t.Errorf("accepted are %q, want %q", accepted, outside)
	}
}
