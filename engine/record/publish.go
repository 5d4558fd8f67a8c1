package record

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// Publish puts a person's version of a file of the agent folder dir in the place of
// base, the version that it was made from. If something else stands there now, that
// stays, and is returned with disk.ErrChanged. Updates of the runtime are kept out
// meanwhile; what it appends to a history is found by its next append.
func Publish(vol *disk.Volume, dir, name string, content, base []byte) (found []byte, err error) {
	unlock, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("publish %s: %w", name, err)
	}
	defer unlock()
	if bytes.Equal(content, base) {
		return nil, nil
	}

	return vol.Exchange("edit", filepath.Join(dir, name), content, base)
}

// CheckHistory finds what is wrong in a history that is not in its place yet; path is
// for the findings. A line that cannot be read is an error here: in the file itself
// it would be skipped.
func CheckHistory(path string, content []byte) (found []finding.Finding) {
	n := 0
	for _, line := range disk.Lines(content) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		_, err := Decode(line)
		if err == nil {
			continue
		}

		f := finding.Finding{ID: "history-bad-line", Reason: err.Error()}
		errors.As(err, &f)
		f.File, f.Line = path, n
		if !errors.Is(err, ErrUnknownType) {
			f.Severity = finding.Error
		}

		found = append(found, f)
	}

	return found
}
