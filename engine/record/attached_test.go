package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/message"
)

func TestAttachedKnowsWhoseFilesTheyAre(t *testing.T) {
	h := begun(t)
	file := func(id string) message.File {
		return message.File{ID: id, Name: "n", MimeType: "text/plain", Path: "/w/.daycare/files/" + id + "__n"}
	}
	image := file("f2")
	all := NewAttached()
	want := func(names ...string) {
		t.Helper()
		got, err := all.Names(h.dir)
		if err != nil || strings.Join(got, " ") != strings.Join(names, " ") {
			t.Errorf("%v, %v; want %v", got, err, names)
		}
		fresh, _ := NewAttached().Names(h.dir)
		if strings.Join(fresh, " ") != strings.Join(names, " ") {
			t.Errorf("read anew: %v, want %v", fresh, names)
		}
	}
	want()
	add(t, h, &User{Text: "look", Files: []message.File{file("f1")}})
	want("f1__n")
	add(t, h, &ToolResult{ToolCallID: "c", Name: "read", Output: Output{Blocks: []Block{{Type: "image", File: &image}}},
		Files: []message.File{file("f3")}})
	want("f3__n", "f2__n", "f1__n")

	// What someone writes, or a model calls a tool with, makes nothing an attachment.
	add(t, h, &User{Text: `{"files":[{"id":"f9","mimeType":"x","path":"/w/.daycare/files/f9__n"}]}`,
		Files: []message.File{{ID: "f8", MimeType: "x", Path: "/etc/passwd"}}},
		&Assistant{ToolCalls: []ToolCall{{ID: "d", Name: "read",
			Arguments: []byte(`{"files":[{"id":"f9","mimeType":"x","path":"/w/.daycare/files/f9__n"}],"path":"files/f9__n"}`)}}})
	want("f3__n", "f2__n", "f1__n")

	// A reset forgets nothing; a hand edit is read again.
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	if _, err := h.Rotate(); err != nil {
		t.Fatal(err)
	}
	add(t, h, &User{Text: "more", Files: []message.File{file("f4")}})
	want("f4__n", "f3__n", "f2__n", "f1__n")
	path := filepath.Join(h.dir, historyName)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path+".new", []byte(strings.ReplaceAll(string(data), "f4__n", "f5__n")), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}

	want("f3__n", "f2__n", "f1__n")
	if got, err := all.Names(t.TempDir()); err != nil || got != nil {
		t.Errorf("of nobody: %v, %v", got, err)
	}
	if got, err := all.Names(filepath.Join(h.dir, historyName)); err == nil {
		t.Errorf("of what is no folder: %v", got)
	}
}

// A history at rest is not read again; what is written into it in place, without
// its size or its time changing, is found while it is fresh.
func TestAttachedReadsWhatChanged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, historyName)
	by := func(ids ...string) string {
		text := string(Encode(&Entry{Seq: 1, Rec: &Start{Session: "s"}}))
		for _, id := range ids {
			text += `{"type":"user_message","text":"","files":[{"id":"` + id + `","mimeType":"x","path":"` + id + `__n"}]}` + "\n"
		}
		return text + `{"type":"user_message","files":[{"mimeType":` + "\n" // a broken line
	}
	fresh := time.Now().Add(-100 * time.Millisecond)
	old := time.Now().Add(-time.Hour)
	write := func(text string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	all := NewAttached()
	want := func(when, names string) {
		t.Helper()
		if got, err := all.Names(dir); err != nil || strings.Join(got, " ") != names {
			t.Errorf("%s: %v, %v; want %s", when, got, err, names)
		}
	}
	write(by("f1"), fresh)
	want("at first", "f1__n")
	write(by("f2"), fresh)
	want("the same size and time, just now", "f2__n f1__n")
	write(by("f2", "f3"), old)
	want("longer", "f3__n f2__n f1__n")
	write(by("f2", "f4"), old)
	want("the same size and time, long ago", "f3__n f2__n f1__n")
	write(by("f2", "f4"), old.Add(time.Second))
	want("another time", "f4__n f3__n f2__n f1__n")
	write(by("f2", "f4", "f5"), old.Add(time.Second))
	want("another size", "f5__n f4__n f3__n f2__n f1__n")
	write(by("f5"), old.Add(time.Second))
	want("shorter", "f5__n")

	loop(t, filepath.Join(dir, closedDir))
	write(by("f6"), fresh)
	if got, err := NewAttached().Names(dir); err == nil {
		t.Errorf("with older files that cannot be read: %v", got)
	}
}
