package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"daycare/engine/beneath"
	"daycare/engine/workspace"
)

// tailBytes is how much of the end of an inbox Settled reads.
const tailBytes = 4 << 10

// Settled reports whether the end of the inbox in an agent's folder proves that
// nothing in it is open: its last line is a done line that leaves nothing. No
// file, and an empty one, hold nothing either. It reads 4 KiB at most, so that
// a start can ask it of every agent.
func Settled(dir string) (bool, error) {
	f, err := beneath.OpenUnheld(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("survey inbox: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err == nil, err
	}

	tail := make([]byte, min(info.Size(), tailBytes))
	from := info.Size() - int64(len(tail))
	if _, err := f.ReadAt(tail, from); err != nil && err != io.EOF {
		return false, fmt.Errorf("survey inbox: %w", err)
	}

	return proves(tail, from == 0), nil
}

// proves reports whether the last line of tail leaves nothing open. whole says
// that tail is the entire file.
func proves(tail []byte, whole bool) bool {
	if len(tail) == 0 || tail[len(tail)-1] != '\n' {
		return false
	}
	tail = bytes.TrimSpace(tail)
	if len(tail) == 0 {
		return whole
	}

	start := bytes.LastIndexByte(tail, '\n') + 1
	if start == 0 && !whole {
		return false
	}
	l, err := decode(tail[start:])

	return err == nil && !l.byHand && string(l.Kind) == lineDone && l.Left == 0
}

// Survey lists the open items of the inbox in an agent's folder from the file
// alone. It takes no lock and changes nothing, so it is for looking while no
// daemon runs: with one, what it says may be out of date when it returns.
func Survey(dir string) ([]Head, error) {
	ix, _, err := survey(dir)
	if err != nil {
		return nil, err
	}
	heads := make([]Head, len(ix.order))
	for i, e := range ix.order {
		heads[i] = e.Head
	}

	return heads, nil
}

// ReadAll is Survey with the bodies.
func ReadAll(dir string) ([]Item, error) {
	ix, data, err := survey(dir)
	if err != nil {
		return nil, err
	}
	items, at := make([]Item, 0, len(ix.order)), workspace.Of(dir)
	for _, e := range ix.order {
		l, _ := decode(data[e.off : e.off+int64(e.Bytes)]) // it is in the index, so it can be read
		l.resolve(at)
		items = append(items, l.Item)
	}

	return items, nil
}

func survey(dir string) (*index, []byte, error) {
	path := filepath.Join(dir, FileName)
	data, err := beneath.Whole(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read inbox: %w", err)
	}
	ix, _ := scan(path, data, map[uint64]bool{})

	return ix, data, nil
}
