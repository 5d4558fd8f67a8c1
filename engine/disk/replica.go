package disk

import (
	"errors"
	"fmt"
	"io"
	"os"

	"daycare/engine/fault"
)

// A Replica keeps some files of a volume a second time, on other machines. What a barrier
// makes durable here it makes durable there, and the barrier returns when both have it.
//
// Each unit of it (such as the folder of one agent) has one writer at a time. A writer
// that was replaced gets ErrFenced from then on, and nothing that it wrote after that
// counts. While the replica cannot be reached its methods wait; they return any other
// error only when the replica was closed. They may be called from any goroutine, for one
// file by one at a time.
type Replica interface {
	// Covers reports whether a file is replicated, and how many bytes of it the replica
	// has. It is called often, and answers from memory.
	Covers(path string) (size int64, ok bool)
	// Append adds p to a file of which the replica has at bytes.
	Append(path string, at int64, p []byte) error
	// Put replaces whole files, or adds them: all of them or none.
	Put(files ...Content) error
	// Remove removes a file. One that the replica does not have is not an error.
	Remove(path string) error
	// Away reports whether the replica cannot be reached, so that new work is refused
	// instead of waiting.
	Away() bool
}

// A Content is a file and all that is in it.
type Content struct {
	Path string
	Data []byte
}

var (
	// ErrFenced: another writer has taken over the unit of the replica that the file
	// belongs to. Unlike ErrFailed it says nothing about the disk.
	ErrFenced = errors.New("another machine has taken over")
	// ErrAway: the replica cannot be reached; nothing was accepted, and the caller can try
	// again.
	ErrAway = fault.ReplicaAway
)

// Replicate has the volume keep a replica. With local unset the barriers of logs that the
// replica covers are no longer made on this disk. It is called before the volume is used.
func (v *Volume) Replicate(r Replica, local bool) {
	v.replication = replication{replica: r, elsewhere: !local}
}

// A replication is what a volume keeps elsewhere.
type replication struct {
	replica   Replica // nil: nothing
	elsewhere bool    // logs that are replicated are not synced here
}

// Away reports whether the volume has a replica that cannot be reached.
func (r *replication) Away() bool { return r.replica != nil && r.replica.Away() }

// put replicates whole files, those that are covered.
func (r *replication) put(files ...Content) error {
	if r.replica == nil {
		return nil
	}
	covered := files[:0:0]
	for _, f := range files {
		if _, ok := r.replica.Covers(f.Path); ok {
			covered = append(covered, f)
		}
	}
	if len(covered) == 0 {
		return nil
	}
	if err := r.replica.Put(covered...); err != nil {
		return fmt.Errorf("replicate %s: %w", covered[0].Path, err)
	}

	return nil
}

// remove removes a file from the replica, if it is covered.
func (r *replication) remove(path string) error {
	if r.replica == nil {
		return nil
	}
	if _, ok := r.replica.Covers(path); !ok {
		return nil
	}
	if err := r.replica.Remove(path); err != nil {
		return fmt.Errorf("replicate the removal of %s: %w", path, err)
	}

	return nil
}

// mirrored is how much of a log the replica has.
type mirrored struct {
	on    bool  // the replica covers the log
	size  int64 // bytes it has
	whole bool  // it gets the whole file, because another program changed it
}

// mirror looks at what the replica has of a log that is being opened, which has size bytes.
func (r *replication) mirror(path string, size int64) mirrored {
	if r.replica == nil {
		return mirrored{}
	}
	there, ok := r.replica.Covers(path)
	return mirrored{on: ok, size: there, whole: there > size}
}

// A shipment is the part of a log that the replica is to get next.
type shipment struct {
	from, to int64
	whole    bool
}

// shipment returns what the replica lacks of a log of size bytes; ok is false where it lacks
// nothing.
func (m mirrored) shipment(size int64) (s shipment, ok bool) {
	if !m.on || !m.whole && m.size == size {
		return shipment{}, false
	}
	if m.whole {
		return shipment{to: size, whole: true}, true
	}

	return shipment{from: m.size, to: size}, true
}

// ship reads a shipment from f and sends it beside what the caller does next; wait returns
// when the replica has it. The log's lock is not held, and syncing is set.
func (l *Log) ship(f *os.File, s shipment) (wait func() error) {
	data := make([]byte, s.to-s.from)
	if n, _ := f.ReadAt(data, s.from); n < len(data) {
		if !s.whole {
			return l.ship(f, shipment{to: s.to, whole: true})
		}
		data = data[:n] // someone is cutting it: what they leave is read again soon
	}

	done := make(chan error, 1)
	go func() {
		if s.whole {
			done <- l.vol.replication.replica.Put(Content{l.path, data})
		} else {
			done <- l.vol.replication.replica.Append(l.path, s.from, data)
		}
	}()
	return func() error {
		if err := <-done; err != nil {
			return fmt.Errorf("replicate %s: %w", l.path, err)
		}
		l.mu.Lock()
		l.mirrored.size, l.mirrored.whole = s.from+int64(len(data)), false
		l.mu.Unlock()

		return nil
	}
}

// replaced has the replica replace the log, as it was, by content. keep is the name that the
// old file has now, if it has one: the replica gets both at once, or a history would be there
// twice.
func (l *logFile) replaced(content []byte, keep string, was io.Reader) error {
	if !l.mirrored.on {
		return nil
	}

	l.mirrored.whole = true // until it is there
	files := []Content{{l.path, content}}
	if keep != "" {
		old, err := io.ReadAll(was)
		if err != nil {
			return fmt.Errorf("replicate %s: %w", keep, err)
		}
		files = append(files, Content{keep, old})
	}

	if err := l.vol.put(files...); err != nil {
		return err
	}
	l.mirrored.size, l.mirrored.whole = int64(len(content)), false

	return nil
}
