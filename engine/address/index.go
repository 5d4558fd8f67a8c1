package address

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// A Meta is what is known of an agent without reading more than its descriptor.
type Meta struct {
	ID         string
	Handle     string // "0", "0/1"
	Name       string // given, or made of its address
	Descriptor Descriptor
}

// An Ambiguous ref fits several agents.
type Ambiguous struct {
	Ref        string
	Candidates []string // handle and id of each
}

func (e *Ambiguous) Error() string {
	return fmt.Sprintf("%q fits several agents: %s", e.Ref, strings.Join(e.Candidates, ", "))
}

// An Index knows all agents of one .daycare directory. It may be used from many
// goroutines at once.
type Index struct {
	vol *disk.Volume // nil: read only
	dir string       // .daycare/agents
	log *slog.Logger

	mu      sync.RWMutex
	handles *handles
	byID    map[string]Meta
	byKey   map[string]string
	making  map[string]*sync.Mutex // key -> held while its agent is made
}

// Load reads all descriptors under root, the .daycare directory. With a nil volume
// nothing is written, not even repaired: that is for looking while another process
// holds the lock, or none does. A file that is broken is a finding and disables
// that agent only.
func Load(vol *disk.Volume, root string, log *slog.Logger) (*Index, []finding.Finding, error) {
	x := &Index{vol: vol, dir: filepath.Join(root, "agents"), log: log,
		byID: map[string]Meta{}, byKey: map[string]string{}, making: map[string]*sync.Mutex{}}
	if vol != nil {
		if err := os.MkdirAll(x.dir, 0o700); err != nil {
			return nil, nil, err
		}
		if err := x.removeUnfinished(); err != nil {
			return nil, nil, err
		}
	}
	var found []finding.Finding
	var err error
	if x.handles, found, err = loadHandles(vol, filepath.Join(x.dir, "handles.jsonl")); err != nil {
		return nil, nil, fmt.Errorf("read handles: %w", err)
	}
	more, err := x.Rescan()
	return x, append(found, more...), err
}

// removeUnfinished removes the folders of agents whose making a crash cut short.
func (x *Index) removeUnfinished() error {
	left, err := filepath.Glob(filepath.Join(x.dir, newPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove unfinished agent: %w", err)
		}
	}
	return nil
}

// Rescan reads the folders again: agents that were added or removed by hand count
// from now on.
func (x *Index) Rescan() ([]finding.Finding, error) {
	entries, err := os.ReadDir(x.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	read := make([]reading, len(entries))
	var group errgroup.Group
	group.SetLimit(4 * runtime.GOMAXPROCS(0))
	for i, e := range entries {
		if e.IsDir() && ValidID(e.Name()) {
			group.Go(func() error {
				read[i] = x.read(e.Name())
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.take(read)
}

// A reading is what one folder gave.
type reading struct {
	id   string
	d    Descriptor
	ok   bool
	made time.Time
	bad  error
}

func (x *Index) read(id string) reading {
	path := filepath.Join(x.dir, id, descriptorFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return reading{id: id, bad: finding.Finding{ID: "descriptor-missing", Severity: finding.Error, File: path,
			Reason: "cannot be read: " + err.Error(), Remedy: "restore the file or move the folder away"}}
	}
	d, err := Decode(path, data)
	if err == nil && d.ID != "" && d.ID != id {
		err = finding.Finding{ID: "descriptor-id", Severity: finding.Error, File: path, Line: 1,
			Reason: fmt.Sprintf("id %q is not the name of its folder", d.ID), Remedy: "set it to " + id}
	}
	r := reading{id: id, d: d, ok: err == nil, bad: err}
	if info, serr := os.Stat(path); serr == nil {
		r.made = info.ModTime()
	}
	return r
}

// take makes the readings the index's content. The lock is held.
func (x *Index) take(read []reading) ([]finding.Finding, error) {
	x.byID, x.byKey = map[string]Meta{}, map[string]string{}
	var found []finding.Finding
	slices.SortFunc(read, func(a, b reading) int { return x.older(a, b) })
	for _, r := range read {
		var f finding.Finding
		if errors.As(r.bad, &f) {
			found = append(found, f)
		}
		if !r.ok {
			continue
		}
		if other, taken := x.byKey[r.d.key()]; taken && r.d.key() != "" {
			found = append(found, finding.Finding{ID: "descriptor-duplicate", Severity: finding.Error,
				File:   filepath.Join(x.dir, r.id, descriptorFile),
				Reason: "agent " + other + " has the same address", Remedy: "change one of the two, or move a folder away"})
			continue
		}
		if _, err := x.add(r.id, r.d); err != nil {
			return found, err
		}
	}
	return found, nil
}

// older puts agents with a handle first, in its order, then the others by age, so
// that of two with one address the first to be made keeps it.
func (x *Index) older(a, b reading) int {
	if c := compareHandles(x.handles.byID[a.id], x.handles.byID[b.id]); c != 0 {
		return c
	}
	if c := a.made.Compare(b.made); c != 0 {
		return c
	}
	return strings.Compare(a.id, b.id)
}

// add puts an agent into the maps and gives it a handle if it has none.
func (x *Index) add(id string, d Descriptor) (Meta, error) {
	h, err := x.handles.give(id, d.ParentAgentID, time.Now())
	if err != nil {
		return Meta{}, err
	}
	m := Meta{ID: id, Handle: h, Name: name(d), Descriptor: d}
	x.byID[id] = m
	if k := d.key(); k != "" {
		x.byKey[k] = id
	}
	return m, nil
}

func name(d Descriptor) string {
	switch {
	case d.Name != "":
		return d.Name
	case d.Type == User:
		return d.Connector + ":" + d.ChannelID
	}
	return string(d.Type)
}

// Lookup finds the agent that a descriptor of type user, cron or heartbeat maps to.
func (x *Index) Lookup(d Descriptor) (id string, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	id, ok = x.byKey[d.key()]
	return id, ok && d.key() != ""
}

// Get returns an agent by its id.
func (x *Index) Get(id string) (Meta, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	m, ok := x.byID[id]
	return m, ok
}

// All returns all agents in the order of their handles.
func (x *Index) All() []Meta {
	x.mu.RLock()
	all := make([]Meta, 0, len(x.byID))
	for _, m := range x.byID {
		all = append(all, m)
	}
	x.mu.RUnlock()
	slices.SortFunc(all, func(a, b Meta) int { return compareHandles(a.Handle, b.Handle) })
	return all
}

// minPrefix is how much of an id a person must type.
const minPrefix = 4

// Resolve finds the agent that a person means: by exact id, handle ("0/1"; "0/" is
// "0"), name, or a unique prefix of the id of at least four characters. Errors:
// message.ErrUnknownAgent, *Ambiguous.
func (x *Index) Resolve(ref string) (string, error) {
	x.mu.RLock()
	_, exact := x.byID[ref]
	x.mu.RUnlock()
	if exact {
		return ref, nil
	}
	path := strings.TrimSuffix(ref, "/")
	var named, prefixed []Meta
	for _, m := range x.All() {
		switch {
		case m.Handle == path:
			return m.ID, nil
		case m.Name == ref:
			named = append(named, m)
		case len(ref) >= minPrefix && strings.HasPrefix(m.ID, ref):
			prefixed = append(prefixed, m)
		}
	}
	fits := named
	if len(fits) == 0 {
		fits = prefixed
	}
	switch len(fits) {
	case 0:
		return "", fmt.Errorf("%w: %q", message.ErrUnknownAgent, ref)
	case 1:
		return fits[0].ID, nil
	}
	amb := &Ambiguous{Ref: ref}
	for _, m := range fits {
		amb.Candidates = append(amb.Candidates, m.Handle+" "+m.ID)
	}
	return "", amb
}

// NextSerial is the serial number that the next top-level agent gets: the channel
// of one that a person starts by hand.
func (x *Index) NextSerial() string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return strconv.Itoa(x.handles.next[""])
}

// Close closes the handles' log.
func (x *Index) Close() error {
	if x.handles == nil || x.handles.log == nil {
		return nil
	}
	return x.handles.log.Close()
}
