package prompt

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if f, err := Load(dir); err != nil || f != (Files{}) {
		t.Fatalf("Load of an empty workspace = %+v, %v; want nothing", f, err)
	}
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("AGENTS.md", "project")
	write(".daycare/AGENTS.md", "house")
	write(".daycare/SOUL.md", "soul")
	if err := syscall.Mkfifo(filepath.Join(dir, ".daycare", "USER.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(dir) // must not wait for a writer of the pipe
	if err == nil {
		t.Error("a named pipe as USER.md gave no error")
	}
	if diff := cmp.Diff(Files{Soul: "soul", Rules: "house", Agents: "project"}, f); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}
