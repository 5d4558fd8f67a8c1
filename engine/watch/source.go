package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A source is where events come from: fsnotify, or a test.
type source struct {
	events <-chan fsnotify.Event
	errors <-chan error
	add    func(dir string) error
	remove func(dir string) error
	close  func() error
}

func openSystem() (*source, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}

	return &source{events: n.Events, errors: n.Errors, add: n.Add, remove: n.Remove, close: n.Close}, nil
}

// begin opens the source and sets all watches. Everyone is hinted once, because
// nobody knows what happened before.
func (w *Watcher) begin(listening *sync.WaitGroup) {
	w.arming.Lock()
	defer w.arming.Unlock()
	w.reopen(listening)
	w.mu.Lock()
	w.running = true
	all := make([]*directory, 0, len(w.dirs))
	for _, d := range w.dirs {
		w.say(d, "")
		all = append(all, d)
	}

	w.mu.Unlock()
	for _, d := range all {
		w.arm(d)
	}
}

// reopen opens the source if it is closed and available: the system limits
// how many a user may have. arming is held.
func (w *Watcher) reopen(listening *sync.WaitGroup) {
	if w.source != nil {
		return
	}
	s, err := w.open()
	if err != nil {
		return // arm says so, for each directory
	}
	w.source = s
	listening.Go(func() { w.listen(s) })
}

// end closes the source; the watches go with it.
func (w *Watcher) end() {
	w.arming.Lock()
	defer w.arming.Unlock()
	w.mu.Lock()
	w.running = false
	for _, d := range w.dirs {
		d.pending, d.fault = pending{}, fault{}
	}

	w.mu.Unlock()
	if w.source != nil {
		_ = w.source.close() // nothing is waiting for it
		w.source = nil
	}
}

// listen notes what the source says until it is closed. It never calls the
// source and never waits for a listener, so the source never waits for long.
func (w *Watcher) listen(s *source) {
	events, errs := s.events, s.errors
	for events != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			w.note(e)
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			w.broken(err)
		}
	}

	w.lost(s)
}

// note enters one event in the table. An event's name is a watched directory, an
// entry of one, or both.
func (w *Watcher) note(e fsnotify.Event) {
	if e.Op == fsnotify.Chmod { // indexers and backups do this all day
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	news := false // an agent's own writes are many, and no news
	if d := w.dirs[e.Name]; d != nil && e.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) {
		// The directory itself came, went or was moved: look at once whether
		// there is one by that name, and tell that all may be different.
		w.say(d, "")
		w.fails(d, fault{reason: "it disappeared", next: time.Now()})
		news = true
	}
	if d := w.dirs[filepath.Dir(e.Name)]; d != nil && d.path != e.Name && w.say(d, filepath.Base(e.Name)) {
		news = true
	}

	if news {
		w.poke()
	}
}

// broken takes an error of the source. Whatever it was, events may be missing.
func (w *Watcher) broken(err error) {
	if errors.Is(err, fsnotify.ErrEventOverflow) {
		w.log.Info("too many file events at once, rescanning everything")
	} else {
		w.log.Warn("watching files", "err", err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.dirs {
		w.say(d, "")
	}

	w.poke()
}

// lost is called when a source ended. If nobody closed it, all directories are
// without watch until it can be opened again.
func (w *Watcher) lost(s *source) {
	w.arming.Lock()
	defer w.arming.Unlock()
	if w.source != s {
		return // end closed it
	}

	w.source = nil
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, d := range w.dirs {
		w.say(d, "")
		w.fails(d, fault{reason: "file events from the system ended", next: time.Now()})
	}
	w.poke()
}

// retry looks at each directory without watch whose time has come.
func (w *Watcher) retry(listening *sync.WaitGroup) {
	w.arming.Lock()
	defer w.arming.Unlock()
	w.reopen(listening)
	now := time.Now()
	w.mu.Lock()
	var due []*directory
	for d := range w.waiting {
		if d.reason != "" && !d.fault.next.After(now) {
			due = append(due, d)
		}
	}

	w.mu.Unlock()
	for _, d := range due {
		w.arm(d)
	}
}

// arm sets the watch of one directory of the table, or says why it cannot be set and
// when to look again. arming is held.
func (w *Watcher) arm(d *directory) {
	err := w.watch(d.path)
	w.mu.Lock()
	defer w.mu.Unlock()
	was := d.fault
	if err == nil {
		d.fault = fault{}
		if was.reason != "" {
			w.say(d, "") // what happened in between nobody saw
			w.log.Info("watching directory again", "dir", d.path)
		}
		return
	}

	f := fault{reason: err.Error(), pause: Rescan}
	say := w.log.Warn
	if errors.Is(err, fs.ErrNotExist) {
		// Nothing to look at but whether it is back, which costs one stat.
		f.pause = min(max(firstRetry, 2*was.pause), Rescan)
		say = w.log.Debug
	} else if was.reason != "" {
		w.say(d, "") // the rescan
	}

	f.next = time.Now().Add(f.pause)
	w.fails(d, f)
	if was.reason != d.reason {
		say("cannot watch directory, polling it", "dir", d.path, "err", err)
	}
}

// watch sets one watch; an error says, for users, why changes may go unseen.
func (w *Watcher) watch(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such directory: %w", fs.ErrNotExist)
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("not a directory")
	case w.source == nil:
		return errors.New("the system's limit of file event queues is reached" + limitHint)
	}

	if err := w.source.add(dir); errors.Is(err, syscall.ENOSPC) {
		return errors.New("the system's limit of watches is reached" + limitHint)
	} else if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if name := w.remote(dir); name != "" {
		return fmt.Errorf("on %s, where changes made on other machines give no events", name)
	}

	return nil
}
