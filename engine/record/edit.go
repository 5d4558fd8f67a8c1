package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"sync"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// write appends entries with their encoded lines. If a user changed the file, their version is
// taken over, and the lines go behind it.
func (h *folded) write(entries []*Entry, lines []byte) error {
	// What was missing before must come first: order is line order.
	if h.recent.behind || !h.intact() {
		if err := h.reconcile(); err != nil {
			return err
		}
	}

	rest := lines
	for _, e := range entries {
		size := bytes.IndexByte(rest, '\n') + 1
		h.recent.add(ownLine{e, size})
		rest = rest[size:]
	}
	first, last := entries[0].Seq, entries[len(entries)-1].Seq
	_, err := h.file.Append(lines)
	switch {
	case err == nil:
		h.recent.ending(lines)
	case errors.Is(err, disk.ErrChanged):
		err = h.reconcileFrom(first, last)
	}

	if err != nil {
		h.recent.keep(func(l ownLine) bool { return l.Seq < first })
		return err
	}
	h.recent.trim()

	return nil
}

// changed reports whether the file is not what the last append left.
func (o *ownFile) changed() bool {
	return o.recent.behind || o.file.Changed() || !o.intact()
}

// tails are buffers to compare the ends of files in.
var tails = sync.Pool{New: func() any { return new([maxTail]byte) }}

// intact compares the last line appended with what the file holds: an editor that
// writes in place can leave device, inode and size as they were.
func (o *ownFile) intact() bool {
	buf := tails.Get().(*[maxTail]byte)
	defer tails.Put(buf)
	want := o.recent.tail
	got := buf[:len(want)]
	_, err := o.file.Log.ReadAt(got, o.file.Size()-int64(len(got)))

	return err == nil && bytes.Equal(got, want)
}

// reconcile takes over the file as a user left it, appends again what is missing
// at its end, and has the context made again. Obligations stay: an edit changes
// what the model sees, never what is owed.
func (h *folded) reconcile() error {
	last := h.fold.o.LastSeq
	return h.reconcileFrom(last+1, last)
}

// reconcileFrom is reconcile with the lines from fresh to last just written.
func (h *folded) reconcileFrom(fresh, last int64) error {
	h.recent.behind, h.recent.edited = true, last
	h.view.made, h.edited = false, true
	for {
		again, err := h.reconcileOnce(fresh, last)
		if !again {
			return err
		}
	}
}

// reconcileOnce makes one attempt; again: the file was written meanwhile.
func (o *ownFile) reconcileOnce(fresh, last int64) (again bool, err error) {
	content, release, err := o.reload()
	defer release()
	if err != nil {
		return false, err
	}

	gone := o.recent.missing(o.seqs(content), fresh, last)
	lines := encodeAgain(o.report.place, gone)
	if len(gone) > 0 {
		_, err = o.file.Append(lines)
		if errors.Is(err, disk.ErrChanged) {
			return true, nil // the hand is still at it; reload waits until it rests
		}
		if err != nil {
			return false, err
		}
		if gone[0].Seq < fresh {
			o.reportAgain(len(gone))
		}
	}

	o.recent.ending(append(content, lines...))
	o.recent.behind = false
	return false, nil
}

// steady reads the file, once more where a user's save in place cut it short
// meanwhile.
func (h *folded) steady(read func() error) error {
	for try := 0; ; try++ {
		err := read()
		if !errors.Is(err, io.ErrUnexpectedEOF) || try == 20 {
			return err
		}
		if err := h.reconcile(); err != nil {
			return err
		}
	}
}

// reload waits until the file is at rest and reads it. Nobody else opens it before
// release.
func (o *ownFile) reload() (content []byte, release func(), err error) {
	o.settle()
	content, release, err = o.file.Reload()
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %s", ErrGone, o.path())
	}

	return content, release, err
}

// settle waits until the file is at rest: an editor that writes in pieces, or
// moves the old file away before it writes the new one, is not done yet. It waits
// 20 times the quiet time at most, and not at all for a folder that is gone.
func (o *ownFile) settle() {
	last, stable := standOf(o.path()), 0
	for range 20 {
		if stable > 0 && last.size > 0 || stable > 4 || !disk.Exists(o.dir) {
			return
		}
		time.Sleep(o.limits.quiet)
		now := standOf(o.path())
		if now == last {
			stable++
		} else {
			last, stable = now, 0
		}
	}
}

type fileState struct {
	size int64
	mod  time.Time
}

func standOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{size: -1}
	}

	return fileState{info.Size(), info.ModTime()}
}

// seqs yields the numbers of the lines of content that can be read, and reports
// the others and of those written by a hand.
func (o *ownFile) seqs(content []byte) iter.Seq[int64] {
	src := &source{path: o.path(), r: bytes.NewReader(content), size: int64(len(content))}
	return func(yield func(int64) bool) {
		for off, line := range disk.Lines(content) {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			seq := int64(0)
			if head, ok := readHead(line); ok && disk.Sealed(line) {
				seq = head.seq
			} else if e := o.report.decode(rawLine{src, off, line}); e != nil {
				seq = e.Seq
			}
			if seq > 0 && !yield(seq) {
				return
			}
		}
	}
}

func (o *ownFile) reportAgain(n int) {
	o.report.found = append(o.report.found, finding.Finding{
		ID: "history-appended-again", Severity: finding.Warning, File: o.path(),
		Reason: fmt.Sprintf("the newest %d records were missing after an edit and were appended again", n),
		Remedy: "An edit that started before they were written looks the same as removed records. " +
			"To remove the newest turn, use `daycare agents rewind` or `daycare agents edit`.",
	})
}
