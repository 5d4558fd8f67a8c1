package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"daycare/agents/prompt"
	"daycare/cmd/daycare/daemon"
	"daycare/engine/beneath"
	"daycare/engine/changes"
	"daycare/engine/config"
	"daycare/engine/form"
	"daycare/engine/unseen"
	"daycare/engine/workspace"
)

// A throwaway is a workspace for one run: the prompts, skills and sub-agents of the workspace
// whose agents are tested, the files of the test, and settings with one model.
type throwaway struct{ dir string }

// newThrowaway makes one. The caller removes it, also after an error if dir is not "".
func newThrowaway(at workspace.Place, t trying) (w throwaway, err error) {
	dir, err := os.MkdirTemp("", "daycare-test-")
	if err != nil {
		return w, fmt.Errorf("make workspace of the test: %w", err)
	}
	w.dir = beneath.Real(dir)
	settings, err := settingsOf(at, t)
	if err != nil {
		return w, err
	}

	if err := errors.Join(w.write(filepath.Join(w.at().Data, config.Name), settings), w.prompts(at), w.folders(at)); err != nil {
		return w, err
	}
	for _, path := range slices.Sorted(maps.Keys(t.test.Files)) {
		if err := w.write(filepath.Join(w.dir, path), []byte(t.test.Files[path])); err != nil {
			return w, err
		}
	}

	return w, nil
}

// at is where it is.
func (w throwaway) at() workspace.Place { return workspace.At(w.dir) }

// write makes a file of it, over one that is there.
func (w throwaway) write(path string, content []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("make workspace of the test: %w", err)
	}

	return nil
}

// remove takes the workspace away, with the homes of the commands that ran in it and the copies of its dry runs.
func (w throwaway) remove() error {
	if w.dir == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(daemon.CommandHomes(w.at().Data)), changes.RemoveAll(w.at()), os.RemoveAll(w.dir))
}

// kept are the sections of the settings that are those of the workspace. The others connect
// agents with what is outside.
var kept = []string{"models", "agents", "tools", "permissions", "budget"}

// settingsOf are the settings of a throwaway: JSON, which is YAML, too. What the provider needs
// to reach its service stays outside: it was made already.
func settingsOf(at workspace.Place, t trying) ([]byte, error) {
	data, err := config.Text(at.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string]any{}
	kind := form.Kind{ID: "settings"}
	kind.YAML(config.Name, data).Read(&all)
	maps.DeleteFunc(all, func(section string, _ any) bool { return !slices.Contains(kept, section) })

	p := t.provider
	provider := map[string]any{"id": p.ID, "type": p.Type}
	for key, value := range map[string]string{"model": p.Model, "baseURL": p.BaseURL} {
		if value != "" {
			provider[key] = value
		}
	}
	all["providers"] = []any{provider}
	if n := t.test.Rounds; n > 0 {
		agents, _ := all["agents"].(map[string]any)
		if agents == nil {
			agents = map[string]any{}
		}
		agents["toolRounds"] = map[string]any{"foreground": n, "background": n}
		all["agents"] = agents
	}

	return json.MarshalIndent(all, "", "  ")
}

// prompts are the texts that agents of the workspace have in their system prompt now.
func (w throwaway) prompts(at workspace.Place) error {
	waiting, err := unseen.Open(nil, at)
	if err != nil {
		return err
	}
	texts, _ := prompt.Load(at, waiting.Use)
	for i, text := range []string{texts.Soul, texts.User, texts.Rules, texts.Agents, texts.Claude} {
		if text == "" {
			continue
		}
		if err := w.write(prompt.Paths(w.at())[i], []byte(text)); err != nil {
			return err
		}
	}

	return nil
}

// folders copies sub-agents and skills.
func (w throwaway) folders(at workspace.Place) error {
	return errors.Join(w.folder(at.Data, w.at().Data, "subagents", all), w.folder(at.Data, w.at().Data, "skills", all),
		w.folder(at.Dir, w.dir, ".agents/skills", all))
}

// folder copies the folder name of from into to, if there is one.
func (w throwaway) folder(from, to, name string, wanted func(path string) bool) error {
	dir, err := beneath.Dir(from, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	defer dir.Close()
	if err := w.copy(dir, filepath.Join(to, name), 0, wanted); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}

	return nil
}

const (
	maxDepth  = 8        // of folders that are copied
	maxCopied = 16 << 20 // of a file, in bytes
)

// all copies what is there.
func all(string) bool { return true }

// copy copies the regular files of a folder that are wanted, which an agent may be able to write: links are
// left out, as agents leave them out.
func (w throwaway) copy(dir *os.Root, to string, depth int, wanted func(path string) bool) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil || depth > maxDepth {
		return err
	}

	for _, e := range entries {
		at := filepath.Join(to, e.Name())
		switch {
		case !wanted(at):
		case e.IsDir():
			sub, err := beneath.Enter(dir, e.Name(), nil)
			if err != nil {
				return err
			}
			err = w.copy(sub, at, depth+1, wanted)
			sub.Close()
			if err != nil {
				return err
			}
		case e.Type().IsRegular():
			data, _, err := beneath.Read(dir, e.Name(), maxCopied)
			if err != nil {
				return err
			}
			if err := w.write(at, data); err != nil {
				return err
			}
		}
	}

	return nil
}
