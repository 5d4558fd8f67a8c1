package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/disk"
)

// Keys of the bucket of agents.
const (
	cardKey   = "card."   // and the id of an agent: what all machines know of it
	ownerKey  = "key."    // and the SHA-256 of an address: the id of the agent that it leads to
	handleKey = "handle." // and a handle: the id of the agent that it was given to
	numberKey = "number." // and the id of an agent: its handle
)

// A card is what all machines know of an agent. Its log is there before the card is.
type card struct {
	Handle     string             `json:"handle"`
	Descriptor address.Descriptor `json:"descriptor"`
	Ended      bool               `json:"ended,omitempty"`
	Last       string             `json:"last,omitempty"` // Config.ID of the machine that had it last

	revision uint64 // in the bucket
}

// An Agent is one that the cluster knows.
type Agent struct {
	address.Meta
	Ended bool
	Last  string // Config.ID of the machine that had it last, or has it; "": not known
}

func (c card) agent(id string) Agent {
	return Agent{address.Meta{ID: id, Handle: c.Handle, Name: address.NameOf(c.Descriptor), Descriptor: c.Descriptor}, c.Ended, c.Last}
}

// Cards are who the agents of the cluster are.
type cards struct {
	keep  *natsStore
	own   string // Config.ID of this machine
	away  func() bool
	until context.Context // of the node
	notes *slog.Logger

	mu     sync.Mutex
	known  map[string]card   // by id, as this machine has heard
	gone   map[string]uint64 // by id: the revision that this machine removed, until it hears so
	met    func(Agent)       // nil: nobody listens
	parted func(id string)
}

// settleFor bounds how long an id or a handle is settled.
const settleFor = 5 * time.Second

func (c *cards) context() (context.Context, context.CancelFunc, error) {
	if c.away() {
		return nil, nil, disk.ErrAway
	}
	ctx, cancel := context.WithTimeout(c.until, settleFor)
	return ctx, cancel, nil
}

// Claim is that of address.Registry.
func (c *cards) Claim(key, id string) (string, error) {
	ctx, cancel, err := c.context()
	if err != nil {
		return "", err
	}
	defer cancel()

	return c.first(ctx, c.keep.handles.agents, ownerKey+sum([]byte(key)), id)
}

// Number is that of address.Registry.
func (c *cards) Number(handle, id string) (string, error) {
	ctx, cancel, err := c.context()
	if err != nil {
		return "", err
	}
	defer cancel()
	e, err := c.keep.handles.agents.Get(ctx, numberKey+id)
	if err == nil {
		return string(e.Value()), nil
	}
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", c.failed("look up a handle", err)
	}

	owner, err := c.first(ctx, c.keep.handles.agents, handleKey+handle, id)
	if err != nil || owner != id {
		return "", err
	}

	return c.first(ctx, c.keep.handles.agents, numberKey+id, handle)
}

// first writes a value under a key of a bucket unless there is one, and returns the one that is there.
func (c *cards) first(ctx context.Context, kv jetstream.KeyValue, key, value string) (string, error) {
	for {
		_, err := kv.Create(ctx, key, []byte(value))
		if err == nil {
			return value, nil
		}
		if errors.Is(err, jetstream.ErrKeyExists) {
			var e jetstream.KeyValueEntry
			if e, err = kv.Get(ctx, key); err == nil {
				return string(e.Value()), nil
			}
		}

		select {
		case <-time.After(20 * time.Millisecond): // the server that was asked is behind, or none answers
		case <-ctx.Done():
			return "", c.failed("settle "+key, err)
		}
	}
}

func (c *cards) failed(what string, err error) error {
	return fmt.Errorf("%w: %s: %w", disk.ErrAway, what, err)
}

// Announce is that of engine.Peers.
func (c *cards) Announce(m address.Meta, ended bool) error {
	c.mu.Lock()
	had, known := c.known[m.ID]
	c.mu.Unlock()
	now := card{m.Handle, m.Descriptor, ended, c.own, had.revision}
	if known && had == now {
		return nil
	}
	ctx, cancel, err := c.context()
	if err != nil {
		return err
	}
	defer cancel()

	if now.revision, err = c.keep.handles.agents.Put(ctx, cardKey+m.ID, jsonOf(now)); err != nil {
		return c.failed("announce agent "+m.ID, err)
	}
	c.mu.Lock()
	if c.known[m.ID].revision < now.revision {
		c.known[m.ID] = now
	}
	c.mu.Unlock()

	return nil
}

// withdraw makes the cluster forget an agent whose log was retired. Its handle is never given
// again. Until the servers have forgotten it, this machine has not either: it can be repeated.
// An agent that was made again meanwhile is left alone.
func (c *cards) withdraw(agent string) error {
	ctx, cancel, err := c.context()
	if err != nil {
		return err
	}
	defer cancel()
	e, err := c.keep.handles.agents.Get(ctx, cardKey+agent)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		c.forget(agent, 0)
		return nil
	}
	head, lerr := c.keep.last(ctx, agent)
	if err = errors.Join(err, lerr); err != nil {
		return c.failed("withdraw agent "+agent, err)
	}
	if !head.retired {
		return nil
	}

	if _, had, ok := c.read(e); ok && had.Descriptor.Key() != "" {
		if err := c.giveBack(ctx, ownerKey+sum([]byte(had.Descriptor.Key())), agent); err != nil {
			return c.failed("give an address back", err)
		}
	}
	err = c.keep.handles.agents.Delete(ctx, cardKey+agent, jetstream.LastRevision(e.Revision()))
	if err != nil && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return c.failed("withdraw agent "+agent, err)
	}
	if err == nil {
		c.forget(agent, e.Revision())
	}

	return nil
}

// forget notes that this machine removed a card; 0: there was none.
func (c *cards) forget(agent string, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, agent)
	if revision > 0 {
		c.gone[agent] = revision
	}
}

// giveBack removes a key if it is still that of an agent.
func (c *cards) giveBack(ctx context.Context, key, agent string) error {
	e, err := c.keep.handles.agents.Get(ctx, key)
	if err == nil && string(e.Value()) == agent {
		err = c.keep.handles.agents.Delete(ctx, key, jetstream.LastRevision(e.Revision()))
	}
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil
	}

	return err
}

// readCards reads who the agents are, for a process that is not a machine of the cluster.
func readCards(ctx context.Context, s *natsStore, notes *slog.Logger) (*cards, error) {
	all := &cards{keep: s, away: func() bool { return false }, until: ctx, notes: notes,
		known: map[string]card{}, gone: map[string]uint64{}}
	return all, all.load(ctx)
}

// load reads all cards.
func (c *cards) load(ctx context.Context) error {
	w, err := c.keep.handles.agents.Watch(ctx, cardKey+">", jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("read the agents of the cluster: %w", err)
	}
	defer w.Stop() // nothing more is needed of it
	err = eachThere(ctx, w, func(e jetstream.KeyValueEntry) {
		if id, now, ok := c.read(e); ok {
			c.known[id] = now
		}
	})
	if err != nil {
		return fmt.Errorf("read the agents of the cluster: %w", err)
	}

	return nil
}

// read reads a card that was written. One that cannot be read, and what is no card, is left alone.
func (c *cards) read(e jetstream.KeyValueEntry) (id string, now card, ok bool) {
	id = strings.TrimPrefix(e.Key(), cardKey)
	if !address.ValidID(id) {
		return "", card{}, false
	}
	if e.Operation() != jetstream.KeyValuePut {
		return id, card{}, true
	}
	if err := json.Unmarshal(e.Value(), &now); err != nil {
		c.notes.Warn("the card of an agent cannot be read", "agent", id, "err", err)
		return "", card{}, false
	}
	now.revision = e.Revision()

	return id, now, true
}

// Agents are all agents that the cluster knows, by id.
func (c *cards) Agents() map[string]Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]Agent, len(c.known))
	for id, one := range maps.All(c.known) {
		all[id] = one.agent(id)
	}

	return all
}

// knows reports whether the cluster knows an agent.
func (c *cards) knows(agent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.known[agent]
	return known
}

// deepest bounds how many agents belong to each other in a row.
const deepest = 100

// Had reports whether this machine had an agent last, or has it: its folder here is the newest. So is that of an agent which the
// cluster does not know.
func (c *cards) Had(agent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, known := c.known[agent]
	return !known || one.Last == "" || one.Last == c.own
}

// machine is the name of the machine that alone works on an agent, as its descriptor says or that of one above it; "": any does.
func (c *cards) machine(agent string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range deepest {
		one, known := c.known[agent]
		if !known || one.Descriptor.Node != "" {
			return one.Descriptor.Node
		}
		agent = one.Descriptor.ParentAgentID
	}

	return ""
}

// anew begins a watch. What it brings may have lower revisions: servers were restored then.
func (c *cards) anew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.gone)
	for id, one := range c.known {
		one.revision = 0
		c.known[id] = one
	}
}

// note takes in a change of the bucket.
func (c *cards) note(e jetstream.KeyValueEntry) {
	id, now, ok := c.read(e)
	if !ok {
		return
	}
	gone := e.Operation() != jetstream.KeyValuePut
	c.mu.Lock()
	if e.Revision() < c.known[id].revision || e.Revision() <= c.gone[id] { // this machine has changed it since
		c.mu.Unlock()
		return
	}
	delete(c.gone, id)
	if c.known[id] = now; gone {
		delete(c.known, id)
	}
	met, parted := c.met, c.parted
	c.mu.Unlock()

	if gone && parted != nil {
		parted(id)
	}
	if !gone && met != nil {
		met(now.agent(id))
	}
}

// listen has met called with all agents that are known and with each change, and parted with
// those that are removed.
func (c *cards) listen(met func(Agent), parted func(id string)) {
	c.mu.Lock()
	c.met, c.parted = met, parted
	c.mu.Unlock()
	for _, a := range c.Agents() {
		met(a)
	}
}

// restore writes what this machine knows into a bucket that was lost.
func (c *cards) restore(ctx context.Context) {
	for id, a := range c.Agents() {
		if ctx.Err() != nil {
			return
		}
		err := c.again(ctx, handleKey+a.Handle, id)
		if err == nil {
			err = c.again(ctx, numberKey+id, a.Handle)
		}
		if key := a.Descriptor.Key(); err == nil && key != "" {
			err = c.again(ctx, ownerKey+sum([]byte(key)), id)
		}
		if err == nil {
			err = c.again(ctx, cardKey+id, string(jsonOf(card{Handle: a.Handle, Descriptor: a.Descriptor, Ended: a.Ended, Last: a.Last})))
		}
		if err != nil {
			c.notes.Info("the card of an agent is not written again yet", "agent", id, "err", err)
		}
	}
}

// again writes a value under a key that the bucket has never had. One that was removed stays so:
// this machine was away, and has not heard of it yet.
func (c *cards) again(ctx context.Context, key, value string) error {
	_, err := c.keep.handles.agents.Update(ctx, key, []byte(value), 0)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil
	}

	return err
}
