package record

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/workspace"
)

// agentIn makes the folder of an agent in a workspace.
func agentIn(t *testing.T, ws string) string {
	t.Helper()
	dir := filepath.Join(ws, ".daycare", "agents", strings.Repeat("a", 24))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func rightsIn(ws string) permission.Set {
	return permission.Set{WorkingDir: ws, ReadDirs: []string{filepath.Join(ws, "docs"), "/srv"}, WriteDirs: []string{}, Exec: []string{},
		Grants: []permission.Grant{{Tag: "@read:" + filepath.Join(ws, "docs")}}}
}

// A state.json of an older version has whole paths. They become relative with the next
// change of the file, and then mean the workspace that the file is in.
func TestStateMovesWithItsWorkspace(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	dir := agentIn(t, one)
	old, err := marshal(State{Permissions: rightsIn(one)})
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, stateName)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	rights := rightsIn(one)
	if err := UpdateState(disk.NewVolume(one), dir, func(s *State) {
		if diff := cmp.Diff(rights, s.Permissions); diff != "" {
			t.Errorf("the old file says (-want +got):\n%s", diff)
		}
		s.Announced = &rights
	}); err != nil {
		t.Fatal(err)
	}

	raw, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), one) || !strings.Contains(string(raw), `"/srv"`) {
		t.Errorf("%v: whole paths in the workspace are left, or other paths are gone:\n%s", err, raw)
	}
	copied := agentIn(t, two)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}

	s, _, _, err := ReadState(copied)
	if diff := cmp.Diff(rightsIn(two), s.Permissions); diff != "" || err != nil {
		t.Errorf("the copy says (-want +got):\n%s%v", diff, err)
	}
	if diff := cmp.Diff(rightsIn(two), *s.Announced); diff != "" {
		t.Errorf("the copy has announced (-want +got):\n%s", diff)
	}
}

// An attachment is stored by its place in the workspace, and found where that lies now,
// also if an older version stored the whole path.
func TestAttachmentsMoveWithTheirWorkspace(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	file := func(ws string) message.File {
		return message.File{ID: "f", Name: "n", Path: filepath.Join(ws, ".daycare", "files", "f__n")}
	}
	records := func(ws string) []Record {
		f := file(ws)
		return []Record{&User{Item: "i", Text: "look", Files: []message.File{f, {Name: "far", Path: "/srv/far"}}},
			&ToolResult{ToolCallID: "c", Status: StatusOK, Files: []message.File{f},
				Output: Output{Blocks: []Block{{Type: "image", File: &f}}}},
			&Permission{Token: "t", Event: "deny", Tag: "@write:" + filepath.Join(ws, "docs")}}
	}
	dir := agentIn(t, one)
	h := begunIn(t, dir)
	got, err := h.Append(records(one)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range got {
		if diff := cmp.Diff(records(one)[i], e.Rec); diff != "" {
			t.Errorf("in memory (-want +got):\n%s", diff)
		}
	}
	path := filepath.Join(dir, historyName)
	raw, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), one) {
		t.Errorf("%v: whole paths are stored:\n%s", err, raw)
	}
	older := Encode(&Entry{Seq: 5, At: time.Now().UTC(), Rec: records(one)[0]})
	if err := os.WriteFile(path, append(raw, older...), 0o600); err != nil {
		t.Fatal(err)
	}
	copied := agentIn(t, two)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	c, err := begunIn(t, copied).Context()
	if err != nil {
		t.Fatal(err)
	}
	want := append(records(two), records(two)[0])
	var have []Record
	for _, e := range c.Entries {
		have = append(have, e.Rec)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the copy says (-want +got):\n%s", diff)
	}
	lines, _, err := Tail(copied, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		e, err := Decode(line)
		if err != nil || e.ByHand || strings.Contains(string(line), one) {
			t.Errorf("%v: a reader gets %s", err, line)
		}
		if u, ok := e.Rec.(*User); ok && u.Files[0].Path != file(two).Path {
			t.Errorf("a reader gets the path %s", u.Files[0].Path)
		}
	}
	if at := workspace.Of(copied); at.Dir != two {
		t.Errorf("the workspace of %s is %s", copied, at.Dir)
	}
}

// begunIn opens the history of a folder.
func begunIn(t *testing.T, dir string) *History {
	t.Helper()
	h, _, err := Open(disk.NewVolume(dir), dir, time.Now, slog.New(slog.DiscardHandler))
	if err == nil {
		err = h.Begin("s")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })

	return h
}
