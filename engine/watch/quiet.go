package watch

import (
	"fmt"
	"sync"
	"time"
)

// MaxStill is how long a Quiet is trusted without a look at the files. It bounds what no event
// tells: a write to memory that is mapped from a file, one through another name of it, a file
// system mounted over a folder.
const MaxStill = time.Second

// A Quiet tells whether files stayed as they were since they were read, so that what is asked
// before every turn is not read anew for every turn. Unlike a Watcher it does not wait for events:
// it takes them out of the system's queue when it is asked, so that a change that was made before
// is never missed.
//
// It is for whoever keeps what was read:
//
//	if kept != nil && q.Still(kept.mark, places...) {
//		return kept
//	}
//	mark := q.Mark() // before the files are read
//
// What was read must not be kept if it depends on more than the places: if a file is a link, or
// has other names. A nil Quiet never says that anything is still. Its methods may be called from
// any goroutine.
type Quiet struct {
	open   func() (queue, error)
	remote func(dir string) string // the file system's name if others may change it unseen

	mu      sync.Mutex
	queue   queue  // nil: none is open
	n       uint64 // counts what Mark and armed refer to
	changed uint64 // when something in any place changed last
	armed   map[string]armed
}

// A Place is a folder, which need not exist, and the entries of it that matter; a nil Names means
// all of them. Two Places with the same Dir have the same Names.
type Place struct {
	Dir   string
	Names func(name string) bool
}

// A Mark is a moment. The zero Mark is before everything.
type Mark struct {
	n  uint64
	at time.Time
}

// Age is how long ago a mark was taken; very long for the zero Mark.
func (m Mark) Age() time.Duration { return time.Since(m.at) }

// armed is a place with its watches, or why it has none.
type armed struct {
	since uint64
	again time.Time // when to try again; zero: it is watched
}

// A queue is the system's: changes of places since they were added.
type queue interface {
	// add watches a place, and the folders above it. An error says that changes of it may go unseen.
	add(p Place) error
	// changes takes what happened. moved says that paths lead elsewhere now: the queue is of no more use.
	changes() (some, moved bool)
	close()
}

// NewQuiet makes a Quiet. It costs nothing before it is used.
func NewQuiet() *Quiet { return &Quiet{open: openQueue, remote: Remote, armed: map[string]armed{}} }

// Mark returns this moment. It is to be taken before files are read.
func (q *Quiet) Mark() Mark {
	if q == nil {
		return Mark{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take()
	return Mark{n: q.n, at: time.Now()}
}

// Still reports whether nothing in the places has changed since the mark. False may also mean that
// this is not known: the mark is older than MaxStill, or the system cannot watch a place. Places that
// were not watched before are from now on.
func (q *Quiet) Still(m Mark, places ...Place) bool {
	if q == nil || m.at.IsZero() || m.Age() > MaxStill {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take()
	still := q.changed <= m.n
	for _, p := range places {
		if a := q.arm(p); a.since > m.n || !a.again.IsZero() {
			still = false
		}
	}

	return still
}

// take takes what happened out of the queue. mu is held.
func (q *Quiet) take() {
	if q.queue == nil {
		return
	}
	some, moved := q.queue.changes()
	if some || moved {
		q.n++
		q.changed = q.n
	}
	if moved {
		q.drop()
	}
}

// drop closes the queue: nothing is watched any more. mu is held.
func (q *Quiet) drop() {
	q.queue.close()
	q.queue = nil
	clear(q.armed)
}

// arm watches a place if that was not done yet. mu is held.
func (q *Quiet) arm(p Place) armed {
	known, ok := q.armed[p.Dir]
	if ok && (known.again.IsZero() || time.Now().Before(known.again)) {
		return known
	}

	q.n++
	now := armed{since: q.n}
	if err := q.watch(p); err != nil {
		now.again = time.Now().Add(Rescan)
	}
	q.armed[p.Dir] = now

	return now
}

func (q *Quiet) watch(p Place) (err error) {
	if name := q.remote(p.Dir); name != "" {
		return fmt.Errorf("watch %s: on %s, where changes made on other machines give no events", p.Dir, name)
	}
	if q.queue == nil {
		if q.queue, err = q.open(); err != nil {
			q.queue = nil
			return err
		}
	}

	return q.queue.add(p)
}

// Close gives the system's queue back. Nothing is still afterwards.
func (q *Quiet) Close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue != nil {
		q.drop()
	}
	q.open = noQueue
}
