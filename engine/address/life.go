package address

import "strings"

// life is what is known of an agent's state.json: whether it says that the agent has
// ended. An agent that nobody looked at is not in the table.
type life byte

const (
	unknown life = iota
	lives
	hasEnded
)

// Ended reports whether an agent has ended, if SetEnded said so before.
func (f *families) Ended(id string) (ended, known bool) {
	f.known.mu.RLock()
	defer f.known.mu.RUnlock()
	return f.known.ended[id] == hasEnded, f.known.ended[id] != unknown
}

// SetEnded keeps whether an agent has ended, as its state.json says. Those that have are
// found by their id, name and parent only.
func (f *families) SetEnded(id string, ended bool) {
	now := lives
	if ended {
		now = hasEnded
	}
	f.known.mu.Lock()
	defer f.known.mu.Unlock()
	f.known.setLife(id, now)
}

// SawEnded is SetEnded for who only reads: an agent that ends meanwhile stays ended.
func (f *families) SawEnded(id string, ended bool) {
	f.known.mu.Lock()
	defer f.known.mu.Unlock()
	if ended {
		f.known.setLife(id, hasEnded)
	} else if f.known.ended[id] == unknown {
		f.known.setLife(id, lives)
	}
}

// setLife keeps what is known of an agent. l.mu is held.
func (l *listing) setLife(id string, now life) {
	m, ok := l.meta(id)
	if !ok || l.ended[id] == now {
		return
	}
	l.unlist(m)
	l.ended[id] = now
	l.list(m)
}

// list adds the facets of an agent, unlist removes them. l.mu is held.
func (l *listing) list(m Meta) {
	for _, f := range l.facetsOf(m) {
		l.facets.Set(f)
	}
}

func (l *listing) unlist(m Meta) {
	for _, f := range l.facetsOf(m) {
		l.facets.Delete(f)
	}
}

// Maker is the agent that started or made this one; "" for none.
func (m Meta) Maker() string {
	if m.Descriptor.ParentAgentID != "" {
		return m.Descriptor.ParentAgentID
	}
	return m.Descriptor.CreatedBy
}

// familyEnd is between the family and the handle of a facet, so that no family's begin
// is another family.
const familyEnd = "\x00\x00"

// House is the family of the permanent agents that no agent of a user made.
const House = "house"

// FamilyOf names the family of the agent at the head of it: those of one user are one.
func FamilyOf(root Meta) string {
	switch d := root.Descriptor; {
	case d.Type == Permanent:
		return House
	case d.Type == User && d.UserID != "":
		return strings.Join([]string{"person", d.Connector, d.UserID}, "\x00")
	}

	return "agent\x00" + root.ID
}

// lost is the family of an agent whose maker, or the maker of that one, is not there.
func lost(maker string) string { return "lost\x00" + maker }

// deepest ends a walk from maker to maker that a hand edit made a circle of.
const deepest = 64

// family is the family of an agent. It is found once and kept: who made whom does not
// change, but makers come and go. l.mu is held.
func (l *listing) family(m Meta) string {
	if known, ok := l.families[m.ID]; ok {
		return known
	}
	family := FamilyOf(m)
	for up, n := m.Maker(), 0; up != "" && n < deepest; n++ {
		above, ok := l.meta(up)
		if !ok {
			family = lost(up)
			break
		}
		family, up = FamilyOf(above), above.Maker()
	}

	l.families[m.ID] = family
	return family
}

// found gives the permanent agents their family whose maker has come. l.mu is held.
func (l *listing) found(maker string) {
	key := lost(maker) + familyEnd
	for _, m := range l.having(byFamily, key, func(v string) bool { return strings.HasPrefix(v, key) }) {
		l.unlist(m)
		delete(l.families, m.ID)
		l.list(m)
	}
}
