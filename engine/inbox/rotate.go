package inbox

import (
	"errors"
	"fmt"
	"io"
	"maps"

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// rotateAt is the size, in bytes, from which an inbox is rotated when over half
// of it is done.
const rotateAt = 1 << 20

// rotate rewrites a file that is mostly done. Where that fails and the disk did not
// (too many open files) the file stays as it is, and the next call tries again: what
// was to be closed is closed.
func (x *ledger) rotate() error {
	size := x.log.Size()
	if size <= rotateAt || 2*x.ix.live() >= size || x.vol.Full() {
		return nil
	}
	if err := x.rewrite(size); x.vol.Err() != nil {
		return err
	}

	return nil
}

// rewrite puts a new file in place of the one of that size: the dedupe keys, what was
// never understood, and the open items as they are, in the order to work on them, so
// that no front line is needed. What is in the new file is durable when it has the name.
func (x *ledger) rewrite(size int64) error {
	data := make([]byte, size)
	n, err := x.log.ReadAt(data, 0)
	if errors.Is(err, io.EOF) && n < len(data) {
		_, err := x.reload(nil) // someone is writing it at this moment
		return err
	}
	if n < len(data) {
		return fmt.Errorf("rotate inbox %s: %w", x.dir.agent(), err)
	}

	content := x.rotated(data)
	err = x.log.Replace(content, "")
	switch {
	case errors.Is(err, disk.ErrChanged):
		_, err := x.reload(nil)
		return err
	case errors.Is(err, disk.ErrFull):
		return nil
	case err != nil:
		return fmt.Errorf("rotate inbox %s: %w", x.dir.agent(), err)
	}

	next := x.seen.scan(content) // it has all keys that are still to be remembered
	maps.DeleteFunc(x.ix.keys, func(hash uint64, _ key) bool { _, kept := next.keys[hash]; return !kept })
	x.adopt(next, content)
	return nil
}

// live is about how many bytes a rotation would keep.
func (ix *index) live() int64 {
	n := ix.bytes + int64(min(len(ix.keys), MaxKeys))*keyBytes
	for _, s := range ix.odd {
		n += int64(s.n)
	}

	return n
}

func (x *ledger) rotated(data []byte) []byte {
	at := func(off int64, n int) []byte {
		return data[min(off, int64(len(data))):min(off+int64(n), int64(len(data)))]
	}
	open := map[uint64]bool{} // their lines carry the key themselves
	var items []byte
	for _, e := range x.ix.order {
		raw := e.line
		if e.off >= 0 {
			raw = at(e.off, e.Bytes)
		}
		if l, err := decode(raw); err == nil {
			open[hash64(l.Dedupe)] = true
		}
		items = append(append(items, raw...), '\n')
	}

	keys := x.ix.keyList(x.ages, open, func(k key) string {
		if k.off < 0 {
			return ""
		}
		id, _ := idAt(at(k.off, keyHead))
		return id
	})
	if crash.Bug("keysforgotten") {
		keys = nil
	}

	content := appendKeys(nil, x.ix.nextSeq(), x.ages.now(), keys)
	for _, s := range x.ix.odd {
		content = append(append(content, at(s.off, s.n)...), '\n')
	}
	content = append(content, items...)

	return appendDone(content, x.ix.nextSeq(), x.ages.now(), nil, len(x.ix.order))
}
