package address

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// A Meta is what is known of an agent without reading more than its descriptor.
type Meta struct {
	ID         string
	Handle     string // "0/", "0/1"
	Name       string // given, or made of its address
	Descriptor Descriptor
}

// An Ambiguous ref fits several agents.
type Ambiguous struct {
	Ref        string
	Candidates []string // handle and id of each
}

func (e *Ambiguous) Error() string {
	return fmt.Sprintf("%q matches several agents: %s", e.Ref, strings.Join(e.Candidates, ", "))
}

// Unwrap returns the fault.
func (e *Ambiguous) Unwrap() error { return fault.Ambiguous }

// Fault returns the fault with the candidates in its hint.
func (e *Ambiguous) Fault() *fault.Fault {
	words := make([]string, len(e.Candidates))
	for i, one := range e.Candidates {
		words[i], _, _ = strings.Cut(one, " ")
	}
	f := *fault.Ambiguous
	f.Hint, f.Route = "use one of: "+strings.Join(words, ", "), fault.Ambiguous.Hint

	return &f
}

// An Index knows all agents of one .daycare directory. It may be used from many
// goroutines at once.
type Index struct {
	families
	vol   *disk.Volume // nil when it is read only
	scan  *scan
	file  *indexFile
	maker *folderMaker
}

// families find agents by what they are and by who made them.
type families struct {
	known  *listing
	unread *unread
}

// Load reads all descriptors under root, the .daycare directory. With a nil volume
// nothing is written, not even repaired: that is for looking while another process
// holds the lock, or none does. A file that is broken is a finding and disables
// that agent only.
func Load(vol *disk.Volume, root string, log *slog.Logger) (*Index, []finding.Finding, error) {
	x, found, err := open(vol, root, log)
	if err != nil {
		return nil, nil, err
	}
	more, err := x.Whole()
	if err != nil {
		return nil, nil, errors.Join(err, x.Close())
	}
	x.file.release()

	return x, append(found, more...), nil
}

// open makes an Index that has read the handles alone.
func open(vol *disk.Volume, root string, log *slog.Logger) (*Index, []finding.Finding, error) {
	known, file := newListing(), newIndexFile(root)
	s := &scan{dir: filepath.Join(root, "agents"), log: log, known: known, file: file,
		seen: map[string]sight{}, told: map[finding.Finding]bool{}, met: map[string]bool{}}
	x := &Index{families: families{known, &unread{scan: s, done: make(chan struct{})}}, vol: vol, scan: s, file: file,
		maker: &folderMaker{vol: vol, scan: s}}
	var found []finding.Finding
	if vol != nil {
		if err := vol.MkdirAll(x.scan.dir); err != nil {
			return nil, nil, fmt.Errorf("make folder of agents: %w", err)
		}
		var err error
		if found, err = x.maker.removeUnfinished(); err != nil {
			return nil, nil, err
		}
		file.open()
	}

	handles, more, err := loadHandles(vol, filepath.Join(x.scan.dir, "handles.jsonl"))
	if err != nil {
		return nil, nil, fmt.Errorf("read handles: %w", err)
	}
	x.scan.handles = handles

	return x, append(found, more...), nil
}

// Own is the name of the agent that the first message typed at this machine makes. It
// was called terminal:default once, and is still found by that.
const (
	Own      = "main"
	ownAsWas = "terminal:default"
)

// NameOf is what an agent is called: its name, or one made of its address.
func NameOf(d Descriptor) string {
	switch {
	case d.Name != "":
		return d.Name
	case d.Type == User && d.Connector+":"+d.ChannelID == ownAsWas:
		return Own
	case d.Type == User:
		return d.Connector + ":" + d.ChannelID
	default:
		return string(d.Type)
	}
}

// Lookup finds the agent that a descriptor of type user, cron or heartbeat maps to.
func (f *families) Lookup(d Descriptor) (id string, ok bool) {
	if f.unread.partial() {
		f.unread.all()
	}
	f.known.mu.RLock()
	defer f.known.mu.RUnlock()
	id, ok = f.known.byKey[d.Key()]

	return id, ok
}

// Get returns an agent by its id.
func (f *families) Get(id string) (Meta, bool) { return f.unread.get(id) }

// All returns all agents in the order of their handles.
func (f *families) All() []Meta {
	ids := f.IDs()
	all := make([]Meta, 0, len(ids))
	f.known.mu.RLock()
	defer f.known.mu.RUnlock()
	for _, id := range ids {
		if m, ok := f.known.meta(id); ok {
			all = append(all, m)
		}
	}

	return all
}

// IDs returns the ids of all agents in the order of their handles. They are not to be changed.
func (f *families) IDs() []string {
	if f.unread.partial() {
		f.unread.all()
	}
	return f.known.ids()
}

// called finds the agent with a handle.
func (x *Index) called(handle string) (id string, ok bool) {
	m, ok := x.Get(x.scan.handles.whose(handle))
	return m.ID, ok && m.Handle == handle
}

// maxCandidates is how many agents an Ambiguous names.
const maxCandidates = 20

// MinPrefix is how much of an id a user must type.
const MinPrefix = 4

// Resolve finds the agent that a user means: by exact id, handle ("0/1"; "0" is
// "0/"), name, or a unique prefix of the id of at least four characters. Errors:
// message.ErrUnknownAgent, *Ambiguous.
func (x *Index) Resolve(ref string) (string, error) {
	if _, ok := x.Get(ref); ok {
		return ref, nil
	}
	if validHandle(ref) {
		if id, ok := x.called(canonical(ref)); ok {
			return id, nil
		}
	}
	if x.unread.partial() {
		x.unread.all()
	}

	x.known.mu.RLock()
	defer x.known.mu.RUnlock()
	if ref == ownAsWas {
		ref = Own
	}

	var fits []Meta
	if ref != "" {
		fits = x.known.exactly(byName, ref)
	}
	if len(fits) == 0 && len(ref) >= MinPrefix {
		fits = x.known.having(byID, ref, func(id string) bool { return strings.HasPrefix(id, ref) })
	}

	switch len(fits) {
	case 0:
		return "", fmt.Errorf("%w: %q", message.ErrUnknownAgent, ref)
	case 1:
		return fits[0].ID, nil
	}

	ambiguous := &Ambiguous{Ref: ref}
	for _, m := range fits {
		if len(ambiguous.Candidates) == maxCandidates {
			ambiguous.Candidates = append(ambiguous.Candidates, fmt.Sprintf("and %d more", len(fits)-maxCandidates))
			break
		}
		ambiguous.Candidates = append(ambiguous.Candidates, m.Handle+" "+m.ID)
	}

	return "", ambiguous
}

// NextSerial is the serial number that the next top-level agent gets: the channel
// id of an agent that a user makes by hand.
func (x *Index) NextSerial() string {
	x.scan.handles.mu.Lock()
	defer x.scan.handles.mu.Unlock()
	return strconv.Itoa(x.scan.handles.following(""))
}

// Close closes the handles' log.
func (x *Index) Close() error { return x.scan.handles.close() }
