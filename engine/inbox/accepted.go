package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

// Accepted reads the items with these ids from the inbox of an agent's folder, done
// or not, as long as the file has them: a rotation leaves out what is done.
func Accepted(dir string, ids map[string]bool) (items []Item, err error) {
	data, err := beneath.Whole(filepath.Join(dir, FileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read inbox: %w", err)
	}

	for _, raw := range disk.Lines(data) {
		l, err := decode(bytes.TrimSpace(raw))
		if err != nil || !ids[l.ID] {
			continue // opening the inbox reports what cannot be read
		}
		switch string(l.Kind) {
		case lineDone, lineKeys, lineDropped, lineFront:
		default:
			if l.Edited {
				items = slices.DeleteFunc(items, func(it Item) bool { return it.ID == l.ID })
			}
			items = append(items, l.Item)
		}
	}

	return items, nil
}
