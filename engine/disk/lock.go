package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// A Holder is who holds a lock, as written into the lock file.
type Holder struct {
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"startedAt"`
	Socket    string    `json:"socket"`
}

// ErrLocked: another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// A Lock is an flock held for the life of the process: the kernel lets go of it
// at any death, so it cannot be stale.
type Lock struct{ fl *flock.Flock }

// TryLock takes the lock at path at once or returns ErrLocked with the holder.
func TryLock(path string, me Holder) (*Lock, Holder, error) {
	fl := flock.New(path, flock.SetPermissions(0o600))
	ok, err := fl.TryLock()
	if err != nil {
		return nil, Holder{}, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		other, _ := ReadHolder(path)
		return nil, other, ErrLocked
	}
	data, err := json.Marshal(me)
	if err == nil {
		// Written in place: a rename would leave the lock on a file without name.
		err = os.WriteFile(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return nil, Holder{}, errors.Join(err, fl.Unlock())
	}
	return &Lock{fl}, me, nil
}

// ReadHolder reads who wrote the lock file last, alive or not.
func ReadHolder(path string) (Holder, error) {
	var h Holder
	data, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal(data, &h)
}

// Held reports whether a living process holds the lock at path.
func Held(path string) bool {
	if !Exists(path) {
		return false
	}
	fl := flock.New(path)
	ok, err := fl.TryRLock()
	if err == nil && ok {
		fl.Unlock()
	}
	return err == nil && !ok
}

// Release gives the lock back.
func (l *Lock) Release() error { return l.fl.Unlock() }
