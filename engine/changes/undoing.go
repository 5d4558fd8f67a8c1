package changes

import (
	"path/filepath"
	"slices"

	"daycare/engine/disk"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// An Undoing is what of an agent's work can be taken back: the files that its tools wrote in turns that are rewound.
type Undoing struct {
	Store    Store
	at       workspace.Place
	agentDir string
}

// UndoingOf returns that of an agent.
func UndoingOf(vol *disk.Volume, at workspace.Place, id string) Undoing {
	dir := filepath.Join(at.Data, "agents", id)
	return Undoing{Undo(vol, dir), at, dir}
}

// NoFile says that no rewound turn wrote a file.
type NoFile struct{ Path string }

func (e *NoFile) Error() string { return "no rewound turn wrote " + e.Path }

// Shown is how a file of the agent is named to users.
func (u Undoing) Shown(file string) string { return u.at.Shown(file) }

// Complete finishes taking back that a kill cut, and reports whether there was any.
func (u Undoing) Complete() (cut bool, err error) {
	if !Pending(u.Store.Dir) {
		return false, nil
	}
	_, err = u.Store.TakeBack(nil, false)
	return true, err
}

// Takes lists the files that rewound turns wrote. With after, what follows that record of the history counts as rewound,
// too: how they will stand after a rewind to there; 0: nothing more does.
func (u Undoing) Takes(after int64) ([]Take, error) {
	written, err := u.Store.Written()
	if err != nil || len(written) == 0 {
		return nil, err
	}
	var calls []string
	for _, w := range written {
		calls = append(calls, w.Call)
	}
	rewound, err := record.Rewound(u.agentDir, calls, after)
	if err != nil {
		return nil, err
	}

	return u.Store.Back(written, func(w Written) bool { return rewound[w.Call] })
}

// TakeBack takes files back, by their paths as they are shown, absolute or from the workspace; without any, those that
// nobody else changed. Errors: ErrBusy, *NoFile.
func (u Undoing) TakeBack(paths []string, merge bool) ([]Result, error) {
	if _, err := u.Complete(); err != nil {
		return nil, err
	}
	takes, err := u.Takes(0)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		takes = slices.DeleteFunc(takes, func(t Take) bool { return t.Standing != Ready })
		if len(takes) == 0 {
			return nil, nil
		}
		return u.Store.TakeBack(takes, merge)
	}

	var chosen []Take
	for _, path := range paths {
		abs := path
		if !filepath.IsAbs(abs) {
			abs = filepath.Join(u.at.Dir, abs)
		}
		i := slices.IndexFunc(takes, func(t Take) bool { return u.Shown(t.File()) == u.Shown(abs) })
		if i < 0 {
			return nil, &NoFile{path}
		}
		chosen = append(chosen, takes[i])
	}

	return u.Store.TakeBack(chosen, merge)
}
