package lab

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/form"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// played are the sections of the settings that a simulation has, too. The others connect agents with
// what is outside, or say how files are kept.
var played = append([]string{"routing", "cron", "heartbeat"}, kept...)

// doubled are the folders of .daycare that a simulation has a copy of.
var doubled = []string{"agents", "cron", "heartbeat", "memory", "usage"}

// newDouble makes a copy of a workspace for a simulation: agents with their conversations, tasks, heartbeat
// and memory, and of its files those of the script. The caller removes it, also after an error if dir is not "".
func newDouble(at workspace.Place, script simScript) (w throwaway, err error) {
	// Its name is always as long, because prompts name it.
	w.dir = filepath.Join(beneath.Real(os.TempDir()), "daycare-simulation-"+rand.Text())
	settings, err := w.playedSettings(at)
	if err != nil {
		return w, err
	}
	if err := errors.Join(w.write(filepath.Join(w.at().Data, config.Name), settings), w.prompts(at), w.folders(at),
		w.double(at)); err != nil {
		return w, err
	}
	for _, path := range slices.Sorted(maps.Keys(script.Files)) {
		if err := w.write(filepath.Join(w.dir, path), []byte(script.Files[path])); err != nil {
			return w, err
		}
	}

	return w, errors.Join(w.confined(), w.since(script.from))
}

// playedSettings are the settings, with nothing of the providers but who they are: no key is needed.
func (w throwaway) playedSettings(at workspace.Place) ([]byte, error) {
	data, err := config.Text(at.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string]any{}
	kind := form.Kind{ID: "settings"}
	kind.YAML(config.Name, data).Read(&all)
	maps.DeleteFunc(all, func(section string, _ any) bool { return !slices.Contains(played, section) })

	conf, _, err := config.Load(at.Data, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, p := range conf.Providers {
		one := map[string]any{"id": p.ID, "type": p.Type}
		for key, value := range map[string]string{"model": p.Model, "baseURL": p.BaseURL} {
			if value != "" {
				one[key] = value
			}
		}
		list = append(list, one)
	}
	if all["providers"] = list; len(list) == 0 {
		delete(all, "providers")
	}
	tools, _ := all["tools"].(map[string]any)
	if exec, ok := tools["exec"].(map[string]any); ok && exec["sandbox"] == "off" {
		delete(exec, "sandbox") // which would be this machine
	}

	return json.MarshalIndent(all, "", "  ")
}

// double copies the folders of .daycare that are played.
func (w throwaway) double(at workspace.Place) error {
	for _, name := range doubled {
		if err := w.folder(at.Data, w.at().Data, name, isPlayed); err != nil {
			return err
		}
	}

	return nil
}

// isPlayed reports whether a file or folder of .daycare is needed. Ledgers are not: what was missed until the simulation
// begins is not made up for in it. Last good versions of files are not, either: they have folders of this machine.
func isPlayed(path string) bool {
	base := filepath.Base(path)
	return !slices.Contains([]string{"runs.jsonl", "runs", "blobs", "undo", "jobs"}, base) && base[0] != '.'
}

// since has tasks and heartbeat count from a time: they count from when their files were saved.
func (w throwaway) since(at time.Time) error {
	for _, pattern := range []string{"cron/*/TASK.md", "heartbeat/*.md"} {
		paths, err := disk.Glob(w.at().Data, pattern)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := os.Chtimes(path, at, at); err != nil {
				return err
			}
		}
	}

	return nil
}

// confined keeps the copied agents in the copied workspace: folders elsewhere are not theirs any more.
func (w throwaway) confined() error {
	folders, err := disk.Glob(w.at().Data, "agents/*")
	if err != nil {
		return fmt.Errorf("confine agents: %w", err)
	}
	for _, dir := range folders {
		state, raw, _, err := record.ReadState(dir)
		if err != nil || raw == nil {
			continue // the engine reports it, and the agent has no permissions
		}
		p := &state.Permissions
		inside := func(path string) bool { return permission.Beneath(w.dir, path) }
		if !inside(p.WorkingDir) {
			p.WorkingDir = w.dir
		}
		outside := func(path string) bool { return !inside(path) }
		p.ReadDirs, p.WriteDirs = slices.DeleteFunc(p.ReadDirs, outside), slices.DeleteFunc(p.WriteDirs, outside)
		state.Announced = nil
		data, err := record.EncodeState(w.at(), state)
		if err != nil {
			return err
		}
		if err := w.write(filepath.Join(dir, "state.json"), data); err != nil {
			return err
		}
	}

	return nil
}
