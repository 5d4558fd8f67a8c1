package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// Open lists the open items that are durable, in the order to work on them.
func (f *File) Open() []Head {
	f.mu.Lock()
	defer f.mu.Unlock()
	heads := make([]Head, 0, len(f.ix.order))
	for _, e := range f.ix.order {
		if e.durable {
			heads = append(heads, e.Head)
		}
	}

	if crash.Bug("lifo") {
		slices.Reverse(heads)
	}

	return heads
}

// Len counts the open items, also those whose Accept has not yet returned: an
// agent whose inbox has length 0 may go to sleep.
func (f *File) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ix.order)
}

// Reached notes how far the agent's history has come.
func (f *File) Reached(seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reached = seq
}

// Arrived receives after items became open.
func (f *File) Arrived() <-chan struct{} { return f.signals.arrived }

// Read returns the body of an open item as it is in the file now.
func (f *File) Read(id string) (Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.look(); err != nil {
		return Item{}, err
	}

	e := f.ix.byID[id]
	if e == nil {
		return Item{}, ErrUnknown
	}
	e.Fresh = false
	item, err := f.body(e)
	if err != nil {
		return Item{}, err
	}

	return *item, nil
}

// Take marks the items as being worked on; all of them or, on an error, none.
func (f *File) Take(ids ...string) ([]Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.look(); err != nil {
		return nil, err
	}

	items := make([]Item, 0, len(ids))
	for _, id := range ids {
		e, err := f.ix.idle(id)
		if err != nil {
			return nil, err
		}
		item, err := f.body(e)
		if err != nil {
			return nil, err
		}
		items = append(items, *item)
	}

	f.ix.mark(ids, true)
	return items, nil
}

// idle finds an open item that is not taken.
func (ix *index) idle(id string) (*entry, error) {
	switch e := ix.byID[id]; {
	case e == nil || !e.durable:
		return nil, fmt.Errorf("item %s: %w", id, ErrUnknown)
	case e.Taken:
		return nil, fmt.Errorf("item %s: %w", id, ErrTaken)
	default:
		return e, nil
	}
}

func (ix *index) mark(ids []string, taken bool) {
	for _, id := range ids {
		if e := ix.byID[id]; e != nil {
			e.Taken, e.Fresh = taken, false
		}
	}
}

// Untake gives taken items back.
func (f *File) Untake(ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ix.mark(ids, false)
	f.signals.notify()
}

// look reads the file again if it was changed.
func (x *ledger) look() error {
	if x.signals.isClosed() {
		return ErrClosed
	}
	if !x.log.Changed() {
		return nil
	}
	_, err := x.reload(nil)

	return err
}

// Refresh makes an edit of the file count now instead of at the next operation.
// Whoever watches the folder calls it.
func (f *File) Refresh() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.look()
}

// body reads an item. The line at the offset counts, also when a user changed
// it in place; if it is another item's the file is read again.
func (x *ledger) body(e *entry) (*Item, error) {
	for range 2 {
		if e.off < 0 {
			break
		}
		raw := make([]byte, e.Bytes)
		n, _ := x.log.ReadAt(raw, e.off)
		if l, err := decode(raw[:n]); err == nil && l.ID == e.ID {
			l.resolve(x.place)
			return &l.Item, nil
		}
		if _, err := x.reload(nil); err != nil {
			return nil, err
		}
		if x.ix.byID[e.ID] != e {
			return nil, fmt.Errorf("item %s: %w", e.ID, ErrUnknown)
		}
	}

	l, err := decode(e.line)
	if err != nil {
		return nil, fmt.Errorf("read item %s: %w", e.ID, err)
	}
	l.resolve(x.place)

	return &l.Item, nil
}

// Done closes items. An id that is not open is left out. On a full disk the line
// is owed and written with the next one; should the process die before, history
// says that the items are done.
func (f *File) Done(ids ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.signals.isClosed() {
		return ErrClosed
	}

	for _, id := range ids {
		if e := f.ix.byID[id]; e != nil {
			f.end(e)
			f.owed = append(f.owed, id)
		}
	}

	err := f.write(func(b []byte) []byte { return b })
	if errors.Is(err, disk.ErrFull) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mark items as done: %w", err)
	}

	return f.rotate()
}

// end takes an item out of the index and lets go of what it held.
func (x *ledger) end(e *entry) {
	x.ix.close(e)
	x.release(e)
}

// release gives back what an item held and ends the waits for it.
func (x *ledger) release(e *entry) {
	x.quota.add(-int64(e.Bytes))
	x.quota.unkeep(len(e.line))
	e.line = nil
	if e.gone != nil {
		close(e.gone)
		e.gone = nil
	}
	if i := slices.Index(x.lost, e); i >= 0 {
		x.lost = slices.Delete(x.lost, i, i+1)
	}
}

// idle looks at the file and finds an open item that is not taken.
func (f *File) idle(id string) (*entry, error) {
	if err := f.look(); err != nil {
		return nil, err
	}
	return f.ix.idle(id)
}

// Drop removes an open item that is not taken.
func (f *File) Drop(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := f.idle(id)
	if err != nil {
		return err
	}

	err = f.write(func(b []byte) []byte {
		b = appendMark(b, f.ix.nextSeq(), f.ages.now(), lineDropped, id)
		if len(f.ix.order) == 1 && f.ix.byID[id] != nil {
			// The proof that nothing is left is a done line; see Settled.
			b = appendDone(b, f.ix.nextSeq(), f.ages.now(), nil, 0)
		}

		return b
	})
	if err != nil {
		return fmt.Errorf("drop item %s: %w", id, err)
	}
	if f.ix.byID[id] == e {
		f.end(e)
	}

	return f.rotate()
}

// Front moves an open item that is not taken before all others.
func (f *File) Front(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := f.idle(id)
	if err != nil {
		return err
	}

	err = f.write(func(b []byte) []byte { return appendMark(b, f.ix.nextSeq(), f.ages.now(), lineFront, id) })
	if err != nil {
		return fmt.Errorf("move item %s to the front: %w", id, err)
	}
	f.ix.front(e)
	f.signals.notify()

	return nil
}

// Wait returns when the item is no longer open.
func (f *File) Wait(ctx context.Context, id string) error {
	f.mu.Lock()
	e := f.ix.byID[id]
	if e == nil {
		f.mu.Unlock()
		return nil
	}
	if e.gone == nil {
		e.gone = make(chan struct{})
	}

	gone := e.gone
	f.mu.Unlock()
	select {
	case <-gone:
		return nil
	case <-f.signals.quit:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
