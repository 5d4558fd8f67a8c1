package record

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// Publish replaces a file of the agent folder dir by a user's version, which was made from base. If the file is no
// longer base it stays, and its content is returned with disk.ErrChanged. Until it is done, updates by the runtime
// wait; the next Append finds records that were appended to a history in between.
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

// CheckHistory returns what is wrong with the content of a history that is not in its place yet;
// path is for the findings. An unreadable line is an error here, while in the file itself it would
// be skipped.
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
