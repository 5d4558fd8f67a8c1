package address

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// A handle is one line of handles.jsonl: the path of serial numbers by which
// users call an agent, "3/" at the top, "3/0" for its first child.
type handle struct {
	Handle string     `json:"handle" check:"required" pattern:"^(0|[1-9][0-9]*)(/(0|[1-9][0-9]*))*/?$"`
	ID     string     `json:"id" check:"required" pattern:"^[a-z0-9]{24,32}$"`
	Parent string     `json:"parent,omitempty"` // id
	At     disk.Stamp `json:"at"`
}

// HandleType is the type of a line of handles.jsonl, for its JSON Schema.
func HandleType() reflect.Type { return reflect.TypeFor[handle]() }

// handles are the serial numbers given out so far, also to agents that are gone.
type handles struct {
	vol    *disk.Volume
	path   string
	shared Registry // nil: this machine alone gives numbers

	mu    sync.Mutex
	log   *disk.Log // nil: read only
	given []handle
	owed  []handle // given, and removed from the file by hand; the next append puts them back
	byID  map[string]string
	taken map[string]string // handle -> id
	next  map[string]int    // handle of the parent ("" at the top) -> next serial
}

// loadHandles reads the file; with a volume it is opened for appending.
func loadHandles(vol *disk.Volume, path string) (*handles, []finding.Finding, error) {
	h := &handles{vol: vol, path: path, byID: map[string]string{}, taken: map[string]string{}, next: map[string]int{}}
	if vol != nil {
		if err := h.open(); err != nil {
			return nil, nil, err
		}
	}

	data, err := beneath.Whole(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errors.Join(err, h.close())
	}
	found, _ := h.read(data)

	return h, found, nil
}

func (h *handles) open() (err error) {
	h.log, _, err = h.vol.OpenLog(h.path, disk.LogOptions{Name: "handles", Valid: json.Valid})
	return err
}

// read takes the lines of the file in. seen are the ids that it names.
func (h *handles) read(data []byte) (found []finding.Finding, seen map[string]bool) {
	seen = map[string]bool{}
	n := 0
	for _, line := range disk.Lines(data) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		tell := func(reason string) {
			found = append(found, finding.Finding{ID: "handle-invalid", Severity: finding.Warning, File: h.path, Line: n, Column: 1,
				Reason: reason, Remedy: "Remove the line; its agent gets a new handle."})
		}
		var l handle
		if err := json.Unmarshal(line, &l); err != nil || !validHandle(l.Handle) || l.ID == "" {
			tell(`not a line {"handle":"0/1","id":…}`)
			continue
		}

		l.Handle = canonical(l.Handle)
		seen[l.ID] = true
		if other := h.taken[l.Handle]; other != "" && other != l.ID {
			tell(fmt.Sprintf("handle %s belongs to agent %s", l.Handle, other))
			continue
		}
		if h.byID[l.ID] == "" {
			h.put(l)
		}
	}

	return found, seen
}

// maxSerial is a number that no count of agents comes to: one above it was written by hand, and the next agent does not
// get the number after it.
const maxSerial = 1 << 30

func (h *handles) put(l handle) {
	h.given = append(h.given, l)
	h.byID[l.ID], h.taken[l.Handle] = l.Handle, l.ID
	parent, serial := split(l.Handle)
	if serial < maxSerial {
		h.next[parent] = max(h.next[parent], serial+1)
	}
}

// following is the serial number that the next agent below a handle gets.
func (h *handles) following(parent string) int {
	for h.taken[join(parent, h.next[parent])] != "" {
		h.next[parent]++
	}
	return h.next[parent]
}

// of is the handle of an agent, "" if it has none.
func (h *handles) of(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byID[id]
}

// whose is the id of the agent that a handle was given to, "" for none.
func (h *handles) whose(handle string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken[handle]
}

// children are the agents whose handles were given below one agent's.
func (h *handles) children(parent string) (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.given {
		if l.Parent == parent && parent != "" {
			ids = append(ids, l.ID)
		}
	}

	return ids
}

// give gives an agent its handle; one that it has already stays. It is durable
// after sync.
func (h *handles) give(id, parentID string, now time.Time) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if have := h.byID[id]; have != "" {
			return have, nil
		}
		parent := h.byID[parentID]
		l := handle{join(parent, h.following(parent)), id, parentID, disk.StampOf(now)}
		if h.shared != nil {
			given, err := h.shared.Number(l.Handle, id)
			if err != nil {
				return "", fmt.Errorf("give handle %s: %w", l.Handle, err)
			}
			if given == "" {
				h.next[parent]++
				continue
			}
			l.Handle = given
		}
		err := h.append(l)
		if errors.Is(err, disk.ErrChanged) {
			err = h.reload()
			if err == nil {
				continue // its number may be taken now
			}
		}
		if err != nil {
			return "", fmt.Errorf("give handle %s: %w", l.Handle, err)
		}

		h.put(l)
		return l.Handle, nil
	}
}

// append adds lines to the file, behind those that it lacks.
func (h *handles) append(given ...handle) error {
	given = append(slices.Clone(h.owed), given...)
	if h.log == nil || len(given) == 0 {
		return nil
	}
	var lines []byte
	for _, l := range given {
		line, _ := json.Marshal(l) // text, and a time of this century
		lines = append(append(lines, line...), '\n')
	}

	_, err := h.log.Append(lines)
	if err == nil {
		h.owed = nil
	}

	return err
}

// reload takes over what a user made of the file. Lines that are missing are
// appended again: a number that was given is never given again.
func (h *handles) reload() error {
	for {
		data, release, err := h.log.Reload()
		if errors.Is(err, fs.ErrNotExist) {
			h.log.Close()
			err = h.open()
		}
		if err != nil {
			release()
			return err
		}

		_, seen := h.read(data)
		h.owed = nil
		for _, l := range h.given {
			if !seen[l.ID] {
				h.owed = append(h.owed, l)
			}
		}

		err = h.append()
		release()
		if !errors.Is(err, disk.ErrChanged) {
			return err
		}
	}
}

// sync makes all handles given so far durable.
func (h *handles) sync() error {
	h.mu.Lock()
	log := h.log
	h.mu.Unlock()
	if log == nil {
		return nil
	}

	return log.Barrier()
}

func (h *handles) close() error {
	if h.log == nil {
		return nil
	}
	return h.log.Close()
}

func validHandle(s string) bool {
	for part := range strings.SplitSeq(strings.TrimSuffix(s, "/"), "/") {
		if n, err := strconv.Atoi(part); err != nil || n < 0 || part != strconv.Itoa(n) {
			return false
		}
	}

	return true
}

// canonical writes a valid handle as handles are written: "3/" at the top, no
// slash at the end further down.
func canonical(s string) string {
	s = strings.TrimSuffix(s, "/")
	if !strings.Contains(s, "/") {
		s += "/"
	}

	return s
}

// split is the handle of the parent, "" at the top, and the agent's own serial.
func split(handle string) (parent string, serial int) {
	handle = strings.TrimSuffix(handle, "/")
	i := strings.LastIndexByte(handle, '/')
	serial, err := strconv.Atoi(handle[i+1:])
	if err != nil || i < 0 {
		return "", serial
	}

	return canonical(handle[:i]), serial
}

// join is the handle of a child, or of an agent at the top: "3/", "3/0", "3/0/1".
func join(parent string, serial int) string {
	if parent == "" {
		return strconv.Itoa(serial) + "/"
	}
	return strings.TrimSuffix(parent, "/") + "/" + strconv.Itoa(serial)
}

// compareHandles orders handles as users count: 2 before 10, parents before
// children; "" last.
func compareHandles(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(b, a)
	}
	a, b = strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/")
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, "/")
		y, b, _ = strings.Cut(b, "/")

		// Without leading zeros the longer number is the larger.
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
	}

	return 0
}
