package engine

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/watch"
)

// The folder of every agent in memory is watched. What a user writes there counts
// from the agent's next turn: the engine reads the descriptor, because it routes by
// it; state and history are the agent's own to read, which is only poked.

// rereads are how long after a broken descriptor was seen it is read again before
// anything is reported: an editor that writes in pieces is not done yet.
var rereads = [...]time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// edits are the agents whose descriptor may have been edited.
type edits struct {
	hints chan struct{} // capacity 1

	mu  sync.Mutex
	ids map[string]bool
}

func newEdits() *edits { return &edits{hints: make(chan struct{}, 1), ids: map[string]bool{}} }

func (d *edits) hint(id string) {
	d.mu.Lock()
	d.ids[id] = true
	d.mu.Unlock()
	poke(d.hints)
}

func (d *edits) take() (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.ids {
		ids = append(ids, id)
	}
	clear(d.ids)

	return ids
}

// poke leaves a hint for the receiver of c.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch has changes in the agent's folder noticed while it is in memory.
func (e *entry) watch() {
	if e.actors.watcher == nil {
		return
	}
	e.actors.watcher.Add(e.dir, watch.Options{Ignore: runtimeOnly}, func(h watch.Hint) {
		if e.actors.peers != nil && (h.Overflow || slices.ContainsFunc(h.Names, func(name string) bool {
			return slices.Contains(settingFiles, name)
		})) {
			e.actors.saved.hint(e.meta.ID)
		}
		if h.Overflow || slices.Contains(h.Names, address.File) {
			e.actors.descriptors.edits.hint(e.meta.ID)
		}
		if h.Overflow || !slices.Equal(h.Names, []string{address.File}) {
			poke(e.edited)
		}
	})
}

// settingFiles are the files of an agent that have its settings, which users edit.
var settingFiles = []string{address.File, "state.json"}

func (e *entry) unwatch() {
	if e.actors.watcher != nil {
		e.actors.watcher.Remove(e.dir)
	}
}

// runtimeOnly are the files of an agent's folder that the runtime writes and does
// not read again.
func runtimeOnly(name string) bool {
	switch name {
	case "draft.json", "inbox.jsonl", "sessions.jsonl", "SYSTEM.md":
		return true
	}

	return watch.Hidden(name)
}

// descriptors are what users edit that the engine routes by.
type descriptors struct {
	place
	recent *recent
	edits  *edits
}

// watchEdits reads edited descriptors until ctx ends.
func (ds *descriptors) watchEdits(ctx context.Context) {
	type again struct {
		id  string
		try int
		at  time.Time
	}
	var waiting []again
	look := func(id string, try int) {
		if ds.reread(id, try == len(rereads)) && try < len(rereads) {
			waiting = append(waiting, again{id, try + 1, time.Now().Add(rereads[try])})
		}
	}
	for {
		var due <-chan time.Time
		if len(waiting) > 0 {
			slices.SortFunc(waiting, func(a, b again) int { return a.at.Compare(b.at) })
			due = time.After(time.Until(waiting[0].at))
		}

		select {
		case <-ds.edits.hints:
			for _, id := range ds.edits.take() {
				waiting = slices.DeleteFunc(waiting, func(w again) bool { return w.id == id })
				look(id, 0)
			}
		case <-due:
			first := waiting[0]
			waiting = waiting[1:]
			look(first.id, first.try)
		case <-ctx.Done():
			return
		}
	}
}

// reread takes over what a user wrote into a descriptor, and says so. With last a
// broken one is reported; else broken asks to look again.
func (ds *descriptors) reread(id string, last bool) (broken bool) {
	path := filepath.Join(ds.folder(id), address.File)
	c, err := ds.index.Reread(id, last)
	if err != nil {
		ds.problems.Set(id, path, []finding.Finding{{ID: "descriptor-unreadable", Severity: finding.Error, File: path,
			Reason: err.Error(), Remedy: "Check who owns the file and its mode."}})
		return false
	}
	if c.Broken {
		var its, others []finding.Finding
		for _, f := range c.Found {
			if f.File == path && f.Severity == finding.Error {
				its = append(its, f)
			} else {
				others = append(others, f)
			}
		}
		if len(its) > 0 { // else it is looked at again
			ds.problems.Set(id, path, its) // in the place of those of the last look
		}
		NoteAgents(ds.problems, ds.root, others)
	} else {
		ds.problems.Report(id, c.Found...)
		ds.problems.Set(id, path, nil)
	}
	if !c.Broken && (last || len(c.Members) > 0) {
		ds.index.Keep(id)
	}
	if len(c.Members) > 0 && finding.Join(c.Found) == nil {
		ds.recent.look(id)
		ds.descriptorEdited(id, c.Members)
	}

	return c.Broken
}

// copyKept reports a save that could not be put in place and is kept next to its file.
func (ds *descriptors) copyKept(path, kept string) {
	ds.problems.Report(agentOf(ds.root, path), finding.Finding{ID: "conflict-kept", Severity: finding.Warning, File: path,
		Reason: "two simultaneous saves; one of them is kept as " + filepath.Base(kept),
		Remedy: "Compare the two, then remove the copy."})
}

// descriptorEdited tells which members of a descriptor a user changed.
func (ds *descriptors) descriptorEdited(id string, members []string) {
	text := strings.Join(members, ", ") + " changed; takes effect with the next turn"
	ds.events.Emit(event.Event{Type: event.FileEdited, Agent: id, Body: event.File{File: address.File, Text: text}})
}
