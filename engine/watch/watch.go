package watch

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// Debounce is how long changes of one directory are gathered, where Options
	// do not say otherwise.
	Debounce = 200 * time.Millisecond
	// Rescan is how often a directory that cannot be watched is hinted.
	Rescan = 10 * time.Second
	// firstRetry is how soon a directory that went away is looked for again; the
	// pause doubles up to Rescan. git checkout and rsync remake directories.
	firstRetry = 100 * time.Millisecond
)

// A Hint says that something in a directory may have changed.
type Hint struct {
	Dir   string   // as given to Add, cleaned
	Names []string // base names, sorted, each once
	// Overflow: anything may have changed, the directory's being there included.
	// Names is then not complete.
	Overflow bool
}

// Options say how one directory is watched. The zero value is usual.
type Options struct {
	// Debounce is how long after the first change the hint comes; changes in
	// between are part of it. 0: 200 ms; negative: at once.
	Debounce time.Duration
	// Ignore names the entries whose changes do not matter. nil: Hidden.
	Ignore func(name string) bool
}

// Hidden reports whether a name begins with a dot, as the temporary files of
// this program (.tmp-) and of most editors do.
func Hidden(name string) bool { return strings.HasPrefix(name, ".") }

// A Watcher watches directories. Its methods may be called from any goroutine,
// and from the functions given to Add.
type Watcher struct {
	log    *slog.Logger
	open   func() (*source, error) // the system's events; tests give their own
	remote func(dir string) string // the file system's name if others may change it unseen
	wake   chan struct{}           // capacity 1: the table changed, look again

	// arming is held while watches are set and taken. It is not mu, because the
	// system's source may wait for its events to be drained meanwhile, and the
	// drain needs mu.
	arming sync.Mutex
	source *source // under arming; nil: not running, or none to be had

	mu      sync.Mutex
	running bool
	dirs    map[string]*directory
	waiting map[*directory]struct{} // of dirs, those with a hint due or a fault: an event looks at no other
}

// A directory is one row of the table.
type directory struct {
	path     string
	debounce time.Duration
	ignore   func(string) bool
	hear     func(Hint)

	pending
	fault
}

// pending is what the next hint will say.
type pending struct {
	names    map[string]struct{}
	overflow bool
	due      time.Time // zero: nothing to say
}

// fault is why a directory is not watched, and when to look again.
type fault struct {
	reason string // "": it is watched
	pause  time.Duration
	next   time.Time
}

// New makes a Watcher that does nothing before Run.
func New(log *slog.Logger) *Watcher {
	return &Watcher{
		log:    log,
		open:   openSystem,
		remote: Remote,
		wake:   make(chan struct{}, 1),
		dirs:   map[string]*directory{},

		waiting: map[*directory]struct{}{},
	}
}

// Add watches a directory, which need not be there yet. hear is called from
// Run's goroutine, one call at a time for the whole Watcher, so it should only
// pass the hint on. While Run runs, every change after Add returned is hinted;
// directories added before get an Overflow hint when Run begins. A second Add of
// the same directory replaces the first.
func (w *Watcher) Add(dir string, o Options, hear func(Hint)) {
	d := &directory{path: filepath.Clean(dir), debounce: o.Debounce, ignore: o.Ignore, hear: hear}
	if d.debounce == 0 {
		d.debounce = Debounce
	}
	if d.ignore == nil {
		d.ignore = Hidden
	}

	w.arming.Lock()
	defer w.arming.Unlock()
	w.mu.Lock()
	delete(w.waiting, w.dirs[d.path])
	w.dirs[d.path] = d
	running := w.running
	w.mu.Unlock()
	if running {
		w.arm(d)
		w.poke()
	}
}

// Remove ends the watch of a directory. A hint that is in progress may still come.
func (w *Watcher) Remove(dir string) {
	dir = filepath.Clean(dir)
	w.arming.Lock()
	defer w.arming.Unlock()
	w.mu.Lock()
	d, known := w.dirs[dir]
	delete(w.dirs, dir)
	delete(w.waiting, d)
	w.mu.Unlock()
	if known && w.source != nil {
		// It fails where the watch went with its directory, which is as good.
		_ = w.source.remove(dir)
	}
}

// Degraded lists the directories that are looked at by time because they cannot
// be watched, each as "DIR: reason", sorted.
func (w *Watcher) Degraded() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for d := range w.waiting {
		if d.reason != "" {
			all = append(all, d.path+": "+d.reason)
		}
	}

	slices.Sort(all)

	return all
}

// Run watches until ctx ends, then returns nil. It may be run again afterwards,
// but not twice at once.
func (w *Watcher) Run(ctx context.Context) error {
	var listening sync.WaitGroup
	w.begin(&listening)
	defer listening.Wait()
	defer w.end()
	timer := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-timer.C:
		}

		w.retry(&listening)
		for _, hint := range w.take(time.Now()) {
			hint()
		}
		if next, ok := w.next(); ok {
			timer.Reset(time.Until(next))
		}
	}
}

// take removes and returns what is due, as calls to be made without a lock.
func (w *Watcher) take(now time.Time) []func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var calls []func()
	for d := range w.waiting {
		if d.due.IsZero() || d.due.After(now) {
			continue
		}
		h := Hint{Dir: d.path, Overflow: d.overflow}
		for name := range d.names {
			h.Names = append(h.Names, name)
		}

		slices.Sort(h.Names)
		if d.pending = (pending{}); d.reason == "" {
			delete(w.waiting, d)
		}
		calls = append(calls, func() { d.hear(h) })
	}

	return calls
}

// next is when something is due.
func (w *Watcher) next() (at time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	earlier := func(t time.Time) {
		if !t.IsZero() && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	for d := range w.waiting {
		earlier(d.due)
		earlier(d.fault.next)
	}

	return at, ok
}

// poke has Run look at the table again.
func (w *Watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// say adds to the next hint of a directory. It reports whether there was none, so that Run does not know of it yet. It must
// be called with mu held.
func (w *Watcher) say(d *directory, name string) (first bool) {
	switch {
	case name == "":
		d.overflow = true
	case d.ignore(name):
		return false
	default:
		if d.names == nil {
			d.names = map[string]struct{}{}
		}
		d.names[name] = struct{}{}
	}

	if !d.due.IsZero() {
		return false
	}
	d.due = time.Now().Add(d.debounce)
	w.waiting[d] = struct{}{}

	return true
}

// fails says why a directory is not watched. It must be called with mu held.
func (w *Watcher) fails(d *directory, f fault) {
	d.fault = f
	w.waiting[d] = struct{}{}
}
