package control

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// A file is kept whole or not at all, and whoever gave it hears of any step that fails.
func TestEachFailedStepOfKeepingAFileIsReported(t *testing.T) {
	for _, fault := range []string{"eio", "enospc"} {
		crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
			s, _ := store(t)
			return func() error { _, err := s.Put("a.txt", strings.NewReader("x")); return err }
		})
		crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
			s, root := store(t)
			f, err := s.Put("a.txt", strings.NewReader("x"))
			if err == nil {
				err = os.Remove(filepath.Join(root, "files", f.ID+".json"))
			}
			if err != nil {
				t.Fatal(err)
			}

			return func() error { return Refer(s.vol, root, filepath.Base(f.Path)) }
		})
	}

	s, root := store(t)
	cut := errors.New("cut")
	if f, err := s.Put("a.txt", iotest.ErrReader(cut)); !errors.Is(err, cut) {
		t.Errorf("a file that cannot be read is kept: %+v, %v", f, err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "files/*")); len(left) > 0 {
		t.Errorf("%v is left of it", left)
	}
	if f, err := s.Put("a", bytes.NewReader(make([]byte, MaxFileBytes))); err != nil || f.Size != MaxFileBytes {
		t.Errorf("as much as may be: %+v, %v", f, err)
	}
}

// common is what machines keep for each other.
type common struct {
	files map[string][]byte
	why   error
}

func (c *common) Keep(name string, data []byte) error {
	c.files[name] = data
	return c.why
}

func (c *common) Fetch(name string) ([]byte, bool, error) {
	data, ok := c.files[name]
	return data, ok, c.why
}

// shared is a store of another machine, and an attachment that one has stored.
func shared(t *testing.T) (s *FileStore, root string, c *common, id string) {
	t.Helper()
	c = &common{files: map[string][]byte{}}
	first, _ := store(t)
	first.Share(c)
	f, err := first.Put("a.txt", strings.NewReader("text"))
	if err != nil {
		t.Fatal(err)
	}
	s, root = store(t)
	s.Share(c)
	return s, root, c, f.ID
}

// An attachment that one machine stored is fetched whole by another, once.
func TestAttachmentsOfAnotherMachine(t *testing.T) {
	s, root, c, id := shared(t)
	f, err := s.Get(id)
	if err != nil || f.Name != "a.txt" || f.Size != 4 || f.Path != filepath.Join(root, "files", id+"__a.txt") {
		t.Fatalf("%+v, %v", f, err)
	}
	if data, err := s.Read(f); err != nil || string(data) != "text" {
		t.Errorf("it holds %q, %v", data, err)
	}
	c.why = errors.New("out of reach")
	if again, err := s.Get(id); err != nil || again != f {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	if kept, err := s.Keep(id, "b.txt", strings.NewReader("other")); err != nil || kept != f {
		t.Errorf("kept under the same id: %+v, %v", kept, err)
	}
	if kept, err := s.Keep("../x", "b.txt", strings.NewReader("other")); !errors.Is(err, ErrNoFile) {
		t.Errorf("kept under a path: %+v, %v", kept, err)
	}
	if f, err := s.Put("c.txt", strings.NewReader("x")); !errors.Is(err, c.why) {
		t.Errorf("one that the others cannot have: %+v, %v", f, err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "files/*.json")); len(left) != 1 {
		t.Errorf("stored are %v", left)
	}
}

// One that cannot be fetched whole is not there, or the reason is an error; nothing of it is stored.
func TestAttachmentsThatCannotBeFetched(t *testing.T) {
	away := errors.New("out of reach")
	for name, tt := range map[string]struct {
		spoil func(c *common, id string)
		want  error // nil: any
		gone  bool
	}{
		"out of reach":      {func(c *common, _ string) { c.why = away }, away, false},
		"no reference":      {func(c *common, id string) { delete(c.files, copyOf(id, "reference")) }, ErrNoFile, true},
		"no content":        {func(c *common, id string) { delete(c.files, copyOf(id, "content")) }, ErrNoFile, true},
		"a broken one":      {func(c *common, id string) { c.files[copyOf(id, "reference")] = []byte("{") }, nil, false},
		"nothing of it all": {func(c *common, _ string) { clear(c.files) }, ErrNoFile, true},
	} {
		s, root, c, id := shared(t)
		tt.spoil(c, id)
		f, err := s.Get(id)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) || errors.Is(err, ErrNoFile) != tt.gone {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
		if left, _ := filepath.Glob(filepath.Join(root, "files/*")); len(left) > 0 {
			t.Errorf("%s: %v is left of it", name, left)
		}
	}
	for _, fault := range []string{"eio", "eacces"} { // the second one lets the next step be done
		crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
			s, _, _, id := shared(t)
			return func() error { _, err := s.Get(id); return err }
		})
	}
}

// What a crash left half written is gone after a start.
func TestHalfWrittenFilesAreRemoved(t *testing.T) {
	s, root := store(t)
	if err := s.Recover(); err != nil {
		t.Fatal(err)
	}
	if !disk.Exists(filepath.Join(root, "files")) {
		t.Error("the folder is not there")
	}
	if err := errors.Join(os.Remove(filepath.Join(root, "files")), os.WriteFile(filepath.Join(root, "files"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Recover(); err == nil {
		t.Error("a file is in the place of the folder, and nothing is said")
	}
	if _, err := s.Put("a", strings.NewReader("x")); err == nil {
		t.Error("a file is in the place of the folder, and one is kept")
	}
}

// A reference that cannot be read is not a file that is not there.
func TestAReferenceThatCannotBeRead(t *testing.T) {
	s, root := store(t)
	for name, make := range map[string]func(path string) error{
		"no JSON":   func(path string) error { return os.WriteFile(path, []byte(`{"id":`), 0o600) },
		"too large": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte(" "), maxReference+1), 0o600) },
		"a folder":  func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		f, err := s.Put("a.txt", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, "files", f.ID+".json")
		if err := errors.Join(os.Remove(path), make(path)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(f.ID); err == nil || errors.Is(err, ErrNoFile) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// The content of a kept file is read where the store is now, and from nowhere else.
func TestWhereAKeptFileIsRead(t *testing.T) {
	s, root := store(t)
	f, err := s.Put("a.txt", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := s.Read(f); string(data) != "x" || err != nil {
		t.Errorf("as it was kept: %q, %v", data, err)
	}

	moved := f
	moved.Path = filepath.Join("/elsewhere/.daycare/files", filepath.Base(f.Path))
	if data, err := s.Read(moved); string(data) != "x" || err != nil {
		t.Errorf("kept before the workspace was moved: %q, %v", data, err)
	}
	if err := os.WriteFile(filepath.Join(root, "auth.json"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{filepath.Join(root, "auth.json"), filepath.Join(root, "files", "..", "auth.json"),
		filepath.Join(root, "files"),
		filepath.Join(root, f.ID+"__a.txt"), filepath.Join(root, "files", "auth.json"), ""} {
		if data, err := s.Read(message.File{ID: f.ID, Path: path}); !errors.Is(err, ErrNoFile) {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

// A file that was adopted under an id once is not read again under it.
func TestAFileIsAdoptedOnce(t *testing.T) {
	s, root := store(t)
	for _, dir := range []string{filepath.Dir(root), t.TempDir()} { // where agents write, and elsewhere
		path := filepath.Join(dir, "notes.md")
		if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
			t.Fatal(err)
		}
		id := strings.Repeat("a", 20) + filepath.Base(t.TempDir())[:3] + string(rune('a'+len(dir)%26))
		first, err := s.AdoptAs(id, "", path)
		if err != nil || first.ID != id || first.Name != "notes.md" || first.Size != 3 ||
			!strings.HasPrefix(first.MimeType, "text/markdown") {
			t.Fatalf("%+v, %v", first, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if again, err := s.AdoptAs(id, "other", path); again != first || err != nil {
			t.Errorf("again: %+v, %v", again, err)
		}
	}

	path := filepath.Join(filepath.Dir(root), "notes.md")
	if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := s.AdoptAs(strings.Repeat("b", 24), "called", path); err != nil || f.Name != "called" {
		t.Errorf("under another name: %+v, %v", f, err)
	}
}

// Outside of where agents write, links are the user's own; what is not a file, and what is in
// .daycare, is refused there too.
func TestWhatIsAdoptedFromElsewhere(t *testing.T) {
	s, root := store(t)
	kept, err := s.Put("kept.txt", strings.NewReader("kept"))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	at := func(name string) string { return filepath.Join(out, name) }
	if err := errors.Join(os.WriteFile(at("file"), []byte("x"), 0o600), os.Symlink(at("file"), at("link")),
		os.Symlink(kept.Path, at("kept")),
		os.WriteFile(filepath.Join(root, "auth.json"), []byte("secret"), 0o600), os.Symlink(filepath.Join(root, "auth.json"), at("auth")),
		os.Symlink(at("round"), at("round")), os.Symlink(at("none"), at("dangling")), syscall.Mkfifo(at("pipe"), 0o600),
		os.Mkdir(at("dir"), 0o700),
		os.WriteFile(at("large"), nil, 0o600), os.Truncate(at("large"), MaxFileBytes+1)); err != nil {
		t.Fatal(err)
	}

	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()

	for name, size := range map[string]int64{"file": 1, "link": 1, "kept": 4} {
		if f, err := s.Adopt(at(name)); err != nil || f.Size != size || f.Name != name {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}

	for _, name := range []string{"auth", "round", "dangling", "pipe", "dir", "socket", "none", "dir/none"} {
		var invalid *Invalid
		if f, err := s.Adopt(at(name)); !errors.As(err, &invalid) || invalid.Field != "path" || strings.Contains(invalid.Reason, out) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}

	if _, err := s.Adopt(at("large")); !errors.Is(err, ErrFileTooLarge) {
		t.Errorf("a large one: %v", err)
	}
}

// A content without its reference gets one of what it is, if it is named as a kept file.
func TestAReferenceIsMadeAgain(t *testing.T) {
	s, root := store(t)
	f, err := s.Put("Bild.png", strings.NewReader("\x89PNG\r\n\x1a\n0000"))
	if err == nil {
		err = os.Remove(filepath.Join(root, "files", f.ID+".json"))
	}
	if err == nil {
		err = Refer(s.vol, root, filepath.Base(f.Path))
	}
	if got, gerr := s.Get(f.ID); err != nil || gerr != nil || got != f {
		t.Errorf("made again it is %+v, %v, %v; want %+v", got, err, gerr, f)
	}

	id := strings.Repeat("c", 24)
	dir := filepath.Join(root, "files")
	large, link := strings.Repeat("d", 24)+"__x", strings.Repeat("e", 24)+"__x"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, large), nil, 0o600), os.Truncate(filepath.Join(dir, large), MaxFileBytes+1),
		os.WriteFile(filepath.Join(dir, "short__x"), nil, 0o600), os.WriteFile(filepath.Join(dir, id), nil, 0o600),
		os.Symlink(f.Path, filepath.Join(dir, link)), os.Mkdir(filepath.Join(dir, strings.Repeat("f", 24)+"__x"), 0o700)); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"", "x", id, id + "_x", "short__x", "../" + id + "__x", id + "__none", large, link,
		strings.Repeat("f", 24) + "__x"} {
		if err := Refer(s.vol, root, name); err == nil {
			t.Errorf("%q has a reference now", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(left) != 1 {
		t.Errorf("references are %v", left)
	}
}

// What a file is follows from its content, where that says it.
func TestWhatAFileIs(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n0000"
	for _, tt := range []struct{ name, content, want string }{
		{"a.txt", png, "image/png"}, {"a", png, "image/png"}, {"a.css", "x{}", "text/css; charset=utf-8"},
		{"a", "text", "text/plain; charset=utf-8"},
		{"a.pdf", "\x00\x01\x02", "application/pdf"}, {"a.none", "\x00\x01\x02", "application/octet-stream"},
		{"a.png", "%PDF-1.7", "application/pdf"},
	} {
		if got := mimeOf(tt.name, []byte(tt.content)); got != tt.want {
			t.Errorf("%s with %q is %s, want %s", tt.name, tt.content, got, tt.want)
		}
	}

	for in, want := range map[string]string{
		strings.Repeat("n", maxName): strings.Repeat("n", maxName), strings.Repeat("n", maxName+1): strings.Repeat("n", maxName),
		strings.Repeat("n", maxName) + "." + strings.Repeat("e", 15): strings.Repeat("n", maxName-16) + "." + strings.Repeat("e", 15),
		strings.Repeat("n", maxName) + "." + strings.Repeat("e", 16): strings.Repeat("n", maxName), "a:b/c:d": "c_d",
	} {
		if got := cleanName(in); got != want {
			t.Errorf("%q is cleaned to %q, want %q", in, got, want)
		}
	}

	for id, want := range map[string]bool{strings.Repeat("a", 23): false, strings.Repeat("a", 24): true, strings.Repeat("9", 32): true,
		strings.Repeat("a", 33): false, strings.Repeat("a", 23) + "A": false, strings.Repeat("a", 23) + "/": false} {
		if isID(id) != want {
			t.Errorf("%q is an id: %v", id, !want)
		}
	}
}
