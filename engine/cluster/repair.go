package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"daycare/engine/cuid"
	"daycare/engine/disk"
)

// The log of an agent that servers have lost or damaged is written again from the folder that has most of it: machines offer
// theirs, and what the log has beside it is added where it can be. What the servers still have is kept in a file first.

// A state is a folder with what the log makes of it.
type state struct {
	files map[string]file
	n     uint64 // the number of the newest message whose changes it has
	exact bool   // it is what the log had after that message, and nothing else
}

// follow adds what a log has to it. What cannot be read, or does not follow, is left out; a snapshot has all before it.
func (s *state) follow(ctx context.Context, from store, log []found, covers func(string) bool) {
	for _, m := range log {
		switch {
		case m.err != nil || m.n <= s.n:
		case isSnapshot(m.segments):
			next := map[string]file{}
			if apply(ctx, from, next, m.segments, covers) == nil && whole(ctx, from, next) {
				s.files, s.n, s.exact = next, m.n, true
			}
		case m.n != s.n+1:
		case !changes(m.segments):
			s.n = m.n
		case s.exact:
			next := maps.Clone(s.files)
			if apply(ctx, from, next, m.segments, covers) == nil && whole(ctx, from, next) {
				s.files, s.n = next, m.n
			}
		}
	}
}

// written counts what the process that had the folder wrote to the log: the folder has it, too.
func (s *state) written(log []found, boot string) {
	for _, m := range log {
		if m.n <= s.n {
			continue
		}
		if m.owner != boot {
			return
		}
		s.n = m.n
	}
}

// changes reports whether segments change files.
func changes(segments []segment) bool {
	return slices.ContainsFunc(segments, func(s segment) bool { return s.File != "" })
}

// whole reports whether all contents can be had.
func whole(ctx context.Context, from store, files map[string]file) bool {
	for _, f := range files {
		if f.object == "" {
			continue
		}
		if _, err := f.bytes(ctx, from); err != nil {
			return false
		}
	}

	return true
}

// An offer is what a machine has of an agent.
type offer struct {
	Machine string `json:"machine"`         // its name
	N       uint64 `json:"n"`               // up to which message
	Awake   bool   `json:"awake,omitempty"` // it is working on it
	Folder  bool   `json:"folder"`
	Error   string `json:"error,omitempty"`
}

// A demand asks a machine what it has of an agent, and, with Write, to write it into the log, whose newest message is Last.
type demand struct {
	Agent string `json:"agent"`
	Quick bool   `json:"quick,omitempty"` // what is noted of the folder is enough
	Write bool   `json:"write,omitempty"`
	Last  uint64 `json:"last,omitempty"`  // sequence; 0: the log is missing
	Above uint64 `json:"above,omitempty"` // the newest number that anybody knows
}

// offerSubject is where one machine is asked.
const offerSubject = "dc.offer."

// Bounds of questions to a machine.
const (
	offerFor = 10 * time.Second
	writeFor = time.Minute
)

// offers are what this machine has.
type offers struct{ *Node }

// tell answers who asks.
func (n offers) tell() error {
	_, err := n.conn.Subscribe(offerSubject+n.boot, func(m *nats.Msg) {
		n.work.Go(func() {
			var d demand
			err := json.Unmarshal(m.Data, &d)
			if err == nil && badID(d.Agent) {
				err = fmt.Errorf("%q is not the id of an agent", d.Agent)
			}
			var o offer
			if err == nil {
				o, err = n.answer(d)
			}
			if o.Machine = n.presence.name; err != nil {
				o.Error = err.Error()
			}
			if err := m.Respond(jsonOf(o)); err != nil {
				n.says.Info("what this machine has of an agent was not offered", "agent", d.Agent, "err", err)
			}
		})
	})
	if err != nil {
		return fmt.Errorf("answer the other machines: %w", err)
	}

	return nil
}

// answer offers what is here, and writes it if it was asked for.
func (n offers) answer(d demand) (o offer, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, writeFor)
	defer cancel()
	one := n.claims(d.Agent)
	one.Lock()
	defer one.Unlock()
	n.units.mu.Lock()
	u := n.owned[d.Agent]
	n.units.mu.Unlock()
	if u != nil {
		if d.Write {
			err = u.renew()
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		return offer{N: u.n, Awake: true, Folder: true}, err
	}

	if d.Quick {
		h, err := memory{n.Node}.had(d.Agent)
		return offer{N: h.N, Folder: h.N > 0}, err
	}
	s, ok, err := n.here(ctx, d.Agent)
	if err != nil || !ok {
		return offer{}, err
	}
	if d.Write {
		err = n.links.write(ctx, d, s, n.boot)
	}

	return offer{N: s.n, Folder: true}, err
}

// claims is the lock of who claims an agent here.
func (u *units) claims(agent string) *sync.Mutex {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.claiming[agent]
	if one == nil {
		one = &sync.Mutex{}
		u.claiming[agent] = one
	}

	return one
}

// here is the folder of an agent that is not awake here, with what the log has beside it. ok is false if the folder is missing.
func (n offers) here(ctx context.Context, agent string) (s state, ok bool, err error) {
	dir := n.folder(agent)
	if !disk.Exists(dir) {
		return s, false, nil
	}
	m, err := readMark(dir)
	if err != nil {
		return s, false, err
	}
	content, err := n.list(dir)
	if err != nil {
		return s, false, err
	}
	log, err := n.presence.store.leniently(ctx, agent)
	if err != nil {
		return s, false, err
	}

	s = state{files: map[string]file{}, n: m.N, exact: !m.Owned && sameAs(content, m.Files)}
	for name, data := range content {
		s.files[name] = file{tail: data}
	}
	if m.Owned && m.Boot != "" {
		s.written(log, m.Boot)
	}
	s.follow(ctx, n.store, log, n.covers)

	return s, true, nil
}

// write writes a state as all that the log has. Nobody owns the agent then.
func (l links) write(ctx context.Context, d demand, s state, boot string) error {
	contents := map[string][]byte{}
	for name, f := range s.files {
		data, err := f.bytes(ctx, l.store)
		if err != nil {
			return err
		}
		contents[name] = data
	}
	segments, err := fit(ctx, l.store, append([]segment{{Op: opSnapshot}}, all(contents)...))
	if err != nil {
		return err
	}
	m := logged{n: max(d.Above, s.n) + 1, owner: boot, id: cuid.New(), ending: ending{released: true},
		body: encode(append(segments, segment{Op: opRelease, Open: true}))}
	seq, err := l.publishOnce(ctx, d.Agent, d.Last, m)
	if err != nil {
		return fmt.Errorf("write the log of %s again: %w", d.Agent, err)
	}

	return l.store.purge(ctx, d.Agent, seq)
}

// renew writes all that an owner has into the log, in the place of what it had.
func (u *unit) renew() error {
	u.mu.Lock()
	u.since = snapshotAfter + 1
	u.mu.Unlock()
	for range 2 { // behind the first message the log is shortened, before the second one
		if err := u.commit(&commit{}); err != nil {
			return err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since > snapshotAfter {
		return errors.New("it is being edited: try again")
	}

	return nil
}
