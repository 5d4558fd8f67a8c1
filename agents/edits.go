package agents

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"daycare/agents/prompt"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// What people edit while the agent works is looked at when a turn begins, and when
// the engine saw that something in the folder changed while the agent waits. What
// is good counts; what is broken is told once and leaves the last good version in
// force.

// rereads are how long after a broken file was seen it is read again before it is
// told: an editor that writes in pieces is not done yet.
var rereads = [...]time.Duration{200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond}

// edits is what the agent knows of the files that people edit.
type edits struct {
	stated     os.FileInfo     // of state.json as it was read last
	loaded     bool            // state was read from a good file
	missed     bool            // there was none since the agent woke
	announced  *permission.Set // rights as people were last told of them
	definition prompt.Definition
}

// lookAtFiles takes over what a person changed since the last turn.
func (a *agent) lookAtFiles() error {
	if err := a.lookAround(); err != nil {
		return err
	}
	return a.lookAtPrompt()
}

// lookAround takes over the descriptor and state.json, and announces rights.
func (a *agent) lookAround() error {
	a.Meta = a.Identity.Meta()
	a.lookAtState()
	return a.announceRights()
}

// disturbed is called while the agent waits and something in its folder changed. It
// may have been the agent itself, so it costs no more than a look.
func (a *agent) disturbed() error {
	if err := a.lookAround(); err != nil {
		return err
	}
	return a.refresh("")
}

// refresh takes over a history that a person edited.
func (a *agent) refresh(turn string) error {
	changed, found, err := a.history.Refresh()
	if err != nil {
		return err
	}
	if changed {
		a.checkHistory()
	}
	a.tell(found)
	if changed {
		a.emit(event.FileEdited, turn, event.File{File: "history.jsonl", Text: "edited by hand; the model sees it as it is now"})
	}
	return nil
}

// lookAtState takes over what a person wrote into state.json. A file that cannot be
// read leaves the last good version in force.
func (a *agent) lookAtState() {
	state, info, found, ok := a.readState()
	if !ok {
		return
	}
	before := a.state
	a.stated = info
	a.postponed.soon()
	a.Board.Read(a.ID, a.path("state.json"), found)
	if finding.Join(found) != nil && a.loaded {
		return
	}
	known := a.loaded
	a.knowFolders(state.Permissions)
	a.state, a.loaded = state, finding.Join(found) == nil
	if names := owned(before, state); known && len(names) > 0 {
		text := strings.Join(names, ", ") + " changed; it counts from the next turn"
		a.log.Info("file edited by hand", "file", "state.json", "change", text)
		a.emit(event.FileEdited, "", event.File{File: "state.json", Text: text})
	}
}

// readState reads state.json, if it was written since it was last read. A broken
// one is read again for a while.
func (a *agent) readState() (s record.State, info os.FileInfo, found findings, ok bool) {
	for try := 0; ; try++ {
		var err error
		if info, err = os.Stat(a.path("state.json")); err == nil && a.stated != nil && unchanged(info, a.stated) {
			return s, nil, nil, false
		}
		var raw []byte
		s, raw, found, err = record.ReadState(a.Dir)
		if !a.loaded && finding.Join(found) != nil { // it was broken while the agent slept
			s, found, _ = record.CurrentState(a.Volume, a.Dir)
		}
		switch path := a.path("state.json"); {
		case err != nil:
			a.Board.Read(a.ID, path, findings{{ID: "state-unreadable", Severity: finding.Error, File: path, Reason: err.Error(),
				Remedy: "Check who owns the file and its mode."}})
			return s, nil, nil, false
		case raw == nil: // it is written again; what was wrong with it is gone with it
			a.Board.Hold(a.ID, path, nil)
			a.tellMissing(path)
		}
		if finding.Join(found) == nil || try == len(rereads) {
			return s, info, found, info != nil
		}
		time.Sleep(rereads[try])
	}
}

// tellMissing tells, once, that an agent that has worked before woke without its
// state.json. Without rights it can do no harm, and somebody will wonder.
func (a *agent) tellMissing(path string) {
	woke := !a.loaded && !a.missed
	a.missed = true
	if !woke || a.history.Obligations().LastSeq == 0 {
		return
	}
	a.Board.Tell(a.ID, finding.Finding{ID: "state-missing", Severity: finding.Warning, File: path,
		Reason: "it was not there when the agent woke: the agent begins without rights",
		Remedy: "Put the file back, or write the rights into the new one: daycare agents edit"})
}

func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// owned are the members of state.json that belong to people and differ, rights
// apart: those are announced.
func owned(before, now record.State) (names []string) {
	for _, m := range []struct {
		name string
		a, b any
	}{{"provider", before.Provider, now.Provider}, {"queue", before.Queue, now.Queue}, {"budget", before.Budget, now.Budget}} {
		if !reflect.DeepEqual(m.a, m.b) {
			names = append(names, m.name)
		}
	}
	return names
}

// announceRights says what a person changed by hand in the agent's rights. What people
// were told last is kept in state.json, so that an edit while the agent slept is
// announced too.
func (a *agent) announceRights() error {
	if a.announced == nil {
		if a.announced = a.state.Announced; a.announced == nil {
			a.announced = copyOf(a.state.Permissions)
		}
	}
	diff := permission.Diff(*a.announced, a.state.Permissions)
	if len(diff) == 0 || !a.loaded {
		return nil
	}
	text := strings.Join(diff, ", ")
	a.log.Log(context.Background(), finding.Warning.Level(), "rights changed by hand", "diff", text)
	a.emit(event.FileEdited, "", event.File{File: "state.json", Text: "permissions changed: " + text})
	a.giveFolders(permission.Added(*a.announced, a.state.Permissions)...)
	a.announced = copyOf(a.state.Permissions)
	a.narrowed()
	if a.history.Obligations().LastSeq == 0 {
		return nil // it never did anything
	}
	if _, err := a.append(&record.Permission{Event: "changed-by-hand", Tag: text, By: "state.json"}); err != nil {
		return err
	}
	return a.cacheState()
}

func copyOf(s permission.Set) *permission.Set {
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		panic("agents: a set of plain strings cannot be copied: " + err.Error())
	}
	return &s
}

// lookAtPrompt has the system prompt rendered anew if what it is made of was edited.
// Inside a session it stays as it is otherwise: a changed prompt is a new prefix for
// every cache.
func (a *agent) lookAtPrompt() error {
	if a.session == "" {
		return nil // rendered at the next call anyway
	}
	was, now := a.definition, a.Briefing.Definition(a.Meta, a.state)
	if prompt.System(was) == prompt.System(now) {
		return nil
	}
	edited := append(promptFiles(was.Files, now.Files), skillFiles(was.Skills, now.Skills)...)
	a.session = "" // the next call renders it
	for _, name := range edited {
		a.log.Info("file edited by hand", "file", name)
		a.emit(event.FileEdited, "", event.File{File: name, Text: "changed; it counts from this turn"})
	}
	switch {
	case len(edited) > 0:
	case !slices.Equal(was.Tools, now.Tools):
		edited = []string{"its tools"}
	default:
		edited = []string{"descriptor.json"}
	}
	_, err := a.append(&record.Note{Text: strings.Join(edited, ", ") + " edited by hand: the system prompt is another from here on"})
	return err
}

// skillFiles are those of skills that came, went, or say otherwise when to use them.
func skillFiles(was, now []prompt.Skill) (names []string) {
	for i, list := range [][]prompt.Skill{was, now} {
		for _, s := range list {
			name := s.Name + "/SKILL.md"
			if !slices.Contains([][]prompt.Skill{now, was}[i], s) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func promptFiles(a, b prompt.Files) (names []string) {
	for _, f := range []struct{ name, a, b string }{
		{"SOUL.md", a.Soul, b.Soul}, {"USER.md", a.User, b.User},
		{".daycare/AGENTS.md", a.Rules, b.Rules}, {"AGENTS.md", a.Agents, b.Agents},
	} {
		if f.a != f.b {
			names = append(names, f.name)
		}
	}
	return names
}
