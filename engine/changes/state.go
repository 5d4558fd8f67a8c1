package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"daycare/engine/beneath"
)

// A State is what is at a path.
type State struct {
	SHA256 string      `json:"sha256,omitempty"` // of the content of a regular file; "": nothing is there
	Mode   fs.FileMode `json:"mode,omitempty"`   // permission bits
	Other  string      `json:"other,omitempty"`  // why it cannot be compared: it is a link, a folder, too large
}

// Missing reports that nothing is there.
func (s State) Missing() bool { return s == State{} }

// maxFile bounds a file that is carried, in bytes.
const maxFile = 64 << 20

// StateOf returns the state of content.
func StateOf(content []byte, mode fs.FileMode) State {
	sum := sha256.Sum256(content)
	return State{SHA256: hex.EncodeToString(sum[:]), Mode: mode.Perm()}
}

// Look returns what is at a path beneath an open folder, and its content.
func Look(dir *os.Root, rel string) (State, []byte, error) {
	data, info, err := beneath.Read(dir, filepath.FromSlash(rel), maxFile)
	switch {
	case err == nil:
		return StateOf(data, info.Mode()), data, nil
	case errors.Is(err, fs.ErrNotExist):
		return State{}, nil, nil
	}
	for _, known := range []error{beneath.ErrLink, beneath.ErrKind, beneath.ErrNames, beneath.ErrTooLarge} {
		if errors.Is(err, known) {
			return State{Other: known.Error()}, nil, nil
		}
	}

	return State{}, nil, err
}

// sum hashes a stream.
func sum(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}

	return hex.EncodeToString(h.Sum(nil)), nil
}
