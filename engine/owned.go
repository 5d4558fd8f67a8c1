package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// What an agent is and may do is known to the machine that owns it. The folder that another one has of it is from when that one
// had it last, or missing: no right may follow from it.

// AtOwner does something where an agent is: here, with the agent kept on this machine until it is done, or there, through the
// machine that owns it. While the agent moves, and where there says *message.Elsewhere, it looks again. Errors: those of here
// and there; disk.ErrAway where the owner is not found in time.
func (s *System) AtOwner(ctx context.Context, id string, here func() error, there func(node string) error) error {
	return s.actors.atOwner(ctx, id, here, there)
}

func (a *actors) atOwner(ctx context.Context, id string, here func() error, there func(node string) error) error {
	end := time.Now().Add(movedFor)
	for pause := movedFirst; ; pause = min(2*pause, movedLast) {
		release, err := a.hold(id)
		if err == nil {
			err = here()
			release()
		} else if at, ok := errors.AsType[*message.Elsewhere](err); ok {
			err = there(at.Node)
		}
		if !hasMoved(err) {
			return err
		}

		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("%w: %w", disk.ErrAway, err)
		}
	}
}

// StateHere is the state.json of an agent that this machine owns, or can, as State has it, for the machine that asks. Errors:
// those of Hold.
func (s *System) StateHere(id string) ([]byte, error) {
	release, err := s.actors.hold(id)
	if err != nil {
		return nil, err
	}
	defer release()
	state, err := s.actors.stateHere(id)
	if err != nil {
		return nil, err
	}

	return record.EncodeState(workspace.OfData(s.root), state)
}

// state is the state of an agent as its owner has it, with what was decided of its rights and not recorded yet. Errors:
// disk.ErrAway if it cannot be known.
func (a *actors) state(ctx context.Context, id string) (state record.State, err error) {
	err = a.atOwner(ctx, id, func() (err error) {
		state, err = a.stateHere(id)
		return err
	}, func(node string) error {
		data, err := a.peers.State(ctx, node, id)
		if err != nil {
			return err
		}
		var found []finding.Finding
		state, found = record.ParseState("state.json", data)
		state.Permissions = state.Permissions.Resolved(workspace.OfData(a.root))

		return finding.Join(found)
	})
	if err != nil {
		return record.State{}, fmt.Errorf("read permissions of agent %s: %w", id, err)
	}

	return state, nil
}

// stateHere is state of an agent that is owned here.
func (p place) stateHere(id string) (record.State, error) {
	state, _, err := record.CurrentState(p.vol, p.folder(id))
	if err != nil {
		return state, err
	}
	if empty, err := p.emptyInbox(id); err == nil && empty {
		return state, nil
	}
	items, err := inbox.ReadAll(p.folder(id))
	for _, it := range items {
		if it.Kind == message.Permission {
			state.Permissions = state.Permissions.After(permission.Decision(it.Decision), it.Tag, it.Text)
		}
	}

	return state, err
}
