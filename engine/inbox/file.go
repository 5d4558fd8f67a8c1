package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// FileName is the name of an inbox in its agent's folder.
const FileName = "inbox.jsonl"

// A File is the Mailbox on one inbox.jsonl.
//
// In memory are the heads of the open items, where their lines are and hashes of
// the dedupe keys; bodies are read from the file. Whenever the file turns out to
// have been changed by somebody else it is read anew and compared by id and seq
// (reload.go). It starts no goroutines.
type File struct {
	vol      *disk.Volume
	dir      string
	quota    *Quota
	now      func() time.Time
	arrived  chan struct{}
	quit     chan struct{} // closed by Close
	inflight sync.WaitGroup

	mu      sync.Mutex
	log     *disk.Log
	ix      *index    // replaced whenever the file is read anew
	waiting []*entry  // appended, not yet behind a barrier, in order
	lost    []*entry  // open, but an edit of the file took them out: owed to it
	owed    []string  // ids that are done and not yet named in a done line
	reread  time.Time // when the file was last read anew
	found   []finding.Finding
	told    map[uint64]bool // what was found and said before
}

var _ Mailbox = (*File)(nil)

// Open opens the inbox in an agent's folder, which must exist; the file is made
// if there is none. The findings say what in the file is broken, was written by
// hand or was cut off; all else counts. What is open when it returns is durable.
//
// now tells the time, for items without one and for the age of dedupe keys.
func Open(vol *disk.Volume, dir string, quota *Quota, now func() time.Time) (*File, []finding.Finding, error) {
	f := &File{vol: vol, dir: dir, quota: quota, now: now, ix: newIndex(), told: map[uint64]bool{},
		arrived: make(chan struct{}, 1), quit: make(chan struct{})}
	data, err := f.openLog()
	if err != nil {
		return nil, nil, fmt.Errorf("open inbox %s: %w", f.agent(), err)
	}
	next := f.scan(data)
	next.seen = nil
	for _, e := range next.order {
		f.copyLine(e, data)
	}
	f.ix = next
	f.quota.add(next.bytes)
	if len(next.order) > 0 {
		// What was read may only be in the page cache, and is about to be worked on.
		if err := f.log.Barrier(); err != nil {
			f.log.Close()
			f.quota.add(-next.bytes)
			return nil, nil, fmt.Errorf("open inbox %s: %w", f.agent(), err)
		}
		f.notify()
	}
	return f, f.Findings(), nil
}

// openLog opens the log and returns all of its content.
func (f *File) openLog() ([]byte, error) {
	log, torn, err := f.vol.OpenLog(f.path(), disk.LogOptions{Name: "inbox", Valid: usable})
	if err != nil {
		return nil, err
	}
	data := make([]byte, log.Size())
	if n, err := log.ReadAt(data, 0); err != nil && n < len(data) {
		log.Close()
		return nil, err
	}
	f.log = log
	f.noteTorn(torn)
	return data, nil
}

func (f *File) path() string  { return filepath.Join(f.dir, FileName) }
func (f *File) agent() string { return filepath.Base(f.dir) }

// Findings returns what was noticed since the last call: broken lines, lines
// written by hand, items that an edit had removed.
func (f *File) Findings() []finding.Finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.found
	f.found = nil
	return found
}

func (f *File) note(id string, severity finding.Severity, reason, remedy string) {
	f.notes(finding.Finding{ID: id, Severity: severity, File: f.path(), Reason: reason, Remedy: remedy})
}

func (f *File) notes(found ...finding.Finding) {
	f.found = append(f.found, found...)
	if extra := len(f.found) - maxFound; extra > 0 {
		f.found = slices.Delete(f.found, 0, extra)
	}
}

// maxFound bounds what is kept for the next call of Findings, newest first to stay.
const maxFound = 1000

// scan folds data and notes what is wrong with it, each line once.
func (f *File) scan(data []byte) *index {
	ix, found := scan(f.path(), data, f.now(), f.told)
	f.notes(found...)
	return ix
}

func (f *File) noteTorn(torn *disk.Torn) {
	if torn != nil {
		f.note("inbox-torn", finding.Info,
			fmt.Sprintf("the last line was incomplete (%d bytes at offset %d) and was cut off", torn.Bytes, torn.Offset),
			"it is kept as "+torn.Kept)
	}
}

// Accept takes an item. It is one write and one barrier, shared with all who
// accept at the same time.
func (f *File) Accept(ctx context.Context, item Item) (message.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return message.Receipt{}, err
	}
	if len(item.Text) > MaxItemBytes {
		return message.Receipt{}, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(item.Text), MaxItemBytes)
	}
	if f.vol.Full() {
		return message.Receipt{}, disk.ErrFull
	}
	f.mu.Lock()
	if f.isClosed() {
		f.mu.Unlock()
		return message.Receipt{}, ErrClosed
	}
	f.inflight.Add(1)
	defer f.inflight.Done()
	receipt, e, err := f.enter(&item)
	f.mu.Unlock()
	if err != nil {
		return message.Receipt{}, err
	}
	if crash.Bug("ackearly") {
		f.mu.Lock()
		f.publish(e)
		f.mu.Unlock()
		return receipt, nil
	}
	if err := f.settle(e); err != nil {
		return message.Receipt{}, fmt.Errorf("accept item %s: %w", receipt.Item, err)
	}
	crash.Point("inbox.accepted")
	return receipt, nil
}

// enter appends the item, or finds that it is there already: the entry is then
// nil, but the receipt holds only after the next barrier all the same.
func (f *File) enter(item *Item) (message.Receipt, *entry, error) {
	if item.At.IsZero() {
		item.At = f.now()
	}
	item.At = item.At.UTC().Truncate(time.Millisecond)
	var hash uint64
	if item.Dedupe != "" {
		hash = hash64(item.Dedupe)
	}
	if r, ok := f.duplicate(item, hash); ok {
		return r, nil, nil
	}
	if item.ID == "" {
		item.ID = cuid2.Generate()
	}
	e, err := f.appendItem(item)
	if err != nil {
		return message.Receipt{}, nil, err
	}
	if item.Dedupe != "" {
		f.ix.keys[hash] = key{at: f.now().Unix(), off: e.off}
	}
	return message.Receipt{Agent: f.agent(), Item: item.ID, Seq: e.Seq}, e, nil
}

// duplicate looks for an item of the same dedupe key, or an open one of the same
// id.
func (f *File) duplicate(item *Item, hash uint64) (message.Receipt, bool) {
	if crash.Bug("nodedupe") {
		return message.Receipt{}, false
	}
	r := message.Receipt{Agent: f.agent(), Duplicate: true}
	if e := f.ix.byID[item.ID]; e != nil {
		r.Item, r.Seq = e.ID, e.Seq
		return r, true
	}
	k, ok := f.ix.keys[hash]
	if item.Dedupe == "" || !ok || k.at < f.now().Add(-DedupeWindow).Unix() {
		return r, false
	}
	r.Item, r.Seq = f.idOf(k)
	return r, true
}

// idOf reads the id of the item that brought a key from the file; empty if the
// line is no longer there.
func (f *File) idOf(k key) (string, int64) {
	if k.off < 0 {
		return "", 0
	}
	head := make([]byte, keyHead)
	n, _ := f.log.ReadAt(head, k.off)
	return idAt(head[:n])
}

// appendItem writes the item's line and makes its entry.
func (f *File) appendItem(item *Item) (*entry, error) {
	buf := make([]byte, 0, len(item.Text)+256)
	for range maxTries {
		buf = f.debts(buf[:0])
		start := len(buf)
		f.ix.seq++
		item.Seq = f.ix.seq
		buf = appendItem(buf, item)
		n := len(buf) - start - 1 // without newline, as Head.Bytes
		if err := f.room(n); err != nil {
			return nil, err
		}
		off, err := f.log.Append(buf)
		if err == nil {
			f.paid(off)
			e := &entry{Head: headOf(item, n), off: off + int64(start)}
			if f.quota.keep(n) {
				e.line = bytes.Clone(buf[start : len(buf)-1])
			}
			f.ix.add(e)
			f.waiting = append(f.waiting, e)
			return e, nil
		}
		f.quota.add(-int64(n))
		if !errors.Is(err, disk.ErrChanged) {
			return nil, err
		}
		if err := f.reload(); err != nil {
			return nil, err
		}
		if e := f.ix.byID[item.ID]; e != nil {
			// It had reached the file that the edit left.
			e.durable = false
			f.waiting = append(f.waiting, e)
			return e, nil
		}
	}
	return nil, fmt.Errorf("append to %s: %w", f.path(), disk.ErrChanged)
}

// maxTries is how often an operation begins anew because somebody changes the
// file under it all the time.
const maxTries = 50

// room takes what a line of n bytes needs of the limits.
func (f *File) room(n int) error {
	switch {
	case n > MaxBytes:
		return fmt.Errorf("%w: %d bytes on disk, at most %d", ErrTooLarge, n, MaxBytes)
	case len(f.ix.order) >= MaxItems:
		return fmt.Errorf("%w: %d items wait", ErrFull, len(f.ix.order))
	case f.ix.bytes+int64(n) > MaxBytes:
		return fmt.Errorf("%w: %d bytes wait", ErrFull, f.ix.bytes)
	case !f.quota.room(int64(n)):
		return fmt.Errorf("%w: all inboxes together hold %d bytes", ErrFull, f.quota.Used())
	}
	return nil
}

// settle waits until everything appended so far is durable in the file that has
// the inbox's name, then lets e be seen. If the file was read anew meanwhile, or
// is no longer the one that was synced, that is done again; but not for ever,
// because an editor may as well save right after.
func (f *File) settle(e *entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for try := 1; ; try++ {
		log, ix := f.log, f.ix
		f.mu.Unlock()
		err := log.Barrier()
		f.mu.Lock()
		switch {
		case f.ix != ix:
			continue
		case errors.Is(err, fs.ErrClosed):
			return ErrClosed
		case err != nil:
			return err
		case try < settleTries && log.Changed():
			if err := f.reload(); err != nil {
				return err
			}
			continue
		}
		f.publish(e)
		return nil
	}
}

// settleTries is how often the file is looked at after a barrier.
const settleTries = 4

// publish lets e be seen, and everything appended before it: the barrier covered
// them too, and an item must not be worked on before an older one.
func (f *File) publish(e *entry) {
	for i, w := range f.waiting {
		if w != e {
			continue
		}
		for _, w := range f.waiting[:i+1] {
			w.durable = true
		}
		f.waiting = append(f.waiting[:0], f.waiting[i+1:]...)
		f.notify()
		return
	}
}

func (f *File) notify() {
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}

func (f *File) isClosed() bool {
	select {
	case <-f.quit:
		return true
	default:
		return false
	}
}

// Close waits for the accepts under way and ends the mailbox.
func (f *File) Close() error {
	f.mu.Lock()
	if f.isClosed() {
		f.mu.Unlock()
		return nil
	}
	close(f.quit)
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
