package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// BrokenLine is the id of the finding of a line that cannot be read.
const BrokenLine = "inbox-broken-line"

// Check looks at every line of the inbox in an agent's folder, with the runtime
// running or not: lines that cannot be read, a torn end, ids given twice. It
// changes nothing.
func Check(dir string) ([]finding.Finding, error) {
	path := filepath.Join(dir, FileName)
	data, err := beneath.Whole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check inbox: %w", err)
	}

	return CheckContent(path, data), nil
}

// CheckContent is Check of a content; path is for the findings.
func CheckContent(path string, data []byte) []finding.Finding {
	whole, tail := data, []byte(nil)
	if end := bytes.LastIndexByte(data, '\n') + 1; end < len(data) && !usable(data[end:]) {
		whole, tail = data[:end], data[end:]
	}
	_, found := scan(path, whole, map[uint64]bool{})
	found = append(found, twice(path, whole)...)
	if tail != nil {
		found = append(found, finding.Finding{ID: "inbox-torn", Severity: finding.Warning, File: path,
			Line:   bytes.Count(whole, []byte{'\n'}) + 1,
			Reason: "the last line is incomplete: a crash cut it off",
			Remedy: "It was never acknowledged. The next start, or doctor --fix, removes it and keeps a copy next to the file."})
	}

	return found
}

// twice reports items that were accepted under an id that was there before.
func twice(path string, data []byte) (found []finding.Finding) {
	first := map[string]int{}
	n := 0
	for _, raw := range disk.Lines(data) {
		n++
		l, err := decode(raw)
		if err != nil {
			continue
		}

		switch string(l.Kind) {
		case lineDone, lineKeys, lineDropped, lineFront:
			continue
		}
		if line := first[l.ID]; line > 0 && !l.Edited {
			found = append(found, finding.Finding{ID: "inbox-id-twice", Severity: finding.Warning, File: path, Line: n,
				Reason: fmt.Sprintf("item %s is already on line %d; this line is ignored", l.ID, line),
				Remedy: "Give it another id, or remove the line."})
			continue
		}

		first[l.ID] = n
	}

	return found
}

// LineOf is the line of inbox.jsonl on which an item was accepted, 0 if it is not
// there.
func LineOf(dir, id string) int {
	data, _ := beneath.Whole(filepath.Join(dir, FileName)) // what cannot be read has no lines
	n := 0
	for _, raw := range disk.Lines(data) {
		n++
		if l, err := decode(raw); err == nil && l.ID == id && string(l.Kind) != lineDropped && string(l.Kind) != lineFront {
			return n
		}
	}

	return 0
}
