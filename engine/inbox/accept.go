package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/message"
)

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
	if f.vol.Away() {
		return message.Receipt{}, disk.ErrAway
	}

	f.mu.Lock()
	if f.signals.isClosed() {
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
// nil, but the receipt is valid only after the next barrier all the same.
func (x *ledger) enter(item *Item) (message.Receipt, *entry, error) {
	// A year that JSON does not have would make a line that nobody can read again.
	if y := item.At.UTC().Year(); item.At.IsZero() || y < 0 || y > 9999 {
		item.At = x.ages.now()
	}
	item.At = item.At.UTC().Truncate(time.Millisecond)

	// An id from outside may be one that was worked on before its key was forgotten.
	if item.After = x.reached; x.ages.now().Sub(item.At) > DedupeWindow {
		item.After = 0
	}
	item.store(x.place)
	if r, ok := x.duplicate(item); ok {
		return r, nil, nil
	}

	made := item.ID == ""
	if made {
		item.ID = cuid.Unique()
	}
	r, e, err := x.appendItem(item)
	if e != nil {
		e.Fresh = made
	}

	return r, e, err
}

// duplicate looks for an item of the same dedupe key, or one of the same id, open
// or closed: an id names one item, and a start would take the second for the first.
func (x *ledger) duplicate(item *Item) (message.Receipt, bool) {
	if crash.Bug("nodedupe") {
		return message.Receipt{}, false
	}
	r := message.Receipt{Agent: x.dir.agent(), Duplicate: true}
	if e := x.ix.byID[item.ID]; e != nil {
		r.Item, r.Seq = e.ID, e.Seq
		return r, true
	}
	if crash.Bug("shortmemory") && x.ix.keys[hash64(item.Dedupe)].at < x.ages.now().Add(-24*time.Hour).Unix() {
		return r, false
	}
	if item.ID != "" && slices.Contains(x.ix.closed, hash64(item.ID)) {
		r.Item = item.ID
		return r, true
	}

	k, ok := x.ix.keys[hash64(item.Dedupe)]
	if !ok || !x.ages.young(k) {
		return r, false
	}
	r.Item, r.Seq = x.idOf(k)

	return r, true
}

// idOf reads the id of the item that brought a key from the file; empty if the
// line is no longer there.
func (d *onDisk) idOf(k key) (string, int64) {
	head := make([]byte, keyHead)
	n, _ := d.log.ReadAt(head, k.off) // nothing, where it is not in the file

	return idAt(head[:n])
}

// appendItem writes the item's line and makes its entry. Where the file has to be
// read again it may turn out to have the item: from a try before this one, which
// failed after its line was written.
func (x *ledger) appendItem(item *Item) (message.Receipt, *entry, error) {
	buf := make([]byte, 0, len(item.Text)+256)
	for n, again := 1, tries(); again(); n++ {
		buf = x.debts(buf[:0])
		start := len(buf)
		x.ix.seq++
		item.Seq = x.ix.seq
		buf = appendItem(buf, item)
		size := len(buf) - start - 1 // without newline, as Head.Bytes
		if err := x.ix.room(size, x.quota); err != nil {
			return message.Receipt{}, nil, err
		}

		off, err := x.log.Append(buf)
		if err == nil {
			x.paid(off)
			e := &entry{Head: headOf(item, size), off: off + int64(start)}
			if x.quota.keep(size) {
				e.line = bytes.Clone(buf[start : len(buf)-1])
			}
			x.ix.add(e)
			x.waiting = append(x.waiting, e)
			x.ix.know(item, e.off, x.ages)
			return x.dir.receipt(e), e, nil
		}

		x.quota.add(-int64(size))
		if !errors.Is(err, disk.ErrChanged) {
			return message.Receipt{}, nil, err
		}
		if _, err := x.reload(urgent(n, buf)); err != nil {
			return message.Receipt{}, nil, err
		}
		if e := x.ix.byID[item.ID]; e != nil {
			x.ix.know(item, e.off, x.ages) // it had reached the file that the edit left
			return x.dir.receipt(e), e, nil
		}
		if r, ok := x.duplicate(item); ok {
			return r, nil, nil
		}
	}

	return message.Receipt{}, nil, fmt.Errorf("append to %s: %w", x.dir.path(), disk.ErrChanged)
}

func (d folder) receipt(e *entry) message.Receipt {
	return message.Receipt{Agent: d.agent(), Item: e.ID, Seq: e.Seq}
}

// urgent is lines after a few tries in vain, nothing before: what an edit took
// away then comes back in front of them, as it was accepted earlier.
func urgent(try int, lines []byte) []byte {
	if try < settleTries {
		return nil
	}
	return lines
}

// tries bounds how long an operation begins anew because someone changes the
// file under it all the time.
func tries() (again func() bool) {
	end := time.Now().Add(5 * time.Second)
	return func() bool { return time.Now().Before(end) }
}

// room takes what a line of n bytes needs of the limits.
func (ix *index) room(n int, quota *Quota) error {
	switch {
	case n > MaxBytes:
		return fmt.Errorf("%w: %d bytes on disk, at most %d", ErrTooLarge, n, MaxBytes)
	case len(ix.order) >= MaxItems:
		return fmt.Errorf("%w: %d items queued", ErrFull, len(ix.order))
	case ix.bytes+int64(n) > MaxBytes:
		return fmt.Errorf("%w: %d bytes queued", ErrFull, ix.bytes)
	case !quota.room(int64(n)):
		return fmt.Errorf("%w: %d bytes in all inboxes", ErrFull, quota.Used())
	}

	return nil
}

// settle waits until everything appended so far is durable in the file that has
// the inbox's name, then lets it be seen: also what another Accept appended whose
// barrier failed, because a sender that offers it again learns that it is there. If the
// file was read again meanwhile, or is no longer the one that was synced, that is done
// again; but not forever, because an editor may as well save right after.
func (f *File) settle(e *entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for try := 1; ; try++ {
		log, ix := f.log, f.ix
		var last *entry
		if n := len(f.waiting); n > 0 {
			last = f.waiting[n-1]
		}

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
			if _, err := f.reload(nil); err != nil {
				return err
			}
			continue
		}

		f.publish(last)
		if e != nil && e.lost {
			return errors.New("an editor overwrote the inbox while the item was being accepted")
		}
		return nil
	}
}

// settleTries is how often the file is looked at after a barrier.
const settleTries = 4

// publish lets last be seen, and everything appended before it: the barrier covered
// them too, and an item must not be worked on before an older one.
func (x *ledger) publish(last *entry) {
	i := slices.Index(x.waiting, last)
	if i < 0 {
		return // another call published it, or nothing waited
	}
	for _, e := range x.waiting[:i+1] {
		e.durable = true
	}
	x.waiting = slices.Delete(x.waiting, 0, i+1)
	x.signals.notify()
}
