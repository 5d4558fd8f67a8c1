package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"daycare/engine/address"
	"daycare/engine/cuid"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// ErrNotHeld: an agent gives only what it holds itself.
var ErrNotHeld = errors.New("you do not have that permission yourself; ask for it with request_permission")

// Overseer is the agent of the user who answers for an agent: its nearest
// ancestor that speaks with one, else the agent that an owner wrote to last. Someone
// else who wrote last must not answer for agents of the workspace itself.
func (f *Family) Overseer(id string) (address.Meta, bool) {
	for range maxDepth {
		meta, ok := f.place.index.Get(id)
		if !ok {
			break
		}
		if meta.Descriptor.Type == address.User {
			return meta, true
		}
		id = meta.Maker()
	}

	id, ok := f.recent.newest(true)
	if !ok {
		return address.Meta{}, false
	}

	return f.place.index.Get(id)
}

// Note tells an agent something that asks for no turn. key is the same each time
// that the same is reported.
func (f *Family) Note(ctx context.Context, to, from, key, text string) error {
	_, err := f.mailroom.deliverSystem(ctx, message.Incoming{Agent: to, Kind: message.System, Origin: from, Silent: true,
		Dedupe: key, Text: text})
	return err
}

// grants are the permissions that a user or another agent grants or revokes.
type grants struct {
	place     place
	relations *relations
	actors    *actors
	mailroom  *mailroom
}

// Share gives an agent, which from started, a right that from holds. It is an item
// in that agent's inbox, because only its own goroutine writes its rights.
func (g *grants) Share(ctx context.Context, from, ref, tag, key string) error {
	to, err := g.place.index.Resolve(ref)
	if err != nil {
		return err
	}
	if !g.relations.descends(to, from) {
		return fmt.Errorf("%w: permissions can be shared only with agents that you started", ErrStranger)
	}

	r, err := permission.General(tag, "")
	if err != nil {
		return err
	}
	access, _ := permission.Parse(r.Tag) // as General did

	held, err := g.Grants(ctx, from)
	if err != nil {
		return err
	}
	if !held.Allows(access) {
		return fmt.Errorf("%w: %s", ErrNotHeld, r.Tag)
	}

	_, err = g.mailroom.Deliver(ctx, message.Incoming{Agent: to, Kind: message.Permission, Dedupe: key, Text: r.Detail.String(),
		Token: cuid.New(), Decision: string(permission.Always), By: "agent " + from, Tag: r.Tag, SHA256: r.SHA256(to)})
	return err
}

// State is the state of an agent as its owner has it, with what was decided of its rights and not recorded yet. Errors:
// message.ErrUnknownAgent, disk.ErrAway if the owner cannot be asked.
func (g *grants) State(ctx context.Context, id string) (record.State, error) {
	if _, ok := g.place.index.Get(id); !ok {
		return record.State{}, message.ErrUnknownAgent
	}
	return g.actors.state(ctx, id)
}

// Grants is what users gave an agent, and its rights. Errors: those of State.
func (g *grants) Grants(ctx context.Context, id string) (permission.Set, error) {
	state, err := g.State(ctx, id)
	return state.Permissions, err
}

// Revoke takes a right away from an agent and from those that it started or made, which
// may at most what it may. It applies from the next call of a tool; less is called with
// what each of them has left. Errors: permission.ErrTag; fault.NotGranted if none of them had it.
func (g *grants) Revoke(ctx context.Context, id, tag, by string, less func(agent string, left permission.Set)) error {
	access, err := permission.Parse(tag)
	if err != nil {
		return err
	}

	var left []error
	// What was decided and is not stored yet can be a grant of it.
	had := slices.ContainsFunc(g.actors.waiting(id), func(h inbox.Head) bool { return h.Kind == message.Permission })
	for _, heir := range append([]string{id}, g.relations.heirs(id)...) {
		if heir != id && g.actors.ended(heir) {
			continue // it can do nothing any more
		}
		has, err := g.revoke(ctx, heir, access.Tag(), by, heir == id, less)
		had = had || has
		switch {
		case err == nil:
		case heir == id:
			return err
		case errors.Is(err, message.ErrUnknownAgent): // it ended meanwhile, and what it had with it
			g.place.log.Warn("cannot revoke a permission", "agent", heir, "permission", access.Tag(), "err", err)
		default: // it still has it; those that come after it do not
			left = append(left, fmt.Errorf("%s is not revoked from %s, which it started or made: %w", access.Tag(),
				g.place.index.Handle(heir), err))
		}
	}
	if !had && len(left) == 0 {
		return fmt.Errorf("%w: %s", fault.NotGranted, access.Tag())
	}

	return errors.Join(left...)
}

// revoke takes a right away from one agent, and reports whether it had it. Unless it is always said, an agent that does not
// have it is left alone.
func (g *grants) revoke(ctx context.Context, id, tag, by string, always bool, less func(string, permission.Set)) (had bool, err error) {
	set, err := g.Grants(ctx, id)
	if err != nil {
		return false, err
	}
	left, err := set.Revoke(tag)
	if err != nil {
		return false, err
	}
	had = len(permission.Diff(set, left)) > 0 || len(left.Grants) < len(set.Grants)
	if !had && !always {
		return false, nil
	}
	if err := g.change(ctx, message.Incoming{Agent: id, Token: cuid.New(), Decision: string(permission.Revoked), By: by,
		Tag: tag}); err != nil {
		return had, err
	}
	less(id, left)

	return had, nil
}

// heirs are the agents that an agent started or made, and those that these did.
func (k *relations) heirs(id string) (list []string) {
	seen := map[string]bool{id: true} // a hand edit can make a circle
	for next := []string{id}; len(next) > 0; next = next[1:] {
		for _, heir := range k.place.index.Made(next[0]) {
			if !seen[heir.ID] {
				seen[heir.ID] = true
				list, next = append(list, heir.ID), append(next, heir.ID)
			}
		}
	}

	return list
}

// Give grants a right to an agent, without a request of its own: someone said so in a
// word. A right without the token of a request is never asked for again, whatever a turn
// has read. Errors: permission.ErrTag.
func (g *grants) Give(ctx context.Context, id, tag, by string, scripts []permission.Script) error {
	r, err := permission.General(tag, "")
	if err != nil {
		return err
	}
	return g.change(ctx, message.Incoming{Agent: id, Silent: true, Decision: string(permission.Always), By: by,
		Tag: r.Tag, SHA256: r.SHA256(id), Scripts: scripts})
}

// Profile gives an agent another profile; "" is that of the settings. folder is its working folder
// from then on; "": it stays.
func (g *grants) Profile(ctx context.Context, id string, p permission.Profile, folder, by string) error {
	return g.change(ctx, message.Incoming{Agent: id, Token: cuid.New(), Decision: string(permission.Profiled), By: by,
		Tag: string(p), Text: folder})
}

// changeWait is how long a change of rights is waited for: an idle agent records it at
// once, one at work at the end of its turn at the latest.
const changeWait = 3 * time.Second

// change puts a change of rights into an agent's inbox.
func (g *grants) change(ctx context.Context, in message.Incoming) error {
	in.Kind = message.Permission
	receipt, err := g.mailroom.Deliver(ctx, in)
	if err != nil {
		return err
	}

	wait, cancel := context.WithTimeout(ctx, changeWait)
	defer cancel()
	if _, err := g.mailroom.Await(wait, in.Agent, receipt.Item); err != nil && wait.Err() == nil {
		return err
	}

	return nil
}
