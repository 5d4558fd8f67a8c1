package cluster

import (
	"context"
	"errors"
	"fmt"
)

// A file is a content as a log has it: an object, and what was appended to that. The object
// is read when the file is.
type file struct {
	object string // SHA-256; "": none
	base   int64  // bytes of the object
	tail   []byte
}

func (f file) size() int64 { return f.base + int64(len(f.tail)) }

// bytes is all of the file.
func (f file) bytes(ctx context.Context, s store) ([]byte, error) {
	if f.object == "" {
		return f.tail, nil
	}
	data, err := s.get(ctx, f.object)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != f.base {
		return nil, fmt.Errorf("%w: object %s has %d bytes, not %d", errDamaged, f.object, len(data), f.base)
	}

	return append(data[:len(data):len(data)], f.tail...), nil
}

// errHole: messages are missing from what was read of a log, because the server that was
// asked is behind, or because the log is damaged.
var errHole = errors.New("the log has a hole")

// fold returns the files that a log makes. covers says which names are allowed.
func fold(ctx context.Context, s store, log []logged, covers func(string) bool) (map[string]file, error) {
	files := map[string]file{}
	for i, m := range log {
		segments, err := decode(m.body)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", m.n, err)
		}
		switch {
		case isSnapshot(segments): // what was before it may have been lost
		case i > 0 && m.n != log[i-1].n+1:
			return nil, fmt.Errorf("%w: message %d comes after message %d", errHole, m.n, log[i-1].n)
		case i == 0 && m.n != 1:
			return nil, fmt.Errorf("%w: it begins with message %d", errHole, m.n)
		}
		if err := apply(ctx, s, files, segments, covers); err != nil {
			return nil, fmt.Errorf("message %d: %w", m.n, err)
		}
	}

	return files, nil
}

// isSnapshot reports whether a message stands for all before it.
func isSnapshot(segments []segment) bool {
	for _, s := range segments {
		if s.Op == opSnapshot {
			return true
		}
	}

	return false
}

// apply does what the segments of a message say.
func apply(ctx context.Context, s store, files map[string]file, segments []segment, covers func(string) bool) error {
	for _, g := range segments {
		if g.File != "" && !covers(g.File) {
			return fmt.Errorf("%w: it has a file %q", errDamaged, g.File)
		}

		f := files[g.File]
		switch g.Op {
		case opSnapshot:
			clear(files)
			if !g.Object {
				continue
			}
			body, err := s.get(ctx, g.SHA) // too many files for a message
			if err != nil {
				return err
			}
			inner, err := decode(body)
			if err != nil {
				return err
			}
			if isSnapshot(inner) {
				return fmt.Errorf("%w: a snapshot in a snapshot", errDamaged)
			}
			if err := apply(ctx, s, files, inner, covers); err != nil {
				return err
			}
		case opPut:
			if f = (file{tail: g.data}); g.Object {
				f = file{object: g.SHA, base: int64(g.N)}
			}
			files[g.File] = f
		case opAppend:
			if f.size() != g.At {
				return fmt.Errorf("%w: %d bytes are appended to %s at %d, which has %d", errHole, g.N, g.File, g.At, f.size())
			}
			f.tail = append(f.tail, g.data...)
			files[g.File] = f
		case opRemove:
			delete(files, g.File)
		}
	}

	return nil
}
