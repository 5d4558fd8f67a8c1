package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// nextSeq is the label of the next line. It continues over a rotation, because it
// is what tells a line that was removed in the middle of the file from one that
// an editor never saw.
func (ix *index) nextSeq() int64 {
	ix.seq++
	return ix.seq
}

// write appends what is owed to the file and the lines that build adds. After an
// edit by another program it reads the file again and starts over.
func (x *ledger) write(build func([]byte) []byte) error {
	for n, again := 1, tries(); again(); n++ {
		lines := build(x.debts(nil))
		if len(lines) == 0 {
			return nil
		}
		off, err := x.log.Append(lines)
		if err == nil {
			x.paid(off)
			return nil
		}
		if !errors.Is(err, disk.ErrChanged) {
			return err
		}
		if landed, err := x.reload(urgent(n, lines)); landed || err != nil {
			return err
		}
	}

	return fmt.Errorf("append to %s: %w", x.dir.path(), disk.ErrChanged)
}

// debts appends what the file should hold and does not: items that an edit took
// away, and a done line for what was closed.
func (x *ledger) debts(b []byte) []byte {
	for _, e := range x.lost {
		b = append(append(b, e.line...), '\n')
	}
	if len(x.owed) > 0 {
		b = appendDone(b, x.ix.nextSeq(), x.ages.now(), x.owed, len(x.ix.order))
		if len(x.ix.order) == 0 && len(b) > tailBytes/2 {
			// So that the end of the file alone proves that nothing is open.
			b = appendDone(b, x.ix.nextSeq(), x.ages.now(), nil, 0)
		}
	}

	return b
}

// paid notes that the debts are in the file, from off on.
func (x *ledger) paid(off int64) {
	for _, e := range x.lost {
		e.off = off
		off += int64(len(e.line)) + 1
	}
	x.lost, x.owed = nil, nil
	x.ix.solid = x.ix.seq
}

// reload takes the file as it is now. Items that it no longer has are appended
// again if they could not be in the editor's version yet, and count as removed
// on purpose if they could. This is assumed of a file that is whole and was
// left alone for a while before; in one that someone writes all the time it is
// more likely that two writes went through each other.
//
// The lines in urgent are appended right after reading and before anything else:
// to compare takes long enough that a program which writes all the time would
// always come first. landed says that they are in the file.
func (x *ledger) reload(urgent []byte) (landed bool, err error) {
	x.copyLines()
	data, release, landed, urgentErr := x.loadAnd(urgent)
	defer func() { release() }()
	if urgentErr != nil && data == nil {
		return false, urgentErr
	}

	for try := 1; ; try++ {
		next := x.seen.scan(data)
		next.whole = len(next.odd) == 0 && time.Since(x.reread) > calm
		x.reread = time.Now()
		x.adopt(next, data)
		owed := x.debts(nil)
		if len(owed) == 0 {
			x.ix.solid = x.ix.seq
			return landed, errors.Join(urgentErr, x.welcome())
		}

		off, err := x.log.Append(owed)
		release()
		switch {
		case err == nil:
			x.paid(off)
			// They were acknowledged long ago, so they are durable before anything else.
			return landed, errors.Join(urgentErr, x.log.Barrier(), x.welcome())
		case errors.Is(err, disk.ErrFull), errors.Is(err, disk.ErrChanged) && try == settleTries:
			return landed, errors.Join(urgentErr, x.welcome()) // still owed; the next write brings it
		case !errors.Is(err, disk.ErrChanged):
			return landed, err
		}

		x.copyLines()
		if data, release, err = x.load(); err != nil {
			return landed, err
		}
	}
}

// welcome makes items durable that an edit brought, before they are worked on. Where
// that fails and the disk did not (too many open files) they count all the same: the
// edit acknowledged nothing to anybody.
func (x *ledger) welcome() error {
	if x.ix.grown {
		x.ix.grown = false
		_ = x.log.Barrier()
	}

	return x.vol.Err()
}

// loadAnd reads the file and appends urgent to it in the same breath. An error
// with data says that only the appending failed. Other programs open the file after release.
func (d *onDisk) loadAnd(urgent []byte) (data []byte, release func(), landed bool, err error) {
	for try := 1; ; try++ {
		if data, release, err = d.load(); err != nil {
			return nil, release, false, err
		}
		if len(urgent) == 0 {
			return data, release, false, nil
		}

		_, err = d.log.Append(urgent)
		switch {
		case err == nil:
			return append(data, urgent...), release, true, nil
		case !errors.Is(err, disk.ErrChanged):
			return slices.Grow(data, 1), release, false, err
		case try == urgentTries:
			return slices.Grow(data, 1), release, false, nil
		}
		release()
	}
}

// urgentTries is how often a file is read for the sake of urgent lines alone.
const urgentTries = 20

// calm is how long a file must not have changed for a removal to count as intended.
const calm = 2 * time.Second

// load reads the file at the path. One that was deleted is made again, in a
// folder that is still there.
func (d *onDisk) load() (data []byte, release func(), err error) {
	data, release, err = d.log.Reload()
	if !gone(err) {
		return data, release, err
	}
	old := d.log
	if data, err = d.openLog(); err != nil {
		return nil, release, fmt.Errorf("open inbox %s: %w", d.dir.agent(), err)
	}

	old.Close()

	return data, release, nil
}

// copyLines copies the lines of all open items out of the file that is about to
// be let go, as far as they are not in memory: the new one may lack them.
func (x *ledger) copyLines() {
	for _, e := range x.ix.order {
		if e.line != nil || e.off < 0 {
			continue
		}
		raw := make([]byte, e.Bytes)
		n, _ := x.log.ReadAt(raw, e.off)
		if l, err := decode(raw[:n]); err == nil && l.ID == e.ID {
			e.line = raw[:n]
			x.quota.forceKeep(n)
		}
	}
}

// copyLine keeps a copy of an item's line from data, if the quota has room.
func (q *Quota) copyLine(e *entry, data []byte) {
	raw := data[e.off : e.off+int64(e.Bytes)]
	q.unkeep(len(e.line))
	e.line = nil
	if q.keep(len(raw)) {
		e.line = bytes.Clone(raw)
	}
}

// adopt makes next, just read from data, the index of the mailbox, and notes in
// lost and owed what has to be appended to the file.
func (x *ledger) adopt(next *index, data []byte) {
	old := x.ix
	x.lost, x.owed, next.grown = nil, nil, old.grown
	x.quota.add(next.bytes - old.bytes)
	known := setOf(old.closed)
	order := make([]*entry, 0, len(next.order))
	for _, e := range next.order {
		had := old.byID[e.ID]
		switch {
		case had != nil:
			had.off = e.off
			taken := had.Taken
			had.Head = e.Head
			had.Taken = taken
			next.byID[e.ID] = had // so that its waiters and marks stay
			order = append(order, had)
			x.quota.copyLine(had, data)
		case known[hash64(e.ID)]:
			x.quota.add(-int64(e.Bytes))
			next.bytes -= int64(e.Bytes)
			delete(next.byID, e.ID)
			x.owed = append(x.owed, e.ID)
		default:
			order = append(order, e)
			x.quota.copyLine(e, data)
			next.grown = true
			x.signals.notify()
		}
	}
	next.order = order

	closed := setOf(next.closed)
	last := lastOurs(next.seen, old.solid)
	for _, e := range bySeq(old.order) {
		if next.byID[e.ID] == nil {
			x.missing(next, e, next.whole && e.Seq <= last, closed[hash64(e.ID)])
		}
	}

	for h, k := range old.keys {
		now, ok := next.keys[h]
		if !ok {
			now = key{at: k.at, off: -1}
		}
		now.ran = k.ran
		next.keys[h] = now
	}

	for _, h := range old.closed {
		if !closed[h] {
			next.closed = append(next.closed, h)
		}
	}

	next.closed = next.closed[max(0, len(next.closed)-MaxKeys):]
	next.seq, next.solid = max(next.seq, old.seq), old.solid
	next.seen = nil
	x.ix = next
}

// missing decides about an open item that the file no longer has as open.
func (x *ledger) missing(next *index, e *entry, removed, closed bool) {
	switch {
	case closed:
	case removed:
		x.seen.add("inbox-item-removed", finding.Info, "item "+e.ID+" was removed from the file; daycare treats it as dropped", "")
	case e.line == nil && !e.durable:
		// Its sender got no receipt: if they offer it again, it is a new item.
		e.lost, closed = true, true
		maps.DeleteFunc(x.ix.keys, func(_ uint64, k key) bool { return k.off == e.off })
	case e.line == nil:
		x.seen.add("inbox-item-lost", finding.Error,
			"item "+e.ID+" was accepted and is lost: the file was overwritten with an older version, and there was no copy",
			"ask its sender to send it again")
	default:
		x.seen.add("inbox-item-restored", finding.Info,
			"item "+e.ID+" was missing, as if an older version of the file had been saved; it was appended again",
			"to remove it, drop it: daycare inbox drop")
		e.off = -1
		e.Bytes = len(e.line)
		next.add(e)
		x.quota.add(int64(e.Bytes))
		x.lost = append(x.lost, e)
		return
	}

	if !closed {
		next.closed = append(next.closed, hash64(e.ID))
	}
	x.quota.add(int64(e.Bytes)) // which release gives back; next never counted it
	x.release(e)
}

// lastOurs is the highest seq in the file that we had given out before this edit:
// what had a lower one was in the editor's version. A line that was being
// appended during the edit is not a proof of that.
func lastOurs(seen []int64, given int64) (last int64) {
	for _, seq := range seen {
		if seq <= given {
			last = max(last, seq)
		}
	}

	return last
}

func bySeq(order []*entry) []*entry {
	sorted := slices.Clone(order)
	slices.SortStableFunc(sorted, func(a, b *entry) int { return int(a.Seq - b.Seq) })
	return sorted
}

func setOf(hashes []uint64) map[uint64]bool {
	set := make(map[uint64]bool, len(hashes))
	for _, h := range hashes {
		set[h] = true
	}

	return set
}
