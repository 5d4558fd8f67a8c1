package daemon

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"daycare/agents/prompt"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// This file puts what is wrong with the files that agents share on the board: settings,
// tasks, definitions, skills.

// readShared notes what was found in a file of no single agent.
func (r *troubles) readShared(path string, found []finding.Finding) {
	r.problems.Set("", path, found)
}

// readFolder notes that a granted folder was replaced, or is the right one again.
func (r *troubles) readFolder(path string, err error) {
	if err == nil {
		r.readShared(path, nil)
		return
	}
	r.readShared(path, []finding.Finding{FolderReplaced(path, err)})
}

// FolderReplaced is what is wrong with a granted folder; err is a *permission.Replaced.
func FolderReplaced(path string, err error) finding.Finding {
	reason, remedy, _ := strings.Cut(err.Error(), "\n")
	return finding.Finding{ID: "folder-replaced", Severity: finding.Error, File: path, Reason: reason, Remedy: remedy}
}

// promptFiles reads what users wrote for all agents, and notes what cannot be used: then fine is false.
func (r factory) promptFiles() (texts prompt.Files, fine bool) {
	texts, found := prompt.Load(r.at, r.texts.Use)
	for _, path := range prompt.Paths(r.at) {
		r.readShared(path, slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool { return f.File != path }))
	}

	return texts, len(found) == 0
}

// readSettings records what was found in the settings; user interfaces are notified by events
// of their own.
func (r reloader) readSettings(found []finding.Finding) {
	var broken []finding.Finding
	for _, f := range found {
		f.Log(r.log)
		if f.Severity == finding.Error {
			broken = append(broken, f)
		}
	}
	r.problems.SetQuietly("", filepath.Join(r.at.Data, config.Name), broken)
}

// readTasks notes all that was found in the files of tasks and of the heartbeat.
func (r *troubles) readTasks(found []finding.Finding) {
	files := map[string][]finding.Finding{}
	for _, path := range r.tasks { // those that were wrong and may be good again
		files[path] = nil
	}
	r.tasks = nil
	for _, f := range found {
		files[f.File] = append(files[f.File], f)
	}
	for path, found := range files {
		r.readShared(path, found)
		if len(found) > 0 {
			r.tasks = append(r.tasks, path)
		}
	}
}

// lookAtTasks reads the files of tasks and of the heartbeat once, before anything runs.
func (r *Daemon) lookAtTasks() error {
	all, found, err := r.clocks.Tasks()
	if err != nil {
		return fmt.Errorf("read tasks: %w", err)
	}
	for _, e := range all {
		found = append(found, e.Found...)
	}
	b, more, err := r.clocks.Heartbeat()
	if err != nil {
		return fmt.Errorf("read heartbeat: %w", err)
	}
	found = append(found, more...)
	for _, p := range b.Prompts {
		found = append(found, p.Found...)
	}
	r.readTasks(found)
	return nil
}

// lookAtAll reads what nothing has read yet, because nothing runs.
func (r *Daemon) lookAtAll() error {
	found, err := r.index.Whole()
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	engine.NoteAgents(r.problems, r.at.Data, found)
	for _, m := range r.index.All() {
		dir := filepath.Join(r.at.Data, "agents", m.ID)
		_, _, found, err := record.ReadState(dir)
		if err != nil { // of one agent: the others are read all the same
			found = append(found, finding.Finding{ID: "state-unreadable", Severity: finding.Error,
				File: filepath.Join(dir, "state.json"), Reason: beneath.Reason(err).Error(),
				Remedy: "Check who owns the file and its mode."})
		}
		r.problems.Set(m.ID, filepath.Join(dir, "state.json"), found)
	}
	r.skills.List()
	return r.lookAtTasks()
}

// brokenFor returns the problems to report to an agent's model: of its own files, for an agent that
// speaks with a user also those that agents share, for one of the clock its task.
func (r factory) brokenFor(meta address.Meta) []finding.Finding {
	found, shared := r.problems.Of(meta.ID), r.problems.Of("")
	switch meta.Descriptor.Type {
	case address.User:
		return append(found, shared...)
	case address.Cron:
		if files := r.clocks.FilesOf(meta.ID); files != "" {
			return append(found, inFolder(shared, filepath.Dir(files))...)
		}
	case address.Heartbeat:
		return append(found, inFolder(shared, filepath.Join(r.at.Data, "heartbeat"))...)
	}

	return found
}

func inFolder(found []finding.Finding, dir string) []finding.Finding {
	return slices.DeleteFunc(found, func(f finding.Finding) bool { return !permission.Beneath(dir, f.File) })
}

// Problems converts findings to what user interfaces show.
func Problems(found []finding.Finding) []event.File {
	files := []event.File{}
	for _, f := range found {
		files = append(files, event.File{File: f.File, Line: f.Line, Column: f.Column, Text: f.Reason})
	}

	return files
}
