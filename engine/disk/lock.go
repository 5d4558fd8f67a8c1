package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A Holder is who holds a lock, as written into the lock file.
type Holder struct {
	PID       int    `json:"pid"`
	StartedAt Stamp  `json:"startedAt"`
	Socket    string `json:"socket"`
	Listen    string `json:"listen,omitempty"` // additional address that it listens on, so that a restart does the same
}

// ErrLocked: another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// A Lock is an flock held for the life of the process: the kernel lets go of it
// at any death, so it cannot be stale.
type Lock struct{ fl *flock.Flock }

const (
	// lockPatience is how long TryLock asks again: Held, asked by another
	// process, holds the lock shared for a moment.
	lockPatience = 50 * time.Millisecond
	lockPause    = 2 * time.Millisecond
	// orphanPatience is the same while the holder is dead: a process that it was
	// making when it was killed shares the lock until it has become its command, which
	// takes seconds where the machine has too much to do.
	orphanPatience = 20 * time.Second
)

// TryLock takes the lock at path within lockPatience or returns ErrLocked with
// the holder.
func TryLock(path string, me Holder) (*Lock, Holder, error) {
	fl := flock.New(path, flock.SetPermissions(0o600))
	ok, err := fl.TryLock()
	for began := time.Now(); err == nil && !ok; {
		if waited := time.Since(began); waited > orphanPatience || waited > lockPatience && holderLives(path) {
			break
		}
		time.Sleep(lockPause)
		ok, err = fl.TryLock()
	}

	if err != nil {
		return nil, Holder{}, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		other, _ := ReadHolder(path)
		return nil, other, ErrLocked
	}
	if err := writeHolder(path, me); err != nil {
		return nil, Holder{}, errors.Join(fmt.Errorf("write %s: %w", path, err), fl.Unlock())
	}

	return &Lock{fl}, me, nil
}

// writeHolder writes in place, because a rename would leave the lock on a file
// without name; and first writes, then cuts, so that whoever reads meanwhile
// finds a whole object in front.
func writeHolder(path string, me Holder) error {
	data, err := json.Marshal(me)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}

	data = append(data, '\n')
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}

	return errors.Join(err, f.Close())
}

// ReadHolder reads who wrote the lock file last, alive or not.
func ReadHolder(path string) (Holder, error) {
	var h Holder
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	if err := json.NewDecoder(f).Decode(&h); err != nil {
		return Holder{}, fmt.Errorf("read holder of %s: %w", path, err)
	}

	return h, nil
}

// Alive reports whether the holder still runs: not if it has ended and waits for its parent to collect it, which in
// many containers never happens.
func (h Holder) Alive() bool {
	return h.PID > 0 && syscall.Kill(h.PID, 0) != syscall.ESRCH && !uncollected(h.PID)
}

// holderLives is also true while the lock file names no process: the one that holds
// it is about to write itself there.
func holderLives(path string) bool {
	h, err := ReadHolder(path)
	return err != nil || h.Alive()
}

// Held reports whether a living process holds the lock at path.
func Held(path string) bool {
	if !Exists(path) {
		return false
	}
	fl := flock.New(path)
	ok, err := fl.TryRLock()
	fl.Close() // which unlocks it

	return err == nil && !ok
}

// Lost reports whether the lock file is not the one any more that is held: it was
// removed, or its folder was. Then another process can hold one of the same name.
func (l *Lock) Lost() bool {
	ours, _ := l.fl.Stat() // nil after Release
	there, err := os.Stat(l.fl.Path())

	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(ours, there)
}

// Release gives the lock back.
func (l *Lock) Release() error { return l.fl.Unlock() }

// Alone waits until no other caller, of any process, changes files of the folder dir in this way, and keeps them out until
// release. It locks the folder itself: a small file in it that is read, changed and replaced loses no change. Callers
// must not nest.
func Alone(dir string) (release func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock folder: %w", err)
	}

	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
	}
}
