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
func newThrowaway(root string, t trying) (w throwaway, err error) {
	dir, err := os.MkdirTemp("", "daycare-test-")
	if err != nil {
		return w, fmt.Errorf("make workspace of the test: %w", err)
	}
	w.dir = beneath.Real(dir)
	settings, err := settingsOf(root, t)
	if err != nil {
		return w, err
	}

	if err := errors.Join(w.write(filepath.Join(workspace.Home, config.Name), settings), w.prompts(root), w.folders(root)); err != nil {
		return w, err
	}
	for _, path := range slices.Sorted(maps.Keys(t.test.Files)) {
		if err := w.write(path, []byte(t.test.Files[path])); err != nil {
			return w, err
		}
	}

	return w, nil
}

// write makes a file of it, over one that is there.
func (w throwaway) write(rel string, content []byte) error {
	path := filepath.Join(w.dir, rel)
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
	home := filepath.Join(w.dir, workspace.Home)
	return errors.Join(os.RemoveAll(daemon.CommandHomes(home)), changes.RemoveAll(w.dir), os.RemoveAll(w.dir))
}

// kept are the sections of the settings that are those of the workspace. The others connect
// agents with what is outside.
var kept = []string{"models", "agents", "tools", "permissions", "budget"}

// settingsOf are the settings of a throwaway: JSON, which is YAML, too. What the provider needs
// to reach its service stays outside: it was made already.
func settingsOf(root string, t trying) ([]byte, error) {
	data, err := config.Text(filepath.Join(root, workspace.Home))
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
func (w throwaway) prompts(root string) error {
	waiting, err := unseen.Open(nil, root)
	if err != nil {
		return err
	}
	texts, _ := prompt.Load(root, waiting.Use)
	home := workspace.Home
	for _, f := range []struct{ rel, text string }{{home + "/SOUL.md", texts.Soul}, {home + "/USER.md", texts.User},
		{home + "/AGENTS.md", texts.Rules}, {"AGENTS.md", texts.Agents}, {"CLAUDE.md", texts.Claude}} {
		if f.text == "" {
			continue
		}
		if err := w.write(f.rel, []byte(f.text)); err != nil {
			return err
		}
	}

	return nil
}

// folders copies sub-agents and skills.
func (w throwaway) folders(root string) error {
	top, err := beneath.Root(root)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, rel := range []string{workspace.Home + "/subagents", workspace.Home + "/skills", ".agents/skills"} {
		dir, err := beneath.Sub(top, rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", rel, err)
		}
		err = w.copy(dir, rel, 0, all)
		dir.Close()
		if err != nil {
			return fmt.Errorf("copy %s: %w", rel, err)
		}
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
func (w throwaway) copy(dir *os.Root, rel string, depth int, wanted func(rel string) bool) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil || depth > maxDepth {
		return err
	}

	for _, e := range entries {
		at := filepath.Join(rel, e.Name())
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
