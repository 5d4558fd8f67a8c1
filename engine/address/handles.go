package address

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// handle is one line of handles.jsonl.
type handle struct {
	Handle string    `json:"handle"`
	ID     string    `json:"id"`
	Parent string    `json:"parent,omitempty"` // id
	At     time.Time `json:"at"`
}

// handles are the serial numbers given out so far.
type handles struct {
	log  *disk.Log // nil: read only
	byID map[string]string
	next map[string]int // handle of the parent ("" at the top) -> next serial
}

// loadHandles reads the file; with a volume it is opened for appending.
func loadHandles(vol *disk.Volume, path string) (*handles, []finding.Finding, error) {
	h := &handles{byID: map[string]string{}, next: map[string]int{}}
	if vol != nil {
		log, _, err := vol.OpenLog(path, disk.LogOptions{Name: "handles", Valid: json.Valid})
		if err != nil {
			return nil, nil, err
		}
		h.log = log
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	return h, h.read(path, data), nil
}

func (h *handles) read(path string, data []byte) []finding.Finding {
	var found []finding.Finding
	n := 0
	for _, line := range disk.Lines(data) {
		n++
		var l handle
		if err := json.Unmarshal(line, &l); err != nil || !validHandle(l.Handle) {
			found = append(found, finding.Finding{ID: "handle-invalid", Severity: finding.Warning, File: path, Line: n, Column: 1,
				Reason: "not a handle line", Remedy: "remove the line; the agent gets a new handle"})
			continue
		}
		h.byID[l.ID] = l.Handle
		parent, serial := split(l.Handle)
		h.next[parent] = max(h.next[parent], serial+1)
	}
	return found
}

func validHandle(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if n, err := strconv.Atoi(part); err != nil || n < 0 || part != strconv.Itoa(n) {
			return false
		}
	}
	return true
}

func split(handle string) (parent string, serial int) {
	i := strings.LastIndexByte(handle, '/')
	serial, _ = strconv.Atoi(handle[i+1:])
	if i < 0 {
		return "", serial
	}
	return handle[:i], serial
}

// give gives an agent its handle, durably. One that it has already stays.
func (h *handles) give(id, parentID string, now time.Time) (string, error) {
	if have, ok := h.byID[id]; ok {
		return have, nil
	}
	parent := h.byID[parentID]
	serial := h.next[parent]
	path := strconv.Itoa(serial)
	if parent != "" {
		path = parent + "/" + path
	}
	if h.log != nil {
		line, err := json.Marshal(handle{path, id, parentID, now.UTC().Truncate(time.Millisecond)})
		if err != nil {
			return "", err
		}
		if err := h.append(append(line, '\n')); err != nil {
			return "", fmt.Errorf("give handle %s: %w", path, err)
		}
	}
	h.byID[id] = path
	h.next[parent] = serial + 1
	return path, nil
}

func (h *handles) append(line []byte) error {
	_, err := h.log.Append(line)
	if errors.Is(err, disk.ErrChanged) {
		data, _, rerr := h.log.Reload()
		if rerr != nil {
			return rerr
		}
		h.read("handles.jsonl", data)
		_, err = h.log.Append(line)
	}
	if err != nil {
		return err
	}
	return h.log.Barrier()
}

// compareHandles orders handles as people count: 2 before 10, parents before
// children; agents without one last.
func compareHandles(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(b, a)
	}
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, "/")
		y, b, _ = strings.Cut(b, "/")
		m, merr := strconv.Atoi(x)
		n, nerr := strconv.Atoi(y)
		if merr != nil || nerr != nil {
			return cmp.Compare(x, y)
		}
		if m != n {
			return cmp.Compare(m, n)
		}
	}
	return 0
}
