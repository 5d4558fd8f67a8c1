package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Who looks after an agent is noted in the bucket of owners, where the others find what a machine that ends leaves. The notes may
// name too many, never too few: a machine writes over that of another one only before it claims the agent.

// took notes that this machine looks after an agent, from this revision on.
func (p *presence) took(ctx context.Context, agent string) (revision uint64, err error) {
	return p.store.noteOwner(ctx, agent, owner{Boot: p.boot})
}

// gaveWay notes that another machine looks after an agent, which this one wanted to take: its note is from revision and stands
// in the place of that one's, unless a machine has written one since. 0: it is not known whether there is a note of this one.
func (p *presence) gaveWay(ctx context.Context, agent, boot string, revision uint64) (err error) {
	if revision == 0 {
		if revision, err = p.store.noteOf(ctx, agent, p.boot); err != nil || revision == 0 {
			return err
		}
	}
	_, err = p.store.handles.owners.Update(ctx, agent, jsonOf(owner{Boot: boot}), revision)
	if err != nil && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return fmt.Errorf("note the owner of %s: %w", agent, err)
	}

	return nil
}

// noteOwner notes who looks after an agent, whatever was noted before, and returns the revision of the note.
func (s *natsStore) noteOwner(ctx context.Context, agent string, o owner) (revision uint64, err error) {
	if revision, err = s.handles.owners.Put(ctx, agent, jsonOf(o)); err != nil {
		return 0, fmt.Errorf("note the owner of %s: %w", agent, err)
	}

	return revision, nil
}

// noteOf is the revision of the note that a machine looks after an agent; 0: the note is of another machine, or missing.
func (s *natsStore) noteOf(ctx context.Context, agent, boot string) (revision uint64, err error) {
	e, err := s.handles.owners.Get(ctx, agent)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read who owns %s: %w", agent, err)
	}
	var o owner
	if json.Unmarshal(e.Value(), &o) != nil || o.Boot != boot {
		return 0, nil
	}

	return e.Revision(), nil
}

// A machine whose claim of an agent failed may be noted as the one that looks after it, and then no other one takes the agent
// over. It claims the agent again, until it has it or knows who has.

// doubt notes whether this machine may be noted for an agent that it does not have.
func (u *units) doubt(agent string, may bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if may {
		u.doubts[agent] = true
	} else {
		delete(u.doubts, agent)
	}
}

func (u *units) inDoubt(agent string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.doubts[agent]
}

func (u *units) allInDoubt() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.doubts))
}

// gaveUp notes that nobody looks after an agent: it sleeps, or is left with work. The note of a machine that took it since stays:
// without it the others would not take the agent over from that one.
func (p *presence) gaveUp(ctx context.Context, agent string, open bool) error {
	ctx, cancel := context.WithTimeout(ctx, p.lease/2)
	defer cancel()
	for {
		switch err := p.store.withdrawNote(ctx, agent, p.boot, open); {
		case err == nil:
			return nil
		case !errors.Is(err, jetstream.ErrKeyRevisionMismatch) && !errors.Is(err, jetstream.ErrKeyExists):
			return fmt.Errorf("note that nobody owns %s: %w", agent, err)
		}
	}
}

// withdrawNote is gaveUp once: jetstream.ErrKeyRevisionMismatch, or ErrKeyExists, where a note was written in between.
func (s *natsStore) withdrawNote(ctx context.Context, agent, boot string, open bool) error {
	kv, left := s.handles.owners, jsonOf(owner{Boot: boot, Left: true})
	e, err := kv.Get(ctx, agent)
	if errors.Is(err, jetstream.ErrKeyNotFound) { // servers were wiped
		if open {
			_, err = kv.Create(ctx, agent, left)
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	var o owner
	switch err := json.Unmarshal(e.Value(), &o); {
	case err == nil && o.Boot != boot:
		return nil
	case open:
		_, err = kv.Update(ctx, agent, left, e.Revision())
		return err
	}

	return kv.Delete(ctx, agent, jetstream.LastRevision(e.Revision()))
}
