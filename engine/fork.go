package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// Fork makes a new agent that goes on from a record of another's history (0: from
// the end of its newest turn), with its rights, model, queue and budget. Children,
// schedules, promises and approvals of single requests stay with the other. It reads
// files alone, so the other may be in the middle of a turn. Errors:
// record.ErrNoRecord.
func (s *System) Fork(_ context.Context, id string, at int64, name string) (event.Agent, error) {
	source, ok := s.index.Get(id)
	if !ok {
		return event.Agent{}, message.ErrUnknownAgent
	}
	if s.vol.Full() {
		return event.Agent{}, disk.ErrFull
	}
	now := time.Now().UTC()
	cut, err := record.CutAt(s.folder(id), id, at, cuid2.Generate(), now)
	if err != nil {
		return event.Agent{}, err
	}
	state, err := s.forkState(id, cut, now)
	if err != nil {
		return event.Agent{}, err
	}
	if name == "" {
		name = "fork of " + source.Handle
	}
	meta, err := s.createFresh(byHand(source.Descriptor, name), state, func(dir string) error {
		return s.fillFork(s.folder(id), dir, cut)
	})
	if err != nil {
		return event.Agent{}, err
	}
	return s.look(meta), nil
}

// Rewindable says whether an agent's conversation has a place: a seq, the name of a
// mark, or "" for its newest turn. A mark that waits to be set counts: orders are
// carried out in the order in which they came. Errors: record.ErrNoRecord.
func (s *System) Rewindable(_ context.Context, id, to string) error {
	if _, ok := s.index.Get(id); !ok {
		return message.ErrUnknownAgent
	}
	err := record.Rewindable(s.folder(id), to)
	if !errors.Is(err, record.ErrNoRecord) {
		return err
	}
	waiting, rerr := inbox.ReadAll(s.folder(id))
	if rerr != nil {
		return rerr
	}
	for _, it := range waiting {
		if it.Kind == message.Mark && it.Text == to {
			return nil
		}
	}
	return fmt.Errorf("nothing was rewound: %w", err)
}

// forkState is the state.json of a fork.
func (s *System) forkState(id string, cut record.Cut, now time.Time) ([]byte, error) {
	of, _, err := record.CurrentState(s.vol, s.folder(id))
	if err != nil {
		return nil, err
	}
	rights := of.Permissions
	// A grant for one exact request is bound to the agent that asked.
	rights.Grants = slices.DeleteFunc(slices.Clone(rights.Grants), func(g permission.Grant) bool { return g.SHA256 != "" })
	return record.EncodeState(filepath.Dir(s.root),
		record.State{Permissions: rights, Provider: of.Provider, Queue: of.Queue, Budget: of.Budget,
			Session: cut.Session, Seq: cut.Last, CreatedAt: disk.StampOf(now), UpdatedAt: disk.StampOf(now), Announced: &rights})
}

func (s *System) fillFork(from, to string, cut record.Cut) error {
	for _, sha := range cut.Blobs {
		text, err := record.ReadBlob(from, sha)
		if err != nil {
			s.log.Warn("a long output is not there any more", "err", err)
			continue
		}
		if _, err := record.PutBlob(s.vol, to, text); err != nil {
			return err
		}
	}
	return s.vol.WriteFile("fork", filepath.Join(to, "history.jsonl"), cut.Content)
}

// byHand is the descriptor of an agent that a person makes of another: one that
// stands by itself.
func byHand(of address.Descriptor, name string) address.Descriptor {
	if of.Type == address.Permanent {
		return address.Descriptor{Type: address.Permanent, ID: cuid2.Generate(), Name: name,
			Description: of.Description, SystemPrompt: of.SystemPrompt, WorkspaceDir: of.WorkspaceDir}
	}
	return address.Descriptor{Type: address.User, Connector: "terminal", UserID: Terminal().UserID, Name: name}
}

// createFresh makes an agent that was not there before: where the next serial number
// is taken by somebody else at this instant, it takes the one after.
func (s *System) createFresh(d address.Descriptor, state []byte, fill func(dir string) error) (address.Meta, error) {
	own := d.Type == address.User && d.ChannelID == ""
	for range 100 {
		if own {
			d.ChannelID = s.index.NextSerial()
		}
		made := false
		meta, err := s.index.CreateWith(d, state, func(dir string) error {
			made = true
			return fill(dir)
		})
		if err != nil {
			return meta, err
		}
		if made {
			s.recent.look(meta.ID)
			s.events.Emit(event.Event{Type: event.AgentCreated, Agent: meta.ID})
			return meta, nil
		}
		if !own {
			return meta, fmt.Errorf("%w: %s %s has its id or address", ErrTaken, meta.Handle, meta.ID)
		}
	}
	return address.Meta{}, fmt.Errorf("%w: no serial number is free", ErrTaken)
}
