package control

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/engine/apitoken"
	"daycare/engine/disk"
	"daycare/engine/message"
	"daycare/engine/permission"
)

func store(t testing.TB) (*FileStore, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), ".daycare")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := NewFileStore(root, disk.NewVolume(root), permission.NewFolders(filepath.Join(root, "..")))
	if err != nil {
		t.Fatal(err)
	}

	return s, root
}

func TestFileStore(t *testing.T) {
	s, root := store(t)
	const png = "\x89PNG\r\n\x1a\n0000"
	f, err := s.Put("../Bild 1.png", strings.NewReader(png))
	if err != nil {
		t.Fatal(err)
	}

	want := message.File{Name: "Bild 1.png", MimeType: "image/png", Size: int64(len(png)),
		Path: filepath.Join(root, "files", f.ID+"__Bild 1.png")}
	if d := cmp.Diff(want, f, cmpopts.IgnoreFields(message.File{}, "ID")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	content, err := os.ReadFile(f.Path)
	if err != nil || string(content) != png {
		t.Errorf("content %q, %v", content, err)
	}

	ref, err := os.ReadFile(filepath.Join(root, "files", f.ID+".json"))
	golden := "{\n  \"id\": \"" + f.ID + "\",\n  \"name\": \"Bild 1.png\",\n  \"mimeType\": \"image/png\",\n  \"size\": 12\n}\n"
	if err != nil || string(ref) != golden {
		t.Errorf("reference is\n%s, want\n%s (%v)", ref, golden, err)
	}

	for _, path := range []string{f.Path, filepath.Join(root, "files", f.ID+".json")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	got, err := s.Get(f.ID)
	if err != nil || got != f {
		t.Errorf("Get gives %+v, %v; want %+v", got, err, f)
	}

	for _, id := range []string{"", "nope", "../../etc/passwd", strings.Repeat("a", 24)} {
		if _, err := s.Get(id); !errors.Is(err, ErrNoFile) {
			t.Errorf("Get(%q): %v", id, err)
		}
	}
	if _, err := s.Put("big", bytes.NewReader(make([]byte, MaxFileBytes+1))); !errors.Is(err, ErrFileTooLarge) {
		t.Errorf("over the bound: %v", err)
	}
}

// TestEditedReference: a reference that a user edited cannot lead elsewhere.
// A stored file is shown only if its content is a picture that cannot have a script, whatever it is called.
func TestAttachment(t *testing.T) {
	s, _ := store(t)
	h := Handler(Backend{Agents: &fake{}, Files: s}, Options{})
	get := func(id string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/v1/attachments/"+id, nil)
		h.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), Caller{Name: "me", Rights: apitoken.Everything})))
		return w
	}
	for name, c := range map[string]struct{ content, kind, way string }{
		"a.png":   {"\x89PNG\r\n\x1a\n0000", "image/png", "inline; filename=a.png"},
		"b.txt":   {"GIF89a....", "image/gif", "inline; filename=b.txt"},
		"c.png":   {"<svg onload='alert(1)'/>", "application/octet-stream", "attachment; filename=c.png"},
		"d.svg":   {"<svg xmlns='http://www.w3.org/2000/svg'/>", "application/octet-stream", "attachment; filename=d.svg"},
		"e.html":  {"<!doctype html><script>alert(1)</script>", "application/octet-stream", "attachment; filename=e.html"},
		"f g.pdf": {"%PDF-1.7", "application/octet-stream", `attachment; filename="f g.pdf"`},
	} {
		f, err := s.Put(name, strings.NewReader(c.content))
		if err != nil {
			t.Fatal(err)
		}
		w := get(f.ID)
		header := w.Header()
		if w.Code != http.StatusOK || w.Body.String() != c.content || header.Get("Content-Type") != c.kind ||
			header.Get("Content-Disposition") != c.way || header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %d %q %v", name, w.Code, w.Body, header)
		}
		if err := os.Remove(f.Path); err != nil {
			t.Fatal(err)
		}
		if w := get(f.ID); w.Code != http.StatusNotFound {
			t.Errorf("%s without its content: %d %s", name, w.Code, w.Body)
		}
	}
	for _, id := range []string{"nothing", "..%2Fsettings.yaml", strings.Repeat("a", 24)} {
		if w := get(id); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", id, w.Code, w.Body)
		}
	}
}

func TestEditedReference(t *testing.T) {
	s, root := store(t)
	f, err := s.Put("a.txt", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	ref := filepath.Join(root, "files", f.ID+".json")
	if err := os.WriteFile(ref, []byte(`{"id":"../x","name":"../../auth.json","size":1}`), 0o600); err != nil {
		t.Fatal(err)
	}

	got, err := s.Get(f.ID)
	if err != nil || got.ID != f.ID || filepath.Dir(got.Path) != filepath.Join(root, "files") {
		t.Errorf("Get gives %+v, %v", got, err)
	}
}

func TestAdopt(t *testing.T) {
	s, root := store(t)
	work := filepath.Dir(root)
	path := filepath.Join(work, "notes.md")
	if err := os.WriteFile(path, []byte("# Notes"), 0o644); err != nil {
		t.Fatal(err)
	}

	f, err := s.Adopt(path)
	if err != nil || f.Name != "notes.md" || f.Size != 7 || f.Path == path {
		t.Fatalf("Adopt gives %+v, %v", f, err)
	}
	if _, err := s.Adopt(f.Path); err != nil {
		t.Errorf("a kept file again: %v", err)
	}

	secret := filepath.Join(root, "auth.json")
	link, pipe := filepath.Join(work, "innocent.txt"), filepath.Join(work, "pipe")
	if err := errors.Join(os.WriteFile(secret, []byte("{}"), 0o600), os.Symlink(secret, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}

	// An agent prepares what its reader is to attach.
	outside := t.TempDir()
	key, second, folder := filepath.Join(work, "report.pdf"), filepath.Join(work, "second"), filepath.Join(work, "reports")
	if err := errors.Join(os.WriteFile(outside+"/key", []byte("key"), 0o600), os.Symlink(outside+"/key", key),
		os.Link(outside+"/key", second), os.Symlink(outside, folder)); err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string]string{
		"notes.md":                    "is not absolute",
		filepath.Join(work, "absent"): "no such file",
		work:                          "not a regular file",
		pipe:                          "not a regular file",
		secret:                        "is in .daycare",
		link:                          "is a symbolic link",
		key:                           "is a symbolic link",
		second:                        "has several names",
		filepath.Join(folder, "key"):  "symbolic link",
	} {
		var invalid *Invalid
		if _, err := s.Adopt(path); !errors.As(err, &invalid) || invalid.Field != "path" || !strings.Contains(invalid.Reason, want) {
			t.Errorf("Adopt(%s): %v, want %q", path, err, want)
		}
	}
}

func TestCleanName(t *testing.T) {
	for in, want := range map[string]string{
		"a.txt":                           "a.txt",
		"":                                "file",
		"..":                              "file",
		"/":                               "_",
		"/etc/passwd":                     "passwd",
		`C:\temp\a.doc`:                   "a.doc",
		".bashrc":                         "bashrc",
		"a\x00b\nc\u202e.txt":             "a_b_c_.txt",
		"\xff.txt":                        "_.txt",
		strings.Repeat("ü", 200):          strings.Repeat("ü", 60),
		strings.Repeat("n", 200) + ".tar": strings.Repeat("n", 116) + ".tar",
		"n" + strings.Repeat("ü", 200):    "n" + strings.Repeat("ü", 59),
	} {
		if got := cleanName(in); got != want {
			t.Errorf("cleanName(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzCleanName(f *testing.F) {
	f.Add("../x")
	f.Add(strings.Repeat("ü", 100) + "." + strings.Repeat("€", 10))
	f.Fuzz(func(t *testing.T, in string) {
		got := cleanName(in)
		if got == "" || len(got) > maxName || !utf8.ValidString(got) || strings.ContainsAny(got, "/\\\x00") ||
			got[0] == '.' || filepath.Base(got) != got {
			t.Errorf("cleanName(%q) = %q", in, got)
		}
		if again := cleanName(got); again != got {
			t.Errorf("%q is cleaned again to %q", got, again)
		}
	})
}
