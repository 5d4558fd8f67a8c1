package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPathsAreStoredRelative(t *testing.T) {
	for _, tt := range []struct{ path, stored, resolved string }{
		{"/old/ws", ".", "/new"}, {"/old/ws/docs/", "docs", "/new/docs"}, {"/old/ws/..hidden", "..hidden", "/new/..hidden"},
		{"/old/wsx", "/old/wsx", "/old/wsx"}, {"/old", "/old", "/old"}, {"/srv/a", "/srv/a", "/srv/a"}, {"", "", ""},
	} {
		got := At("/old/ws").Store(tt.path)
		if back := At("/new").Resolve(got); got != tt.stored || back != tt.resolved {
			t.Errorf("%q is stored as %q and resolved to %q, want %q and %q", tt.path, got, back, tt.stored, tt.resolved)
		}
	}

	for tag, want := range map[string]string{"@read:/old/ws/docs": "@read:docs", "@write:/old/ws": "@write:.", "@read:/srv": "@read:/srv",
		"@exec:/old/ws/build": "@exec:/old/ws/build", "@web:a.example": "@web:a.example", "@web": "@web"} {
		if got := At("/old/ws").StoreTag(tag); got != want {
			t.Errorf("%q is stored as %q, want %q", tag, got, want)
		}
	}

	for stored, want := range map[string]string{"@read:docs": "@read:/new/docs", "@write:.": "@write:/new",
		"@read:/srv": "@read:/srv", "@exec:docs": "@exec:docs"} {
		if got := At("/new").ResolveTag(stored); got != want {
			t.Errorf("%q is resolved to %q, want %q", stored, got, want)
		}
	}
}

// What older versions wrote names the place where the workspace lay then.
func TestAttachmentsAreThoseOfThisWorkspace(t *testing.T) {
	for stored, want := range map[string]string{
		".daycare/files/a__x.txt": "/new/.daycare/files/a__x.txt", "/old/ws/.daycare/files/a__x.txt": "/new/.daycare/files/a__x.txt",
		"/srv/x.txt": "/srv/x.txt",
	} {
		if got := At("/new").ResolveFile(stored); got != want {
			t.Errorf("%q is resolved to %q, want %q", stored, got, want)
		}
		if got := (Place{}).ResolveFile(stored); got != stored {
			t.Errorf("%q is changed to %q, and no workspace is known", stored, got)
		}
	}
}

func TestOfAnAgentsFolder(t *testing.T) {
	for _, dir := range []string{"/ws/.daycare/agents/a", "/ws/.daycare/trash/a"} {
		if got := Of(dir).Dir; got != "/ws" {
			t.Errorf("the workspace of %s is %s", dir, got)
		}
	}
}

// A path is changed only by the workspace that it is in: without one, or in another form, it
// stays byte for byte as it is.
func TestWhatStaysAsItIs(t *testing.T) {
	for _, path := range []string{"", "docs/", "/a/../b", "/old/ws/docs/"} {
		if got := (Place{}).Store(path); got != path {
			t.Errorf("without a workspace %q is stored as %q", path, got)
		}
		if got := (Place{}).Resolve(path); got != path {
			t.Errorf("without a workspace %q is resolved to %q", path, got)
		}
	}

	if got := At("/old/ws").Store("docs/"); got != "docs/" {
		t.Errorf("what is stored already is stored as %q", got)
	}
	if got := At("/new").Resolve("/a/../b/"); got != "/b" {
		t.Errorf("an absolute path is resolved to %q, want it clean", got)
	}

	for _, tag := range []string{"@read", "@read:", "@write:", "@lan:nas:80", ""} {
		if stored, back := At("/ws").StoreTag(tag), At("/ws").ResolveTag(tag); stored != tag || back != tag {
			t.Errorf("%q is stored as %q and resolved to %q", tag, stored, back)
		}
	}
}

// Only an absolute path of an attachment names a place where the workspace lay.
func TestWhichPathIsOfAnotherPlace(t *testing.T) {
	for stored, want := range map[string]string{
		"docs/.daycare/files/a.txt": "/new/docs/.daycare/files/a.txt", "/.daycare/files/a.txt": "/new/.daycare/files/a.txt",
		"/one/.daycare/files/two/.daycare/files/a.txt": "/new/.daycare/files/a.txt",
		"/srv/.daycare/filesystem/a":                   "/srv/.daycare/filesystem/a",
	} {
		if got := At("/new").ResolveFile(stored); got != want {
			t.Errorf("%q is resolved to %q, want %q", stored, got, want)
		}
	}
}

// An agent's folder may be given relative to where the process is.
func TestOfARelativeFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := Of(".daycare/agents/a").Dir; got != here {
		t.Errorf("the workspace is %s, want %s", got, here)
	}
}

// A folder whose name JSON cannot say is no place for a workspace, nor for its files.
func TestAPathThatIsNotUTF8(t *testing.T) {
	for at, want := range map[Place]string{
		At("/home/anna/caf\xe9"):               `"/home/anna/caf\xe9"`,
		{"/ws", "/var/caf\xe9/own"}:            `"/var/caf\xe9/own"`,
		At("/home/anna/café"):                  "",
		{"/home/anna/cafe\u0301", "/var/café"}: "/var/café does not say",
	} {
		if err := at.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", at, err, want)
		}
	}
}

// A data folder elsewhere says which workspace it is of, and paths in it are stored as those of .daycare.
func TestElsewhere(t *testing.T) {
	data := filepath.Join(t.TempDir(), "own")
	at := Place{"/ws", data}
	if got := At("/ws"); got.Elsewhere() || got.Key() != "/ws" || got.Check() != nil {
		t.Errorf("%+v", got)
	}
	if !at.Elsewhere() || at.Key() != data || at.Lock() != data+"/daycare.lock" {
		t.Errorf("%+v", at)
	}

	for _, content := range []string{"", "{", "{}", `{"workspace":"ws"}`, `{"workspace":"/other"}`} {
		if content != "" {
			writeRecord(t, data, []byte(content))
		}
		if err := at.Check(); err == nil {
			t.Errorf("with %q it belongs to the workspace", content)
		}
		if got := OfData(data); got.Data != data || got.Dir != "" && content != `{"workspace":"/other"}` {
			t.Errorf("with %q it is %+v", content, got)
		}
	}
	writeRecord(t, data, at.Record())
	if dir, err := Recorded(data); dir != "/ws" || err != nil || at.Check() != nil || Of(data+"/agents/a") != at {
		t.Errorf("recorded is %q %v; %v; %+v", dir, err, at.Check(), Of(data+"/agents/a"))
	}

	for path, stored := range map[string]string{data: ".daycare", data + "/files/a": ".daycare/files/a", "/ws/docs": "docs", "/ws": ".",
		"/ws/.daycare/x": "/ws/.daycare/x", filepath.Dir(data): filepath.Dir(data), data + "x": data + "x"} {
		if got := at.Store(path); got != stored || at.Resolve(got) != path || at.ResolveFile(got) != path {
			t.Errorf("%s is stored as %s and resolved to %s, want %s", path, got, at.Resolve(got), stored)
		}
	}
	for stored, want := range map[string]string{"a/../.daycare/x": data + "/x", ".daycare/../x": "/ws/x", ".daycarex": "/ws/.daycarex",
		"/old/.daycare/files/a": data + "/files/a"} {
		if got := at.ResolveFile(stored); got != want {
			t.Errorf("%s is resolved to %s, want %s", stored, got, want)
		}
	}
	tag := "@read:" + data + "/cron/x/files"
	if got := at.StoreTag(tag); got != "@read:.daycare/cron/x/files" || at.ResolveTag(got) != tag {
		t.Errorf("the tag is stored as %s", got)
	}
	if got := (Place{Data: data}).Store(data + "/x"); got != data+"/x" {
		t.Errorf("without a workspace it is stored as %s", got)
	}
}

func writeRecord(t *testing.T, data string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(data, 0o700), os.WriteFile(filepath.Join(data, FileName), content, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// What is wrong with the file of a data folder is said; that it should be corrected, only where that is the remedy.
func TestAFileOfADataFolderThatCannotBeUsed(t *testing.T) {
	for content, want := range map[string]string{
		"{": "correct it", `{"workspace": "ws"}`: "not an absolute path", "": "find the workspace of a data folder",
	} {
		data := t.TempDir()
		path := filepath.Join(data, FileName)
		err := os.Mkdir(path, 0o700)
		if content != "" {
			err = errors.Join(os.Remove(path), os.WriteFile(path, []byte(content), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		if dir, err := Recorded(data); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %q, %v; want %q", content, dir, err, want)
		}
	}
}
