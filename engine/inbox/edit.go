package inbox

import (
	"bytes"
	"fmt"
)

// Edit replaces the text of an open item that is not taken. Its new line stands behind the
// old one in the file and replaces it when the file is read; the item keeps its place.
func (f *File) Edit(id, text string) error {
	if len(text) > MaxItemBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(text), MaxItemBytes)
	}
	if err := f.reword(id, text); err != nil {
		return fmt.Errorf("edit item %s: %w", id, err)
	}

	return f.settle(nil)
}

func (f *File) reword(id, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := f.idle(id)
	if err != nil {
		return err
	}
	item, err := f.body(e)
	if err != nil {
		return err
	}

	item.Text, item.Edited = text, true
	item.store(f.place)
	more := int64(len(text)) // at most: the old line is part of the file until it is rotated
	if f.ix.bytes+more > MaxBytes || !f.quota.room(more) {
		return fmt.Errorf("%w: %d bytes queued", ErrFull, f.ix.bytes)
	}
	f.quota.add(-more)

	var raw []byte
	err = f.write(func(b []byte) []byte {
		start := len(b)
		item.Seq = f.ix.nextSeq()
		b = appendItem(b, item)
		raw = bytes.Clone(b[start : len(b)-1])
		return b
	})
	if err != nil {
		return err
	}
	if now := f.ix.byID[id]; now == e && e.Seq != item.Seq { // else the file was read again, and has it
		f.reworded(e, item, raw)
	}

	return f.rotate()
}

// reworded makes raw, which was appended last, the line of an item.
func (x *ledger) reworded(e *entry, item *Item, raw []byte) {
	grown := int64(len(raw) - e.Bytes)
	x.ix.bytes += grown
	x.quota.add(grown)
	x.quota.unkeep(len(e.line))
	e.line = nil
	if x.quota.keep(len(raw)) {
		e.line = raw
	}

	fresh := e.Fresh
	e.Head = headOf(item, len(raw))
	e.Fresh = fresh
	e.off = x.log.Size() - int64(len(raw)) - 1
	x.ix.know(item, e.off, x.ages)
}
