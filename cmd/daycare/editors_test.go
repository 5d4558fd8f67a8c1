//go:build !race

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An editor replaces a word in a file in its own way of saving.
type editor struct {
	name string
	tool string // the program that has to be installed; "": none
	edit func(t *testing.T, path, old, new string) error
}

// editors are the ways in which files are saved: what the programs do, by the
// programs themselves where they can be installed, and step by step where not.
var editors = []editor{
	{"rename over it", "", func(_ *testing.T, path, old, new string) error {
		return viaCopy(path, old, new, path+".swp", os.Rename)
	}},
	{"move it away, then write anew", "", func(_ *testing.T, path, old, new string) error {
		data, err := replaced(path, old, new)
		if err == nil {
			err = os.Rename(path, path+"~")
		}
		if err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}

		return os.Remove(path + "~")
	}},
	{"truncate and write in pieces", "", func(_ *testing.T, path, old, new string) error {
		return inPlace(path, old, new, func(f *os.File, data []byte) error {
			for line := range bytes.Lines(data) {
				half := len(line) / 2
				for _, piece := range [][]byte{line[:half], line[half:]} {
					if _, err := f.Write(piece); err != nil {
						return err
					}
					time.Sleep(2 * time.Millisecond)
				}
			}

			return nil
		})
	}},
	{"VS Code", "", func(_ *testing.T, path, old, new string) error { // open "w", write, fdatasync, close
		return inPlace(path, old, new, func(f *os.File, data []byte) error {
			_, err := f.Write(data)
			return errors.Join(err, f.Sync())
		})
	}},
	{"VS Code, atomic", "", func(_ *testing.T, path, old, new string) error {
		return viaCopy(path, old, new, path+".vsctmp", os.Rename)
	}},
	{"mv", "mv", func(t *testing.T, path, old, new string) error {
		return viaCopy(path, old, new, filepath.Join(t.TempDir(), "new"), tool("mv"))
	}},
	{"cp", "cp", func(t *testing.T, path, old, new string) error {
		return viaCopy(path, old, new, filepath.Join(t.TempDir(), "new"), tool("cp"))
	}},
	{"sed -i", "sed", func(_ *testing.T, path, old, new string) error {
		return runTool("sed", "-i", "s/"+old+"/"+new+"/g", path)
	}},
	{"rsync", "rsync", func(t *testing.T, path, old, new string) error {
		return viaCopy(path, old, new, filepath.Join(t.TempDir(), "new"), tool("rsync", "--checksum"))
	}},
	{"rsync --inplace", "rsync", func(t *testing.T, path, old, new string) error {
		return viaCopy(path, old, new, filepath.Join(t.TempDir(), "new"), tool("rsync", "--checksum", "--inplace"))
	}},
	{"git checkout", "git", gitCheckout},
	{"vim backupcopy=no", "vim", vim("no")},
	{"vim backupcopy=yes", "vim", vim("yes")},
	{"emacs", "emacs", func(_ *testing.T, path, old, new string) error {
		return runTool("emacs", "-Q", "--batch", path, "--eval",
			fmt.Sprintf(`(progn (while (search-forward %q nil t) (replace-match %q)) (save-buffer))`, old, new))
	}},
	{"nano", "nano", nano},
}

// viaCopy writes the new version to another file, and has that take the place.
func viaCopy(path, old, new, copy string, place func(copy, path string) error) error {
	data, err := replaced(path, old, new)
	if err == nil {
		err = os.WriteFile(copy, data, 0o600)
	}
	if err != nil {
		return err
	}
	defer os.Remove(copy)

	return place(copy, path)
}

// inPlace truncates the file and writes it.
func inPlace(path, old, new string, write func(*os.File, []byte) error) error {
	data, err := replaced(path, old, new)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}

	return errors.Join(write(f, data), f.Close())
}

func tool(name string, args ...string) func(copy, path string) error {
	return func(copy, path string) error { return runTool(name, append(args[:len(args):len(args)], copy, path)...) }
}

func runTool(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func vim(backup string) func(t *testing.T, path, old, new string) error {
	return func(_ *testing.T, path, old, new string) error {
		return runTool("vim", "-u", "NONE", "-es", "-c", "set backupcopy="+backup, "-c", "%s/"+old+"/"+new+"/ge", "-c", "wq", path)
	}
}

// gitCheckout has git put a committed version in the file's place.
func gitCheckout(t *testing.T, path, old, new string) error {
	repo := t.TempDir()
	base := filepath.Base(path)
	data, err := replaced(path, old, new)
	if err == nil {
		err = os.WriteFile(filepath.Join(repo, base), data, 0o600)
	}
	if err != nil {
		return err
	}

	for _, args := range [][]string{{"-C", repo, "init", "-q"}, {"-C", repo, "add", "."},
		{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"},
		{"--git-dir", filepath.Join(repo, ".git"), "--work-tree", filepath.Dir(path), "checkout", "-q", "HEAD", "--", base}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Dir(path)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}

	return nil
}

// nano has no batch mode: it gets a terminal, and keys like from a user.
func nano(t *testing.T, path, old, new string) error {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("NOT TRIED: script, which gives nano its terminal, is not installed")
	}
	cmd := exec.Command("script", "-qefc", fmt.Sprintf("nano -I %q", path), "/dev/null")
	cmd.Env = append(os.Environ(), "TERM=xterm", "LINES=24", "COLUMNS=80")
	keys, err := cmd.StdinPipe()
	if err != nil {
		return err
	}

	screen, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}

	watchdog := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer watchdog.Stop()

	// Each key when the screen asks for it.
	var shown []byte
	for _, step := range []struct{ shows, keys string }{
		{"^X", "\x1br"}, {"Search (to replace)", old + "\r"}, {"Replace with", new + "\r"},
		{"instance?", "a"}, {"occurrence", "\x0f"}, {"to Write", "\r"}, {"Wrote", "\x18"},
	} {
		for !bytes.Contains(shown, []byte(step.shows)) {
			more := make([]byte, 4096)
			n, err := screen.Read(more)
			if err != nil {
				return errors.Join(fmt.Errorf("nano ended before it showed %q: %q", step.shows, shown), cmd.Wait())
			}
			shown = append(shown, more[:n]...)
		}
		shown = shown[:0]
		if _, err := io.WriteString(keys, step.keys); err != nil {
			return err
		}
	}

	io.Copy(io.Discard, screen)
	return cmd.Wait()
}

// have skips a way of saving whose program is not there, loudly. With
// DAYCARE_EDITORS=all that is an error.
func (e editor) have(t *testing.T) {
	if e.tool == "" {
		return
	}
	if _, err := exec.LookPath(e.tool); err != nil {
		if strings.EqualFold(os.Getenv("DAYCARE_EDITORS"), "all") {
			t.Fatalf("%s is not installed, and DAYCARE_EDITORS=all asks for it", e.tool)
		}
		t.Skipf("NOT TRIED: %s is not installed", e.tool)
	}
}

// TestEditorMatrix lets every editor change every file beside a running agent: each
// edit is active in the next turn, or at once, and nothing that anybody wrote is
// lost.
func TestEditorMatrix(t *testing.T) {
	t.Parallel()
	o := newOps(t)
	word, turns := "word00", 0
	for i, e := range editors {
		t.Run(e.name, func(t *testing.T) {
			e.have(t)
			next := fmt.Sprintf("word%02d", i+1)
			for _, path := range o.edited() {
				// Where the agent appends while the editor has the file open, the editor
				// refuses to overwrite that; a user then saves once more.
				want := next
				if filepath.Base(path) == "history.jsonl" {
					want = "begin " + next // the agent writes the word as well, when it announces a right
				}

				err := e.edit(t, path, word, next)
				for try := 0; try < 5 && (err != nil || !strings.Contains(readOr(path), want)); try++ {
					time.Sleep(time.Second)
					err = e.edit(t, path, word, next)
				}
				if err != nil {
					t.Fatalf("%s: %v", filepath.Base(path), err)
				}
			}

			word = next
			o.ask(t, fmt.Sprintf("turn %d", turns))
			turns++
			o.checkTurn(t, word, turns)
			o.checkShared(t, word)
		})
	}

	if left, _ := filepath.Glob(filepath.Join(o.dir, "*.conflict-*")); len(left) > 0 {
		t.Errorf("edits that could simply be taken were kept as copies: %v", left)
	}
}
