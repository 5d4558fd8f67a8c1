package inbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// FileName is the name of an inbox in its agent's folder.
const FileName = "inbox.jsonl"

// A File is the Mailbox on one inbox.jsonl.
//
// In memory are the heads of the open items, where their lines are and hashes of
// the dedupe keys; bodies are read from the file. Whenever the file turns out to
// have been changed by someone else it is read again and compared by id and seq
// (reload.go). It starts no goroutines.
type File struct {
	inflight sync.WaitGroup
	mu       sync.Mutex // guards the ledger
	ledger
}

// A ledger is what is open and what is owed, as far as it is known. Whoever calls its
// methods holds the lock of the File.
type ledger struct {
	onDisk
	quota   *Quota
	ages    ages
	signals signals // which need no lock

	ix      *index    // replaced whenever the file is read again
	waiting []*entry  // appended, not yet behind a barrier, in order
	lost    []*entry  // open, but an edit of the file took them out: owed to it
	owed    []string  // ids that are done and not yet named in a done line
	reached int64     // the agent's history has come to this record
	reread  time.Time // when the file was last read again
}

// onDisk is the file, and what was noticed in it.
type onDisk struct {
	vol   *disk.Volume
	dir   folder
	place workspace.Place
	log   *disk.Log
	seen  notices
}

// A folder is an agent's.
type folder string

// signals tell those who wait.
type signals struct {
	arrived chan struct{}
	quit    chan struct{} // closed by Close
}

// notices are what was noticed in the file.
type notices struct {
	path     string
	found    []finding.Finding
	broken   []finding.Finding // lines that could not be read when the file was last read
	scans    int               // how often the file was read
	reported map[uint64]bool   // what was found and said before
}

var _ Mailbox = (*File)(nil)

// Open opens the inbox in an agent's folder, which must exist; the file is made
// if there is none. The findings say what in the file is broken, was written by
// hand or was cut off; all else counts. What is open when it returns is durable.
//
// now tells the time, for items without one and for the age of dedupe keys.
func Open(vol *disk.Volume, dir string, quota *Quota, now func() time.Time) (*File, []finding.Finding, error) {
	f := &File{ledger: ledger{
		onDisk: onDisk{vol: vol, dir: folder(dir), place: workspace.Of(dir),
			seen: notices{path: folder(dir).path(), reported: map[uint64]bool{}}},
		quota: quota, ages: ages{now: now, opened: time.Now()}, ix: newIndex(),
		signals: signals{arrived: make(chan struct{}, 1), quit: make(chan struct{})}}}
	if err := vol.Recover(dir, FileName); err != nil {
		return nil, nil, fmt.Errorf("open inbox %s: %w", f.dir.agent(), err)
	}

	data, err := f.openLog()
	if err != nil {
		return nil, nil, fmt.Errorf("open inbox %s: %w", f.dir.agent(), err)
	}
	next := f.seen.scan(data)
	next.seen, next.solid = nil, next.seq
	for _, e := range next.order {
		f.quota.copyLine(e, data)
	}

	f.ix = next
	f.quota.add(next.bytes)
	if len(next.order) > 0 {
		// What was read may only be in the page cache, and is about to be worked on.
		if err := f.log.Barrier(); err != nil {
			f.log.Close()
			f.quota.add(-next.bytes)
			return nil, nil, fmt.Errorf("open inbox %s: %w", f.dir.agent(), err)
		}
		f.signals.notify()
	}

	return f, f.Findings(), nil
}

// openLog opens the log and returns all of its content.
func (d *onDisk) openLog() ([]byte, error) {
	log, torn, err := d.vol.OpenLog(d.dir.path(), disk.LogOptions{Name: "inbox", Valid: usable, Looks: true})
	if err != nil {
		return nil, err
	}
	data := make([]byte, log.Size())
	if n, err := log.ReadAt(data, 0); n < len(data) {
		log.Close()
		return nil, err
	}

	d.log = log
	d.seen.noteTorn(torn)

	return data, nil
}

func (d folder) path() string  { return filepath.Join(string(d), FileName) }
func (d folder) agent() string { return filepath.Base(string(d)) }

// Findings returns what was noticed since the last call: broken lines, lines
// written by hand, items that an edit had removed.
func (f *File) Findings() []finding.Finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.seen.found
	f.seen.found = nil
	return found
}

// Broken returns the lines that could not be read when the file was last read again,
// the first 100 of them, and how often it was read: with the same number they are the
// same.
func (f *File) Broken() (found []finding.Finding, scans int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen.broken), f.seen.scans
}

func (n *notices) add(id string, severity finding.Severity, reason, remedy string) {
	n.extend(finding.Finding{ID: id, Severity: severity, File: n.path, Reason: reason, Remedy: remedy})
}

func (n *notices) extend(found ...finding.Finding) {
	n.found = append(n.found, found...)
	if extra := len(n.found) - maxFound; extra > 0 {
		n.found = slices.Delete(n.found, 0, extra)
	}
}

// maxFound bounds what is kept for the next call of Findings, newest first to stay.
const maxFound = 1000

// scan folds data and notes what is wrong with it, each line once.
func (n *notices) scan(data []byte) *index {
	ix, found := scan(n.path, data, n.reported)
	n.extend(found...)
	n.broken, n.scans, ix.broken = ix.broken, n.scans+1, nil
	return ix
}

func (n *notices) noteTorn(torn *disk.Torn) {
	if torn != nil {
		n.add("inbox-torn", finding.Info,
			fmt.Sprintf("the last line was incomplete (%d bytes at offset %d) and was removed", torn.Bytes, torn.Offset),
			"a copy is kept as "+torn.Kept)
	}
}

func (s signals) notify() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

func (s signals) isClosed() bool {
	select {
	case <-s.quit:
		return true
	default:
		return false
	}
}

// Close waits for the accepts in progress and ends the mailbox.
func (f *File) Close() error {
	f.mu.Lock()
	if f.signals.isClosed() {
		f.mu.Unlock()
		return nil
	}

	close(f.signals.quit)
	f.mu.Unlock()
	f.inflight.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.lost)+len(f.owed) > 0 {
		// A last try; what stays owed is found again from history.
		_ = f.write(func(b []byte) []byte { return b })
	}

	f.quota.add(-f.ix.bytes)
	for _, e := range f.ix.order {
		f.quota.unkeep(len(e.line))
	}

	return f.log.Close()
}

// gone reports whether err says that the file, or its folder, is no more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
