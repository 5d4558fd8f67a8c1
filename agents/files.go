package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// What users edit while the agent works is read when a turn begins, and when the engine
// saw a change in the folder while the agent waits. A good file applies from then on. A
// broken one is reported once, and the last good version stays in use.

// rereads are how long after a broken file was seen it is read again before it is
// told: an editor that writes in pieces is not done yet.
var rereads = [...]time.Duration{200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond}

// files are what users edit of an agent while it works: its descriptor, and state.json
// with its rights.
type files struct {
	self      // as the files say
	identity  Identity
	journal   *journal
	rights    *rights
	folders   *permission.Folders // nil: the folders of permissions are not pinned
	stated    record.StateLook    // of state.json at the last read; zero: it is to be read again
	loaded    bool                // state was read from a good file
	missed    bool                // there was none since the agent woke
	announced *permission.Set     // rights as last announced
}

// lookAround takes over the descriptor, state.json, and the tools that follow from them, and
// announces rights. It reports whether state.json was read.
func (f *files) lookAround() (read bool, err error) {
	f.meta = f.identity.Meta()
	read = f.lookAtState()
	f.tools = f.identity.Tools(f.state.Permissions.Profile)

	return read, f.announceRights()
}

// lookAtState takes over what a user wrote into state.json, if it was written since it was last read.
func (f *files) lookAtState() (read bool) {
	if stated, err := record.LookAtState(f.journal.dir); err == nil && stated == f.stated {
		return false
	}
	return f.takeState()
}

// takeState reads state.json. Where it cannot be read, the last good version stays in use.
func (f *files) takeState() (read bool) {
	state, stated, found, ok := f.readState()
	if !ok {
		return false
	}
	before := f.state
	f.stated = stated
	f.journal.problems.Set(f.journal.id, f.journal.path("state.json"), found)
	if finding.Join(found) != nil && f.loaded {
		return true
	}

	known := f.loaded
	f.knowFolders(state.Permissions)
	f.state, f.loaded = state, finding.Join(found) == nil
	if names := owned(before, state); known && len(names) > 0 {
		text := strings.Join(names, ", ") + " changed; takes effect with the next turn"
		f.journal.emit(event.FileEdited, "", event.File{File: "state.json", Text: text})
	}

	return true
}

// readState reads state.json. A broken one is read again for a while; where it then is what was read last,
// there is nothing to take over. stated is zero for one that another write may leave looking the same.
func (f *files) readState() (s record.State, stated record.StateLook, found findings, ok bool) {
	for try := 0; ; try++ {
		looked := time.Now()
		stated, serr := record.LookAtState(f.journal.dir)
		if serr == nil && stated == f.stated {
			return s, stated, nil, false
		}
		if !stated.Lasts(looked) {
			stated = record.StateLook{}
		}
		var err error
		var raw []byte
		s, raw, found, err = record.ReadState(f.journal.dir)
		if finding.Join(found) != nil { // perhaps since the agent slept
			s, found, _ = record.CurrentState(f.journal.volume, f.journal.dir)
		}

		switch path := f.journal.path("state.json"); {
		case err != nil:
			f.journal.problems.Set(f.journal.id, path, findings{{ID: "state-unreadable", Severity: finding.Error, File: path,
				Reason: err.Error(), Remedy: "Check who owns the file and its mode."}})
			return s, stated, nil, false
		case raw == nil: // it is written again; what was wrong with it is gone with it
			f.journal.problems.SetQuietly(f.journal.id, path, nil)
			f.reportMissing(path)
		}

		if finding.Join(found) == nil || try == len(rereads) {
			return s, stated, found, serr == nil
		}
		time.Sleep(rereads[try])
	}
}

// reportMissing tells, once, that an agent that has worked before woke without its
// state.json. Without rights it can do no harm, and somebody will wonder.
func (f *files) reportMissing(path string) {
	woke := !f.loaded && !f.missed
	f.missed = true
	if !woke || f.journal.history.LastSeq() == 0 {
		return
	}
	f.journal.problems.Report(f.journal.id, finding.Finding{ID: "state-missing", Severity: finding.Warning, File: path,
		Reason: "it was missing when the agent woke: the agent has no permissions now",
		Remedy: "Restore the file, or add the permissions to the new one: daycare agents edit"})
}

// announceRights says what a user changed by hand in the agent's rights. What users
// were told last is kept in state.json, so that an edit while the agent slept is
// announced too.
func (f *files) announceRights() error {
	if f.announced == nil {
		if f.announced = f.state.Announced; f.announced == nil {
			f.announced = copyOf(f.state.Permissions)
		}
	}

	diff := permission.Diff(*f.announced, f.state.Permissions)
	if len(diff) == 0 || !f.loaded {
		return nil
	}

	text := strings.Join(diff, ", ")
	f.journal.log.Log(context.Background(), finding.Warning.Level(), "permissions changed by hand", "diff", text)
	f.journal.emit(event.FileEdited, "", event.File{File: "state.json", Text: "permissions changed: " + text})
	f.giveFolders(permission.Added(*f.announced, f.state.Permissions)...)
	f.announced = copyOf(f.state.Permissions)
	f.rights.narrowed(&f.self)
	if f.journal.history.LastSeq() == 0 {
		return nil // it never did anything
	}
	if _, err := f.journal.append(&record.Permission{Event: "changed-by-hand", Tag: text, By: "state.json"}); err != nil {
		return err
	}

	return f.cacheState()
}

// knowFolders pins the folders of rights that were never pinned.
func (f *files) knowFolders(set permission.Set) {
	if f.folders == nil {
		return
	}
	if err := f.folders.Know(set); err != nil {
		f.journal.log.Error("the agent's folders are not pinned on disk", "err", err)
	}
}

// giveFolders pins folders as they are now: their owner gave them, perhaps again.
func (f *files) giveFolders(given ...permission.Access) {
	for _, access := range given {
		if f.folders == nil {
			return
		}
		if err := f.folders.Give(access); err != nil {
			f.journal.log.Error("folder is not pinned on disk", "right", access.Tag(), "err", err)
		}
	}
}

// saveState brings the caches of state.json up to date, with one change more. Without
// an error the change is durable.
func (f *files) saveState(change func(*record.State)) error {
	session, err := f.journal.history.Session()
	if err != nil {
		return fmt.Errorf("count session: %w", err)
	}
	session.Parent = cmp.Or(session.Parent, f.meta.Descriptor.ParentAgentID)
	var failed error
	announced := f.announced
	if change != nil && announced != nil { // what the runtime gives is announced by its own record
		s := record.State{Permissions: *copyOf(*announced)}
		change(&s)
		announced = &s.Permissions
	}

	err = record.UpdateState(f.journal.volume, f.journal.dir, func(s *record.State) {
		if f.loaded && !disk.Exists(f.journal.path("state.json")) { // the last good version stays in use
			f.journal.log.Warn("state.json was missing and is rewritten", "dir", f.journal.dir)
			was := f.state
			s.Permissions, s.Provider, s.Queue, s.Budget = *copyOf(was.Permissions), was.Provider, was.Queue, was.Budget
			s.CreatedAt = was.CreatedAt
		}

		used, last, err := f.journal.history.Totals(s.Seq)
		if err != nil {
			failed = err
			return
		}
		if s.Stats == nil {
			s.Stats = record.Stats{}
		}

		s.Stats.Add(used)
		if last != nil {
			s.Tokens = last
		}
		s.Session, s.Seq, s.UpdatedAt = session, f.journal.history.LastSeq(), disk.StampOf(crash.Now())
		if change != nil {
			change(s)
		}

		s.Announced, f.announced = announced, announced
		f.state = *s
	})

	return errors.Join(err, failed)
}

// cacheState is saveState of the caches alone: where they cannot be written that is
// logged, and work continues.
func (f *files) cacheState() error {
	err := f.saveState(nil)
	if err == nil || errors.Is(err, disk.ErrFailed) {
		return err
	}
	f.journal.log.Warn("state not written", "err", err)

	return nil
}

// owned are the members of state.json that belong to users and differ, rights
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

func copyOf(s permission.Set) *permission.Set {
	for _, list := range []*[]string{&s.ReadDirs, &s.WriteDirs, &s.Hosts, &s.Lan, &s.Exec, &s.MCP, &s.A2A} {
		*list = slices.Clone(*list)
	}

	s.Grants = slices.Clone(s.Grants)
	for i := range s.Grants {
		s.Grants[i].Scripts = slices.Clone(s.Grants[i].Scripts)
	}

	return &s
}
