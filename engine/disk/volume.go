// Package disk is how bytes become durable: append logs with joined barriers,
// atomic replacement, exchange-and-verify for files that people write too, the
// repair of a torn tail, the lock of the data directory. It knows bytes and
// lines, never what they mean.
//
// A barrier is one fdatasync (F_FULLFSYNC on macOS). Everybody who waits on the
// same file joins the one under way or the next; a Volume bounds how many run at
// once.
//
// What a failing disk means is decided here. A full disk (ENOSPC, EDQUOT) is
// survivable: the half line is cut off, the caller refuses, service resumes when
// there is room. Any other failed write, and every failed sync, is final: what
// the kernel dropped after a failed fsync cannot be known, so the volume is
// marked failed, every later write and barrier returns ErrFailed, and the process
// is expected to exit and recover from the files. The next one writes the ends of
// the logs again before it trusts a sync of them (suspect.go).
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	// ErrChanged: somebody else changed the file since the last append.
	ErrChanged = errors.New("file was changed by another writer")
)

const (
	// maxBarriers bounds the barriers under way at once in the process. 64 is
	// where more writers stop to help on common disks.
	maxBarriers = 64
	// ballastBytes is space kept back, given up when the disk is full so that
	// what is under way can still be recorded.
	ballastBytes = 4 << 20
)

// A Volume is the disk that one .daycare directory lives on.
type Volume struct {
	dir   string
	slots chan struct{}

	onKept   func(path, kept string)
	exchange func(a, b string) (ok bool, err error) // of the system; not every file system has it

	failOnce sync.Once
	failed   chan struct{}
	failure  error

	fullMu sync.Mutex
	full   atomic.Bool

	barriers     atomic.Int64
	barrierNanos atomic.Int64
}

// NewVolume makes the volume of dir, which must exist.
func NewVolume(dir string) *Volume {
	return &Volume{dir: dir, slots: make(chan struct{}, maxBarriers), failed: make(chan struct{}), exchange: exchange}
}

// Failed is closed when durable storage failed; Err then says why.
func (v *Volume) Failed() <-chan struct{} { return v.failed }

// Err is nil while the volume works, else an error that wraps ErrFailed.
func (v *Volume) Err() error {
	select {
	case <-v.failed:
		return v.failure
	default:
		return nil
	}
}

// Stats returns how many barriers were made and the time spent in them.
func (v *Volume) Stats() (barriers int64, spent time.Duration) {
	return v.barriers.Load(), time.Duration(v.barrierNanos.Load())
}

// Fail makes the volume refuse everything from now on, because of err; the first
// reason stays. It returns Err.
func (v *Volume) Fail(err error) error {
	v.failOnce.Do(func() {
		v.failure = fmt.Errorf("%w: %w", ErrFailed, err)
		v.markFailure()
		close(v.failed)
	})

	return v.failure
}

// classify turns the error of a write into ErrFull or, after marking the volume
// failed, ErrFailed.
func (v *Volume) classify(err error) error {
	if isFull(err) {
		v.full.Store(true)
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return v.Fail(err)
}

// sync is one barrier on the content of f.
func (v *Volume) sync(name string, f *os.File) error {
	v.enter()
	defer v.leave()
	return v.syncEntered(name, f)
}

// enter waits for one of the barriers that may be under way at once.
func (v *Volume) enter() { v.slots <- struct{}{} }
func (v *Volume) leave() { <-v.slots }

// syncEntered is a barrier between enter and leave.
func (v *Volume) syncEntered(name string, f *os.File) error {
	if err := v.trySync(name, f, datasync); err != nil {
		return v.Fail(fmt.Errorf("sync %s: %w", f.Name(), err))
	}
	return nil
}

// trySync is one sync between enter and leave whose error is not judged yet.
func (v *Volume) trySync(name string, f *os.File, how func(*os.File) error) error {
	if err := v.Err(); err != nil {
		return err
	}
	begin := time.Now()
	err := crash.Do(name, func() error {
		if crash.Bug("nosync") {
			return nil
		}
		return crash.Sync(f, how)
	})
	v.barriers.Add(1)
	v.barrierNanos.Add(int64(time.Since(begin)))

	return err
}

// SyncFile makes the content of a file durable that another program, or the caller
// by its own means, wrote.
func (v *Volume) SyncFile(name, path string) error {
	f, err := crash.Open(name, func() (*os.File, error) { return os.Open(path) })
	if err != nil {
		return err
	}
	defer f.Close()

	return v.sync(name, f)
}

// SyncDir makes the entries of a directory durable. That is a full fsync: some
// file systems take a new name for metadata that fdatasync may leave out. Where the
// file system cannot sync folders it does nothing; SyncsFolders tells.
func (v *Volume) SyncDir(name, dir string) error {
	f, err := crash.Open(name, func() (*os.File, error) { return os.Open(dir) })
	if err != nil {
		return err
	}
	defer f.Close()
	v.enter()
	defer v.leave()
	if crash.Bug("nofoldersync") {
		return crash.Do(name, func() error { return nil })
	}
	if err := v.trySync(name, f, (*os.File).Sync); err != nil && !unsupported(err) {
		return v.Fail(fmt.Errorf("sync %s: %w", dir, err))
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

// Reserve makes the ballast file, or makes it again when a full disk has room
// once more. It is called at start; a disk without room for it is no error.
func (v *Volume) Reserve() error {
	v.fullMu.Lock()
	defer v.fullMu.Unlock()
	path := v.ballast()
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
func (v *Volume) Full() bool {
	if !v.full.Load() {
		return false
	}
	free, err := Free(v.dir)
	if err != nil || free < 2*ballastBytes {
		return true
	}
	if err := v.Reserve(); err != nil {
		return true
	}

	v.full.Store(false)

	return false
}

// release gives up the ballast, if somebody else has not done so already, and
// notes that the disk is full.
func (v *Volume) release() {
	v.fullMu.Lock()
	defer v.fullMu.Unlock()
	v.full.Store(true)
	os.Remove(v.ballast())
}

func (v *Volume) ballast() string { return filepath.Join(v.dir, ".ballast") }

// Exists is true if path can be seen, whatever it is.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
