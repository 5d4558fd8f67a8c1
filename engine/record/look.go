package record

import (
	"path/filepath"
	"time"

	"daycare/engine/beneath"
)

// A Look is how the files look that say what an agent did, state.json and history.jsonl. While two
// looks are equal, what can be read from them is.
type Look struct{ state, history beneath.Stamp }

// LookAt looks at the files in dir. ok is false where equal looks would prove nothing: a part of the history
// is in other files, or one of the two is no file.
func LookAt(dir string) (l Look, ok bool) {
	var whole [3]bool
	var closed beneath.Stamp
	l.state, whole[0] = beneath.Look(filepath.Join(dir, stateName))
	l.history, whole[1] = beneath.Look(filepath.Join(dir, historyName))
	closed, whole[2] = beneath.Look(filepath.Join(dir, closedDir)) // a folder is no file

	return l, whole == [3]bool{true, true, true} && closed == beneath.Stamp{}
}

// Lasts reports whether files that look so at a time must look different after another write.
func (l Look) Lasts(looked time.Time) bool { return l.state.Lasts(looked) && l.history.Lasts(looked) }

// A StateLook is how state.json looks. While two looks are equal, what it says is. The zero one is of no file.
type StateLook struct{ stamp beneath.Stamp }

// LookAtState looks at state.json in dir.
func LookAtState(dir string) (l StateLook, err error) {
	l.stamp, err = beneath.StampAt(filepath.Join(dir, stateName))
	return l, err
}

// Lasts reports whether a file that looks so at a time must look different after another write.
func (l StateLook) Lasts(looked time.Time) bool { return l.stamp.Lasts(looked) }
