package disk

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// ballastBytes is space kept back, given up when the disk is full so that
// what is in progress can still be recorded.
const ballastBytes = 4 << 20

// A reserve is the space that is kept back for a full disk, and whether it is full.
type reserve struct {
	dir  string // of the volume
	mu   sync.Mutex
	full atomic.Bool
}

// Reserve makes the ballast file, or makes it again when a full disk has room
// once more. It is called at start; a disk without room for it is not an error.
func (r *reserve) Reserve() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := r.ballast()
	if info, err := os.Stat(path); err == nil && info.Size() == ballastBytes {
		return nil
	}

	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	err = allocate(f, ballastBytes)
	if err != nil {
		os.Remove(path)
	}
	if isFull(err) {
		return nil
	}

	return err
}

// Full reports whether the disk has no room for new work. While it is full it
// looks again at each call, so service resumes with the first one after room was
// made, without a poll.
func (r *reserve) Full() bool {
	if !r.full.Load() {
		return false
	}
	free, _, err := Space(r.dir)
	if err != nil || free < 2*ballastBytes {
		return true
	}
	if err := r.Reserve(); err != nil {
		return true
	}

	r.full.Store(false)

	return false
}

// release gives up the ballast, if someone else has not done so already, and
// notes that the disk is full.
func (r *reserve) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full.Store(true)
	os.Remove(r.ballast())
}

func (r *reserve) ballast() string { return filepath.Join(r.dir, ".ballast") }
