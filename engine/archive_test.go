package engine

import (
	"archive/tar"
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/changes"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/folders"
	"daycare/engine/message"
	"daycare/engine/record"
)

// An archive cannot write anything but the files of one agent.
func TestArchivesThatAreRefused(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	const id = "abcdefghijklmnopqrstuvwx"
	descriptor := `{"type":"permanent","id":"` + id + `","name":"Ops"}`
	for _, tt := range []struct{ name, entry, content string }{
		{"a path out of the folder", id + "/../../settings.yaml", "x"},
		{"an absolute path", "/etc/passwd", "x"},
		{"a file of no agent", id + "/SYSTEM.md", "x"},
		{"a name that is no id", "short/descriptor.json", descriptor},
		{"no state", id + "/descriptor.json", descriptor},
		{"a broken descriptor", id + "/descriptor.json", "{"},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: tt.entry, Size: int64(len(tt.content)), Mode: 0o600}),
			write(w, tt.content), w.Close()); err != nil {
			t.Fatal(err)
		}
		if a, err := h.Import(t.Context(), &b, ""); err == nil {
			t.Errorf("%s: made %+v, want it refused", tt.name, a)
		}
	}

	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: id + "/history.jsonl", Typeflag: tar.TypeSymlink,
		Linkname: "/etc/passwd"}), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Import(t.Context(), &b, ""); !errors.Is(err, folders.ErrBadArchive) {
		t.Errorf("a symbolic link: %v, want ErrBadArchive", err)
	}
	if n := len(h.index.All()); n != 0 {
		t.Errorf("%d agents were made", n)
	}
}

// What rewound turns wrote is taken back with the system running, and with the files alone.
func TestTakingBackWhatWasWritten(t *testing.T) {
	for _, running := range []bool{true, false} {
		h := newHouse(t, filepath.Join(t.TempDir(), ".daycare"), nil)
		meta, err := h.index.Create(address.Descriptor{Type: address.Permanent, Name: "Ops"}, []byte("{}\n"))
		must(t, err)
		of, dir, ws := *h.archive, h.folder(meta.ID), filepath.Dir(h.archive.root)
		hist, _, err := record.Open(of.vol, dir, time.Now, slog.New(slog.DiscardHandler))
		must(t, err)
		_, err = hist.Append(&record.Start{Session: "s", V: record.Version}, &record.TurnBegin{Turn: "t", Attempt: 1},
			&record.Assistant{Turn: "t", Finish: record.FinishToolUse,
				ToolCalls: []record.ToolCall{{ID: "c", Name: "write", Arguments: []byte("{}")}}}, &record.Rewind{To: 1})
		must(t, errors.Join(err, hist.Close()))
		path, old, now := filepath.Join(ws, "a.txt"), []byte("old\n"), []byte("new\n")
		must(t, changes.Undo(of.vol, dir).Note(changes.Written{At: disk.StampOf(time.Now()), Turn: "t", Call: "c", Folder: ws,
			Path: "a.txt", Before: changes.StateOf(old, 0o600), After: changes.StateOf(now, 0o600)}, old, now))
		writeFile(t, path, "new\n")

		if !running {
			of.vol = nil
		}
		results, err := of.TakeBack(t.Context(), meta.ID, []string{"a.txt"}, false)
		if err != nil || len(results) != 1 || results[0].Outcome != changes.Done || readFile(t, path) != "old\n" {
			t.Errorf("running %v: %+v, %v; the file has %q", running, results, err, readFile(t, path))
		}
	}
}

// Files are taken back only of agents and to places that exist, with the system running or not.
func TestTakingBackWhatIsNotThere(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	meta, err := h.index.Create(address.Descriptor{Type: address.Permanent, Name: "Ops"}, []byte("{}\n"))
	must(t, err)
	files := *h.archive
	files.vol = nil
	place := "item99"

	for name, ar := range map[string]*archive{"running": h.archive, "files alone": &files} {
		if takes, err := ar.Undoable(t.Context(), meta.ID, nil); err != nil || len(takes) != 0 {
			t.Errorf("%s: %v, %v, want nothing to take back", name, takes, err)
		}
		if _, err := ar.Undoable(t.Context(), meta.ID, &place); !errors.Is(err, record.ErrNoRecord) {
			t.Errorf("%s: a place that is not there: %v, want ErrNoRecord", name, err)
		}
		if _, err := ar.TakeBack(t.Context(), meta.ID, []string{"a.txt"}, false); !errors.As(err, new(*changes.NoFile)) {
			t.Errorf("%s: a file that nobody wrote: %v, want NoFile", name, err)
		}
		if _, err := ar.Undoable(t.Context(), "none", nil); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("%s: files of no agent: %v, want ErrUnknownAgent", name, err)
		}
		if _, err := ar.TakeBack(t.Context(), "none", nil, false); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("%s: taking back of no agent: %v, want ErrUnknownAgent", name, err)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func write(w *tar.Writer, s string) error {
	_, err := w.Write([]byte(s))
	return err
}

// What is exported comes back as the same agent where it is not known, and as
// another beside the one that is.
func TestExportAndImport(t *testing.T) {
	a := newHouse(t, t.TempDir(), nil)
	made, err := a.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops", SystemPrompt: "be calm"})
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range []string{address.File, "state.json"} {
		path := filepath.Join(a.folder(made.ID), file)
		if file == "state.json" {
			writeFile(t, path, `{"queue": "collect"}`)
		}
		writeFile(t, path, strings.Replace(readFile(t, path), "}", `,"mine": 1}`, 1))
	}

	var out bytes.Buffer
	if err := folders.Export(a.root, made.ID, &out); err != nil {
		t.Fatal(err)
	}
	data := out.Bytes()
	b := newHouse(t, t.TempDir(), nil)
	same, err := b.Import(t.Context(), bytes.NewReader(data), "")
	if err != nil || same.ID != made.ID || same.Name != "Ops" {
		t.Errorf("in another place: %+v, %v; want the same agent", same, err)
	}

	twin, err := b.Import(t.Context(), bytes.NewReader(data), "Twin")
	if err != nil || twin.ID == made.ID || twin.Name != "Twin" {
		t.Errorf("beside itself: %+v, %v; want another agent", twin, err)
	}

	for _, file := range []string{address.File, "state.json"} { // the members of one's own, too
		was, now := readFile(t, filepath.Join(a.folder(made.ID), file)), readFile(t, filepath.Join(b.folder(same.ID), file))
		if now != was || !strings.Contains(now, "mine") {
			t.Errorf("%s is\n%s\nit was\n%s", file, now, was)
		}
	}

	if m, _ := b.index.Get(twin.ID); m.Descriptor.SystemPrompt != "be calm" {
		t.Errorf("the twin is %+v, want the prompt of the other", m.Descriptor)
	}
}

// What is written for an agent that sleeps is an event, as it is for one that watches its files.
func TestWriteFileOfASleepingAgent(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	made, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	edited := func(name string) (many int) {
		for _, e := range told(h) {
			if f, ok := e.Body.(event.File); ok && e.Type == event.FileEdited && e.Agent == made.ID && f.File == name {
				many++
			}
		}
		return many
	}

	v, err := h.ReadFile(t.Context(), made.ID, "state.json")
	must(t, err)
	text := []byte("{\"mine\": 1}\n")
	for range 2 { // the second one changes nothing
		v, err = h.WriteFile(t.Context(), made.ID, "state.json", text, v.Hash)
		must(t, err)
	}
	if n := edited("state.json"); n != 1 {
		t.Errorf("%d events of a changed state.json, want 1", n)
	}
	v, err = h.ReadFile(t.Context(), made.ID, address.File)
	must(t, err)
	_, err = h.WriteFile(t.Context(), made.ID, address.File, bytes.Replace(v.Content, []byte("Ops"), []byte("Ops2"), 1), v.Hash)
	must(t, err)
	if n := edited(address.File); n != 1 {
		t.Errorf("%d events of a changed descriptor.json, want 1", n)
	}
}

func TestWriteFile(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	made, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	v, err := h.ReadFile(t.Context(), made.ID, address.File)
	if err != nil {
		t.Fatal(err)
	}

	edit := bytes.Replace(v.Content, []byte("Ops"), []byte("Ops2"), 1)
	if _, err := h.WriteFile(t.Context(), made.ID, address.File, edit, v.Hash); err != nil {
		t.Fatal(err)
	}
	if m, _ := h.index.Get(made.ID); m.Name != "Ops2" {
		t.Errorf("its name is %q, want the edit at once", m.Name)
	}

	var changed *folders.Changed
	if _, err := h.WriteFile(t.Context(), made.ID, address.File, edit, v.Hash); !errors.As(err, &changed) ||
		!bytes.Equal(changed.Now.Content, edit) {
		t.Errorf("an edit of an old version: %v, want Changed with the content", err)
	}
	other := bytes.Replace(edit, []byte(made.ID), []byte("abcdefghijklmnopqrstuvwx"), 1)
	if _, err := h.WriteFile(t.Context(), made.ID, address.File, other, changed.Now.Hash); err == nil {
		t.Error("a descriptor of another agent was accepted")
	}
	if _, err := h.ReadFile(t.Context(), made.ID, "../../auth.json"); !errors.Is(err, folders.ErrNotEditable) {
		t.Errorf("another file: %v, want ErrNotForHands", err)
	}
}

// A file that a user saves through an interface while its agent sleeps is reported as an edit; saving the same content again is not.
func TestASavedFileIsReported(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	v, err := s.System.ReadFile(t.Context(), id, "state.json")
	must(t, err)
	for range 2 {
		v, err = s.System.WriteFile(t.Context(), id, "state.json", []byte("{ }\n"), v.Hash)
		must(t, err)
		events, _ := s.events.Since(0)
		if n := len(slices.DeleteFunc(events, func(e event.Event) bool { return e.Type != event.FileEdited || e.Agent != id })); n != 1 {
			t.Errorf("told %d times, want once", n)
		}
	}
}
