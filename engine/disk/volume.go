package disk

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"daycare/engine/crash"
	"daycare/engine/fault"
)

var (
	// ErrFailed: durable storage failed; nothing may be acknowledged any more.
	ErrFailed = fault.DiskFailed
	// ErrFull: no space left; nothing was written, and later writes may succeed.
	ErrFull = fault.DiskFull
	// ErrChanged: another program changed the file since the last append.
	ErrChanged = errors.New("file was changed by another writer")
)

// maxBarriers bounds the barriers in progress at once in the process. 64 is
// where more writers stop to help on common disks.
const maxBarriers = 64

// A Volume is the disk that one .daycare directory lives on: OpenLog and the files of
// the runtime's own, beside what it embeds.
type Volume struct {
	*flusher
	exchanges
	turns
	names
	settled names // what was in them at the start is durable
}

// turns keep the writers of one file in this process apart, where one of them appends and another one replaces it.
type turns [64]sync.Mutex

// Turn waits until no other writer has its turn at the file at path, or at one of the few that share the turn, and
// takes it until release is called. Who has one asks for no other.
func (t *turns) Turn(path string) (release func()) {
	h := fnv.New32a()
	h.Write([]byte(path))
	m := &t[h.Sum32()%uint32(len(t))]
	m.Lock()

	return m.Unlock
}

// A flusher makes the barriers, at most maxBarriers at once, and decides what a failed
// one means: from then on everything is refused.
type flusher struct {
	reserve
	replication
	slots chan struct{}

	failOnce sync.Once
	failed   chan struct{}
	failure  error

	barriers     atomic.Int64
	barrierNanos atomic.Int64
	noFolderSync atomic.Bool // the file system said that it cannot sync folders
}

// NewVolume makes the volume of dir, which must exist.
func NewVolume(dir string) *Volume {
	d := &flusher{reserve: reserve{dir: dir}, slots: make(chan struct{}, maxBarriers), failed: make(chan struct{})}
	return &Volume{flusher: d, exchanges: exchanges{disk: d, exchange: exchange}}
}

// Failed is closed when durable storage failed; Err then says why.
func (d *flusher) Failed() <-chan struct{} { return d.failed }

// Err is nil while the volume works, else an error that wraps ErrFailed.
func (d *flusher) Err() error {
	select {
	case <-d.failed:
		return d.failure
	default:
		return nil
	}
}

// Stats returns how many barriers were made and the time spent in them.
func (d *flusher) Stats() (barriers int64, spent time.Duration) {
	return d.barriers.Load(), time.Duration(d.barrierNanos.Load())
}

// Fail makes the volume refuse everything from now on, because of err; the first
// reason stays. It returns Err.
func (d *flusher) Fail(err error) error {
	d.failOnce.Do(func() {
		d.failure = fmt.Errorf("%w: %w", ErrFailed, err)
		d.markFailure()
		close(d.failed)
	})

	return d.failure
}

// classify turns the error of a write into ErrFull or, after marking the volume
// failed, ErrFailed.
func (d *flusher) classify(err error) error {
	if isFull(err) {
		d.full.Store(true)
		return fmt.Errorf("%w: %w", ErrFull, err)
	}

	return d.Fail(err)
}

// sync is one barrier on the content of f.
func (d *flusher) sync(name string, f *os.File) error {
	d.enter()
	defer d.leave()
	return d.syncEntered(name, f)
}

// enter waits for one of the barriers that may be in progress at once.
func (d *flusher) enter() {
	d.slots <- struct{}{}
	lent.Load().wait(len(d.slots))
}

func (d *flusher) leave() { <-d.slots }

// syncEntered is a barrier between enter and leave.
func (d *flusher) syncEntered(name string, f *os.File) error {
	if err := d.trySync(name, f, datasync); err != nil {
		return d.Fail(fmt.Errorf("sync %s: %w", f.Name(), err))
	}
	return nil
}

// trySync is one sync between enter and leave whose error is not judged yet.
func (d *flusher) trySync(name string, f *os.File, how func(*os.File) error) error {
	if err := d.Err(); err != nil {
		return err
	}
	begin := time.Now()
	err := crash.Do(name, func() error {
		if crash.Bug("nosync") {
			return nil
		}
		return crash.Sync(f, how)
	})
	d.barriers.Add(1)
	d.barrierNanos.Add(int64(time.Since(begin)))

	return err
}

// SyncFile makes the content of a file durable that another program, or the caller
// by its own means, wrote.
func (d *flusher) SyncFile(name, path string) error {
	f, err := crash.Open(name, func() (*os.File, error) { return os.Open(path) })
	if err != nil {
		return err
	}
	defer f.Close()

	return d.sync(name, f)
}

// SyncDir makes the entries of a directory durable. That is a full fsync: some
// file systems take a new name for metadata that fdatasync may leave out. Where the
// file system cannot sync folders it does nothing; CannotSyncFolders tells.
func (d *flusher) SyncDir(name, dir string) error {
	f, err := openFolder(name, dir)
	if err != nil {
		return err
	}
	defer f.Close()

	return d.syncFolder(name, f)
}

// openFolder opens a folder for a syncFolder. Who changes a name in it opens it before: a process that has
// no descriptor left fails then while nothing has changed.
func openFolder(name, dir string) (*os.File, error) {
	return crash.Open(name, func() (*os.File, error) { return os.Open(dir) })
}

// syncFolder is SyncDir of a folder that is open.
func (d *flusher) syncFolder(name string, f *os.File) error {
	d.enter()
	defer d.leave()
	if crash.Bug("nofoldersync") {
		return crash.Do(name, func() error { return nil })
	}
	err := d.trySync(name, f, (*os.File).Sync)
	switch {
	case err == nil:
		return nil
	case unsupported(err):
		d.noFolderSync.Store(true)
		return nil
	}

	return d.Fail(fmt.Errorf("sync %s: %w", f.Name(), err))
}

// CannotSyncFolders is true once the file system has refused to sync a folder.
func (d *flusher) CannotSyncFolders() bool { return d.noFolderSync.Load() }

// SyncAll makes all durable that was written to the file system of a folder: for a tree of many
// files, none of which anything depends on yet. The failpoint is step.sync.
func SyncAll(step, dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := crash.Do(step+".sync", func() error { return syncAll(f) }); err != nil && !unsupported(err) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}

	return nil
}

// SyncsFolders reports whether the file system of dir can make names durable. Where it
// cannot, a file that was made just before a power cut may be gone after it.
func SyncsFolders(dir string) (bool, error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = crash.Do("probe.dirsync", f.Sync)
	if unsupported(err) {
		return false, nil
	}

	return err == nil, err
}

// Exists is true if path can be seen, whatever it is.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
