package term

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/machine"
	"daycare/engine/workspace"
)

// Which workspace is meant follows from the flags, the folders and what was started before; a data folder that agents
// could reach, or that is another's, is refused.
func TestWhichPlaceIsMeant(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(top, "state"))
	t.Setenv("TMPDIR", "/nowhere")
	dir := func(path string) string { return filepath.Join(top, path) }
	for _, path := range []string{"usual/.daycare", "usual/sub", "apart/sub", "own", "twice", "a", "b", "fresh", "lost", "full/agents"} {
		if err := os.MkdirAll(dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	record := func(at workspace.Place) {
		err := os.WriteFile(filepath.Join(at.Data, workspace.FileName), at.Record(), 0o600)
		if err = errors.Join(err, machine.Note(at, time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	apart := workspace.Place{Dir: dir("apart"), Data: dir("own")}
	record(apart)
	record(workspace.Place{Dir: dir("twice"), Data: dir("a")})
	record(workspace.Place{Dir: dir("twice"), Data: dir("b")})
	record(workspace.Place{Dir: dir("gone"), Data: dir("lost")})
	err = errors.Join(os.Symlink("own", dir("link")), os.Symlink("usual", dir("alias")), os.WriteFile(dir("file"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}

	usual := workspace.At(dir("usual"))
	for _, tt := range []struct {
		cwd, workspace, data, variable string
		want                           workspace.Place
		wrong                          string
	}{
		{cwd: "usual/sub", want: usual},
		{cwd: "apart/sub", want: apart},
		{cwd: "fresh", want: workspace.At(dir("fresh"))},
		{cwd: "fresh", workspace: "apart", want: apart},
		{cwd: "fresh", workspace: "apart/sub", want: workspace.At(dir("apart/sub"))},
		{cwd: "fresh", data: "link", want: apart},
		{cwd: "fresh", variable: "own", want: apart},
		{cwd: "fresh", variable: "own", workspace: "usual", want: usual},
		{cwd: "fresh", data: "new", want: workspace.Place{Dir: dir("fresh"), Data: dir("new")}},
		{cwd: "fresh", data: "usual/.daycare", want: usual},
		{cwd: "fresh", workspace: "alias", data: "usual/.daycare", want: workspace.At(dir("alias"))},
		{cwd: "twice", wrong: "several data folders"},
		{cwd: "fresh", workspace: "apart", data: "usual/.daycare", wrong: "belongs to the workspace"},
		{cwd: "fresh", workspace: "usual", data: "own", wrong: "belongs to the workspace"},
		{cwd: "fresh", workspace: "usual", data: "usual", wrong: "the workspace itself"},
		{cwd: "fresh", workspace: "usual", data: "alias/sub", wrong: "where agents can write"},
		{cwd: "fresh", workspace: "usual", data: "usual/none", wrong: "where agents can write"},
		{cwd: "fresh", workspace: "usual", data: ".", wrong: "in the data folder"},
		{cwd: "fresh", data: "lost", wrong: "which is gone"},
		{cwd: "fresh", data: "full", wrong: "does not say which workspace"},
		{cwd: "fresh", data: "file", wrong: "is not a folder"},
		{cwd: "fresh", workspace: "none", data: "own", wrong: "there is no folder"},
	} {
		t.Chdir(dir(tt.cwd))
		path := func(name string) string {
			if name == "" {
				return ""
			}
			return dir(name)
		}
		t.Setenv("DAYCARE_DATA", path(tt.variable))
		c := App{Workspace: path(tt.workspace), Data: path(tt.data)}
		at, err := c.Place()
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%+v: %+v %v", tt, at, err)
		case tt.wrong == "" && (err != nil || at != tt.want):
			t.Errorf("%+v: %+v %v", tt, at, err)
		}
	}

	// What the list says is not used if the data folder says otherwise.
	if err := os.Remove(filepath.Join(apart.Data, workspace.FileName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	t.Chdir(dir("apart"))
	if at, err := (&App{}).Place(); err != nil || at != workspace.At(dir("apart")) {
		t.Errorf("%+v %v", at, err)
	}
}
