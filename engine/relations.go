package engine

import (
	"slices"

	"daycare/engine/address"
)

// relations answers which agents belong to whom, and who may see whom.
type relations struct {
	place  place
	recent *recent
}

// knows reports whether an agent may see and reach another. The agents of the
// machine's own user and those of the workspace itself know all; those of other
// users, who come in through a chat, know their own family and the colleagues of the
// workspace. What an agent created (a task, a colleague) belongs to its family.
func (k *relations) knows(from, to string) bool {
	return k.Reads(from, to) || k.Root(to).Descriptor.Type == address.Permanent
}

// Reads reports whether an agent may read the conversation of another: what users say
// to a colleague of the workspace is not for everyone who can write to it.
func (k *relations) Reads(from, to string) bool {
	return k.OfHouse(from) || oneUser(k.Root(from), k.Root(to))
}

// oneUser reports whether two heads of families are one, or speak with one user.
func oneUser(one, other address.Meta) bool {
	a, b := one.Descriptor, other.Descriptor
	return one.ID == other.ID || a.Type == address.User && b.Type == address.User && a.Connector == b.Connector &&
		a.UserID == b.UserID && a.UserID != ""
}

// OfHouse reports whether an agent works for the machine's own user or for no particular user, as tasks and
// colleagues do that no agent of a chat created.
func (k *relations) OfHouse(id string) bool {
	d := k.Root(id).Descriptor
	return d.Type != address.User || Here(d.Connector)
}

// Related reports whether two agents work for one user.
func (k *relations) Related(asker, ref string) bool {
	id, err := k.place.index.Resolve(ref)
	if err != nil {
		return false
	}

	return oneUser(k.Root(asker), k.Root(id))
}

// Stranger is the id of the agent that ref names, if it works for someone who is neither
// the asker's person nor an owner.
func (k *relations) Stranger(asker, ref string) (id string, ok bool) {
	id, err := k.place.index.Resolve(ref)
	if err != nil {
		return "", false
	}
	d := k.Root(id).Descriptor
	owner := d.Type != address.User || Here(d.Connector) || k.recent.owns != nil && k.recent.owns(d)

	return id, !owner && !k.Related(asker, id)
}

// Root is the agent at the head of an agent's family: the one that speaks with a user,
// or the agent of the workspace that created the others. What was created by an agent that is gone
// still is of that family, and of nobody's that is left.
func (k *relations) Root(id string) address.Meta {
	for range maxDepth {
		meta, ok := k.place.index.Get(id)
		if !ok {
			break
		}
		by := meta.Maker()
		if by == "" {
			return meta
		}
		id = by
	}

	return address.Meta{ID: id, Descriptor: address.Descriptor{Type: address.User}}
}

// Line is the ancestors of an agent, the oldest last.
func (k *relations) Line(id string) (line []string) {
	for range maxDepth {
		meta, ok := k.place.index.Get(id)
		if !ok || meta.Descriptor.ParentAgentID == "" {
			break
		}
		id = meta.Descriptor.ParentAgentID
		line = append(line, id)
	}

	return line
}

func (k *relations) descends(id, from string) bool { return slices.Contains(k.Line(id), from) }

// maxDepth ends a walk up a family that a hand edit made a circle of.
const maxDepth = 64
