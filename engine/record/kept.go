package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// keptState is a copy of the last good state.json, beside it: of what is decided there,
// without what can be counted anew. A typing error must neither lift a budget nor
// revive an agent that has ended, whether the agent sleeps or daycare starts. It is a
// cache, written without a barrier: a user may remove it.
const keptState = ".state.json"

// CurrentState returns state.json as it applies: its content or, if it cannot be read or has
// errors, the permissions, model, queue, budget and end of its last valid version. If the file is
// missing, only budget and end are kept: without the file an agent has no permissions. An error
// means that no earlier version is known either; the state is then what could be read. With a nil
// volume nothing is written.
func CurrentState(vol *disk.Volume, dir string) (State, []finding.Finding, error) {
	info, serr := os.Stat(filepath.Join(dir, stateName)) // before it is read: it may be written in between
	s, raw, found, err := ReadState(dir)
	if err == nil && raw != nil && finding.Join(found) == nil {
		if vol != nil && serr == nil {
			keepState(vol, dir, s, info.ModTime())
		}
		return s, found, nil
	}

	good, ok := lastState(dir)
	switch {
	case !ok:
		return s, found, errors.Join(err, finding.Join(found))
	case err == nil && raw == nil:
		s.Ended, s.Budget = good.Ended, good.Budget
		return s, found, nil
	case err != nil:
		found = append(found, finding.Finding{ID: "state-unreadable", Severity: finding.Error, File: filepath.Join(dir, stateName),
			Reason: err.Error(), Remedy: "Check who owns the file and its mode."})
	}

	s.decide(good)
	return s, found, nil
}

// decide takes over what is decided in another state.
func (s *State) decide(as State) {
	s.Permissions, s.Provider, s.Queue, s.Budget = as.Permissions, as.Provider, as.Queue, as.Budget
	s.CreatedAt, s.Ended, s.Announced = as.CreatedAt, as.Ended, as.Announced
}

// lastState is the last good version, as far as it was kept.
func lastState(dir string) (State, bool) {
	path := filepath.Join(dir, keptState)
	raw, _ := beneath.Whole(path) // nothing is not a state, either
	s, found := ParseState(path, raw)

	return s.resolved(workspace.Of(dir)), finding.Join(found) == nil
}

// keepState copies a good version that was written at some time. The copy has the time
// of its original: a look tells whether there is anything to do. An error is no harm:
// the next reading tries again.
func keepState(vol *disk.Volume, dir string, s State, written time.Time) {
	path := filepath.Join(dir, keptState)
	if before, err := os.Stat(path); err == nil && before.ModTime().Equal(written) {
		return
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return
	}
	defer unlock()
	keepLocked(vol, path, s, written)
}

// keepLocked is keepState for who has locked the folder.
func keepLocked(vol *disk.Volume, path string, s State, written time.Time) {
	var kept State
	kept.decide(s)
	content, err := EncodeState(workspace.Of(filepath.Dir(path)), kept)
	if err == nil {
		_ = vol.WriteDraftOf("state.kept", path, content, written)
	}
}

// keepUpdate copies what the runtime has just put in place, so that no copy has rights
// which were taken back. The folder is locked.
func keepUpdate(vol *disk.Volume, dir string, content []byte) {
	path := filepath.Join(dir, stateName)
	info, err := os.Stat(path)
	if now, _ := beneath.Whole(path); err != nil || !bytes.Equal(now, content) {
		return // a user was faster; the next reading copies that
	}
	if s, found := ParseState(path, content); finding.Join(found) == nil {
		keepLocked(vol, filepath.Join(dir, keptState), s, info.ModTime())
	}
}

// EndState marks the agent of the folder dir as ended, durably. If state.json has errors, its last
// valid version is marked and put in its place, and the broken file is kept next to it; kept is its
// path.
func EndState(vol *disk.Volume, dir string, ended Ended) (kept string, err error) {
	err = UpdateState(vol, dir, func(s *State) { s.Ended = &ended })
	var f finding.Finding
	if !errors.As(err, &f) {
		return "", err
	}

	unlock, err := lockFolder(dir)
	if err != nil {
		return "", fmt.Errorf("end agent: %w", err)
	}
	defer unlock()
	path := filepath.Join(dir, stateName)
	broken, _, _, err := ReadState(dir)
	if err != nil {
		return "", err
	}
	if good, ok := lastState(dir); ok {
		broken.decide(good)
	}

	broken.Ended = &ended
	content, err := EncodeState(workspace.Of(dir), broken)
	if err != nil {
		return "", err
	}

	kept = path + ".conflict-" + time.Now().UTC().Format("20060102T150405.000Z")
	if err := vol.Link("state", path, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("save a copy of the broken state.json: %w", err)
	}

	return kept, vol.WriteFile("state", path, content)
}
