package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/control"
)

var hostileFor = flag.Duration("hostile", 2*time.Second, "how long hands save beside a running agent")

// An editor replaces a word in a file in its own way of saving.
type editor struct {
	name string
	edit func(path, old, new string) error
}

func replaced(path, old, new string) ([]byte, error) {
	data, err := os.ReadFile(path)
	return bytes.ReplaceAll(data, []byte(old), []byte(new)), err
}

func runTool(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func editors(t *testing.T) []editor {
	all := []editor{
		{"rename over", func(path, old, new string) error {
			data, err := replaced(path, old, new)
			if err == nil {
				err = os.WriteFile(path+".swp", data, 0o600)
			}
			if err != nil {
				return err
			}
			return os.Rename(path+".swp", path)
		}},
		{"away, then new", func(path, old, new string) error { // vim with backupcopy=no, emacs
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
		{"truncate, then pieces", func(path, old, new string) error { // VS Code, nano, echo >
			data, err := replaced(path, old, new)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0o600)
			if err != nil {
				return err
			}
			defer f.Close()
			for piece := range bytes.SplitSeq(data, []byte("\n")) {
				if _, err := f.Write(append(bytes.Clone(piece), '\n')); err != nil {
					return err
				}
				time.Sleep(2 * time.Millisecond)
			}
			return f.Truncate(int64(len(data)))
		}},
		{"cp", func(path, old, new string) error {
			data, err := replaced(path, old, new)
			if err == nil {
				err = os.WriteFile(path+".copy", data, 0o600)
			}
			if err != nil {
				return err
			}
			defer os.Remove(path + ".copy")
			return runTool("cp", path+".copy", path)
		}},
		{"git checkout", func(path, old, new string) error {
			dir := t.TempDir()
			data, err := replaced(path, old, new)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o600)
			}
			if err != nil {
				return err
			}
			for _, args := range [][]string{{"-C", dir, "init", "-q"}, {"-C", dir, "add", "."},
				{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"},
				{"--git-dir", filepath.Join(dir, ".git"), "--work-tree", filepath.Dir(path), "checkout", "-q", "HEAD", "--", filepath.Base(path)}} {
				cmd := exec.Command("git", args...)
				cmd.Dir = filepath.Dir(path)
				if out, err := cmd.CombinedOutput(); err != nil {
					return fmt.Errorf("git %v: %w: %s", args, err, out)
				}
			}
			return nil
		}},
		{"sed -i", func(path, old, new string) error { return runTool("sed", "-i", "s/"+old+"/"+new+"/g", path) }},
		{"vim backupcopy=no", func(path, old, new string) error { return vim("no", path, old, new) }},
		{"vim backupcopy=yes", func(path, old, new string) error { return vim("yes", path, old, new) }},
		{"rsync", func(path, old, new string) error {
			data, err := replaced(path, old, new)
			from := filepath.Join(t.TempDir(), filepath.Base(path))
			if err == nil {
				err = os.WriteFile(from, data, 0o600)
			}
			if err != nil {
				return err
			}
			return runTool("rsync", "--checksum", from, path)
		}},
	}
	needs := map[string]string{"git checkout": "git", "sed -i": "sed", "vim backupcopy=no": "vim", "vim backupcopy=yes": "vim", "rsync": "rsync"}
	var have []editor
	for _, e := range all {
		if tool := needs[e.name]; tool != "" {
			if _, err := exec.LookPath(tool); err != nil {
				t.Logf("not tried: %s is not installed", tool)
				continue
			}
		}
		have = append(have, e)
	}
	return have
}

func vim(backup, path, old, new string) error {
	return runTool("vim", "-u", "NONE", "-es", "-c", "set backupcopy="+backup, "-c", "%s/"+old+"/"+new+"/ge", "-c", "wq", path)
}

// TestEditorMatrix lets every editor change every file of a running agent: each edit
// is in force in the next turn, and nothing that anybody wrote is lost.
func TestEditorMatrix(t *testing.T) {
	root, client, dir := runningOps(t)
	paths := []string{filepath.Join(dir, "descriptor.json"), filepath.Join(dir, "state.json"),
		filepath.Join(dir, "history.jsonl"), filepath.Join(root, "SOUL.md")}
	word := "word0"
	for i, e := range editors(t) {
		next := fmt.Sprintf("word%d", i+1)
		for _, path := range paths {
			if err := e.edit(path, word, next); err != nil {
				t.Fatalf("%s: %s: %v", e.name, filepath.Base(path), err)
			}
		}
		word = next
		askOps(t, client, fmt.Sprintf("turn %d", i))

		history, system := readText(t, paths[2]), readText(t, filepath.Join(dir, "SYSTEM.md"))
		if !strings.Contains(system, "prompt "+word) || !strings.Contains(system, "soul "+word) {
			t.Errorf("%s: descriptor or SOUL.md is not in force:\n%s", e.name, system)
		}
		if !strings.Contains(history, `changed-by-hand","tag":"+@exec:`+word) {
			t.Errorf("%s: the change of rights was not announced", e.name)
		}
		if !strings.Contains(history, "begin "+word) || strings.Contains(history, "begin word0") {
			t.Errorf("%s: the edit of history was lost", e.name)
		}
		for j := range i + 1 {
			if n := strings.Count(history, fmt.Sprintf(`"text":"turn %d"`, j)); n != 1 {
				t.Errorf("%s: message %d stands in history %d times, want once", e.name, j, n)
			}
		}
		if state := readText(t, paths[1]); !strings.Contains(state, word) {
			t.Errorf("%s: the edit of state.json was overwritten:\n%s", e.name, state)
		}
	}
}

// runningOps is a daemon with one agent whose files all have the word word0.
func runningOps(t *testing.T) (root string, client *control.Client, dir string) {
	t.Helper()
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, "script.yaml"), `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`)
	write(t, filepath.Join(workspace, home, "settings.yaml"),
		fmt.Sprintf("providers:\n  - { id: echo, type: scripted, options: { script: %q } }\n", filepath.Join(workspace, "script.yaml")))
	write(t, filepath.Join(workspace, home, "SOUL.md"), "soul word0\n")
	root = startRuntime(t, workspace)
	client, err := control.Dial(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a, err := client.Create(t.Context(), control.NewAgent{Type: "permanent", Name: "Ops", SystemPrompt: "prompt word0"})
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(root, "agents", a.ID)
	askOps(t, client, "begin word0")
	content, hash, err := client.ReadFile(t.Context(), "Ops", "state.json")
	if err == nil {
		content = bytes.Replace(content, []byte(`"exec": []`), []byte(`"exec": ["word0"]`), 1)
		err = client.WriteFile(t.Context(), "Ops", "state.json", content, hash)
	}
	if err != nil {
		t.Fatal(err)
	}
	return root, client, dir
}

func askOps(t *testing.T, client *control.Client, text string) {
	t.Helper()
	o, err := client.Stream(t.Context(), "Ops", control.Message{Text: text}, nil)
	if err != nil || o.Reason != "done" {
		t.Fatalf("%q: %+v, %v", text, o, err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestHostileSaves saves state.json and history.jsonl without a pause beside an agent
// at work: no save is lost, and no record of the runtime.
func TestHostileSaves(t *testing.T) {
	_, client, dir := runningOps(t)
	state, history := filepath.Join(dir, "state.json"), filepath.Join(dir, "history.jsonl")
	stop, done := make(chan struct{}), make(chan int)
	go func() { // a person who writes a note into history again and again
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			case <-time.After(150 * time.Millisecond):
			}
			data, err := os.ReadFile(history)
			if err == nil {
				err = os.WriteFile(history+".swp", fmt.Appendf(data, "{\"type\":\"note\",\"text\":\"hand %d.\"}\n", n), 0o600)
			}
			if err == nil {
				err = os.Rename(history+".swp", history)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	turns, saves, lost := 0, 0, 0
	for end := time.Now().Add(*hostileFor); time.Now().Before(end); turns++ {
		askOps(t, client, fmt.Sprintf("turn %d.", turns))
		if _, err := client.Compact(t.Context(), "Ops"); err != nil { // more records beside
			t.Fatal(err)
		}
		if turns%3 == 0 { // the runtime writes state.json too
			if _, err := client.Reset(t.Context(), "Ops"); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			if saves++; !saved(t, state, saves) {
				lost++
			}
		}
	}
	close(stop)
	notes := <-done
	askOps(t, client, "the end.")
	all := readText(t, history)
	gone, missing := 0, 0
	for i := range notes {
		if !strings.Contains(all, fmt.Sprintf(`"hand %d."`, i)) {
			gone++
		}
	}
	for i := range turns {
		if strings.Count(all, fmt.Sprintf(`"text":"turn %d."`, i)) != 1 || strings.Count(all, fmt.Sprintf(`heard turn %d.`, i)) != 1 {
			missing++
		}
	}
	t.Logf("%d saves of state.json, %d lost; %d saves of history, %d lost; %d turns, %d lost or doubled", saves, lost, notes, gone, turns, missing)
	if lost+gone+missing > 0 {
		t.Error("something was lost")
	}
}

// saved saves a file with a member of one's own, and reports whether it is still
// there a moment later.
func saved(t *testing.T, path string, n int) bool {
	t.Helper()
	text := readText(t, path)
	if at := strings.Index(text, `"mine":`); at >= 0 { // that of the last time
		text = text[:at] + text[at+strings.IndexByte(text[at:], ',')+1:]
	}
	mark := fmt.Sprintf(`"mine": %d,`, n)
	err := os.WriteFile(path+".swp", []byte("{"+mark+text[1:]), 0o600)
	if err == nil {
		err = os.Rename(path+".swp", path)
	}
	if err != nil {
		t.Error(err)
	}
	time.Sleep(2 * time.Millisecond)
	// For the instant between an exchange and its taking back, the runtime's version
	// stands there: lost is what does not come back.
	for range 100 {
		if strings.Contains(readText(t, path), mark) {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}
