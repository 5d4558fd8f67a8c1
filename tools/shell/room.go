package shell

import (
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"syscall"
	"time"
)

// The space that commands leave free on the disks they write to.

const (
	// fastest is how many bytes a second a command is taken to write at most: so often is
	// the room looked at that it cannot use up a reserve in between.
	fastest = 2 << 30
	// soonest and latest bound the time between two looks.
	soonest = 20 * time.Millisecond
	latest  = time.Second
	// allowance is what a command may use where the reserve is touched already, so that
	// it can clean up.
	allowance = 16 << 20
)

// A room is the free space of the file systems that a command can write to. It is looked
// at only while the command runs.
type room struct {
	reserve int64  // bytes
	disks   []disk // one for each file system
	full    atomic.Pointer[string]
}

// A disk is a file system.
type disk struct {
	path  string // a folder in it
	least int64  // bytes that must stay free
}

// newRoom is the room around folders; reserve 0: it is not looked at.
func newRoom(reserve int64, folders ...string) *room {
	r := &room{reserve: reserve}
	seen := map[uint64]bool{}
	for _, path := range folders {
		var st syscall.Stat_t
		if reserve <= 0 || syscall.Stat(path, &st) != nil || seen[uint64(st.Dev)] {
			continue
		}
		free, err := freeAt(path)
		if err != nil {
			continue
		}

		seen[uint64(st.Dev)] = true
		r.disks = append(r.disks, disk{path, min(reserve, free-allowance)})
	}

	return r
}

// freeAt is how many bytes programs of users can still write where path is.
func freeAt(path string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, err
	}

	return int64(st.Bavail) * int64(st.Bsize), nil
}

// watch calls end when one of the disks is full, at the latest until done is closed.
func (r *room) watch(done <-chan struct{}, end func()) {
	if len(r.disks) == 0 {
		return
	}
	timer := time.NewTimer(soonest)
	defer timer.Stop()

	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}

		left := int64(math.MaxInt64)
		for _, d := range r.disks {
			free, err := freeAt(d.path)
			if err != nil {
				continue // the folder is gone
			}
			if free < d.least {
				r.full.Store(&d.path)
				end()
				return
			}

			left = min(left, free-d.least)
		}

		timer.Reset(min(max(time.Duration(float64(left)/fastest*float64(time.Second)), soonest), latest))
	}
}

// tell says what ended the command, if it was the room.
func (r *room) report(out io.Writer) {
	if path := r.full.Load(); path != nil {
		fmt.Fprintf(out, "\n[ended: the disk of %s has less than %d MB left, which are kept free; remove what is not needed]\n",
			*path, max(r.reserve>>20, 1))
	}
}
