package prompt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/attacktest"
	"daycare/engine/unseen"
	"daycare/engine/workspace"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if f, found := Load(workspace.At(dir), nil); len(found) > 0 || f != (Files{}) {
		t.Fatalf("Load of an empty workspace = %+v, %v; want nothing", f, found)
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

	f, found := Load(workspace.At(dir), nil) // must not wait for a writer of the pipe
	if len(found) != 1 || found[0].File != filepath.Join(dir, ".daycare", "USER.md") {
		t.Errorf("of a named pipe as USER.md it says %v", found)
	}
	if diff := cmp.Diff(Files{Soul: "soul", Rules: "house", Agents: "project"}, f); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

// CLAUDE.md is used where there is no AGENTS.md, and only there: also not where AGENTS.md
// cannot be used.
func TestClaudeFileStandsIn(t *testing.T) {
	const claude, agents = "Tabs, not spaces.", "Spaces, not tabs."
	nothing := func(string) error { return nil }
	file := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	for name, tt := range map[string]struct {
		plant func(dir string) error
		want  Files
	}{
		"alone":                  {nothing, Files{Claude: claude}},
		"beside AGENTS.md":       {file("AGENTS.md", agents), Files{Agents: agents}},
		"beside an empty one":    {file("AGENTS.md", ""), Files{}},
		"with house rules":       {file(".daycare/AGENTS.md", "house"), Files{Rules: "house", Claude: claude}},
		"beside an unusable one": {func(dir string) error { return os.Mkdir(dir+"/AGENTS.md", 0o700) }, Files{}},
		"what AGENTS.md is a link to": {func(dir string) error { return os.Symlink("CLAUDE.md", dir+"/AGENTS.md") },
			Files{Agents: claude}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := errors.Join(os.Mkdir(dir+"/.daycare", 0o700), file("CLAUDE.md", claude)(dir), tt.plant(dir))
			if err != nil {
				t.Fatal(err)
			}
			asked := map[string]bool{}
			f, _ := Load(workspace.At(dir), func(path string, data []byte, info fs.FileInfo) ([]byte, bool, *unseen.Change) {
				asked[filepath.Base(path)] = true
				return data, info != nil, nil
			})
			if diff := cmp.Diff(tt.want, f); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
			if !asked["CLAUDE.md"] {
				t.Error("a change of CLAUDE.md by a command is not noticed until it is used")
			}
		})
	}
}

// What an agent puts in the place of AGENTS.md is not read into the prompts of all.
func TestPromptFilesAreNoWayOut(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "id_rsa")
	const secret = "TOP-SECRET"
	for name, plant := range map[string]func(dir string) error{
		"link to a key":     func(dir string) error { return os.Symlink(outside, dir+"/AGENTS.md") },
		"link to a history": func(dir string) error { return os.Symlink(".daycare/agents/x/history.jsonl", dir+"/AGENTS.md") },
		"link inside":       func(dir string) error { return os.Symlink("sub/secret.md", dir+"/AGENTS.md") },
		"link to a device":  func(dir string) error { return os.Symlink("/dev/zero", dir+"/AGENTS.md") },
		"link to a link": func(dir string) error {
			return errors.Join(os.Symlink(outside, dir+"/A.md"), os.Symlink("A.md", dir+"/AGENTS.md"))
		},
		"link to a pipe": func(dir string) error {
			return errors.Join(syscall.Mkfifo(dir+"/A.md", 0o600), os.Symlink("A.md", dir+"/AGENTS.md"))
		},
		"link to a hard link": func(dir string) error {
			return errors.Join(os.Link(outside, dir+"/A.md"), os.Symlink("A.md", dir+"/AGENTS.md"))
		},
		"link to no text": func(dir string) error {
			return errors.Join(os.Link(outside, dir+"/key"), os.Symlink("key", dir+"/AGENTS.md"))
		},
		"hard link":                         func(dir string) error { return os.Link(outside, dir+"/AGENTS.md") },
		"pipe":                              func(dir string) error { return syscall.Mkfifo(dir+"/AGENTS.md", 0o600) },
		"folder":                            func(dir string) error { return os.Mkdir(dir+"/AGENTS.md", 0o700) },
		"link in .daycare to the workspace": func(dir string) error { return os.Symlink("../sub/secret.md", dir+"/.daycare/SOUL.md") },
		"pipe in .daycare":                  func(dir string) error { return syscall.Mkfifo(dir+"/.daycare/SOUL.md", 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, path := range []string{outside, dir + "/sub/secret.md", dir + "/.daycare/agents/x/history.jsonl"} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(secret), 0o600)); err != nil {
					t.Fatal(err)
				}
			}

			if err := plant(dir); err != nil {
				t.Fatal(err)
			}
			f, found := Load(workspace.At(dir), nil)
			if f != (Files{}) || len(found) != 1 || found[0].Remedy == "" {
				t.Errorf("%+v, %v", f, found)
			}

			attacktest.Held(t, attacktest.Row{Class: "prompts, skills, memory",
				How: "opened as a plain file, or not at all", Name: "AGENTS.md: " + name})
		})
	}

	attacktest.AsUser(t)
}

// Users keep one text for several programs, and their own files where they like.
func TestLinksThatOwnersMake(t *testing.T) {
	dir, dotfiles := t.TempDir(), t.TempDir()
	err := errors.Join(os.Mkdir(dir+"/.daycare", 0o700),
		os.WriteFile(dir+"/CLAUDE.md", []byte("project"), 0o600), os.Symlink("CLAUDE.md", dir+"/AGENTS.md"),
		os.WriteFile(dotfiles+"/soul.md", []byte("soul"), 0o600), os.Symlink(dotfiles+"/soul.md", dir+"/.daycare/SOUL.md"))
	if err != nil {
		t.Fatal(err)
	}
	if f, found := Load(workspace.At(dir), nil); f != (Files{Soul: "soul", Agents: "project"}) || len(found) > 0 {
		t.Errorf("%+v, %v", f, found)
	}
}
