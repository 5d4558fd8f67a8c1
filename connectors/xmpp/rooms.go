package xmpp

import (
	"context"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A room is one that we are in, or want to be in.
type room struct {
	address string
	nick    string
	joined  bool
	repeats bool              // what we say there comes back to us under the id that we gave it
	out     bool              // somebody put us out: we do not enter again by ourselves
	people  map[string]string // the accounts of those in it, by nick, as far as the room says
	waits   []chan error
	archive *archive // nil: it has none
}

// rooms is a session in rooms.
type rooms struct{ *session }

// joinTime is how long a room has to let us in, or not.
const joinTime = time.Minute

// join enters a room. It returns when we are in, or cannot be.
func (s rooms) join(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	info, err := s.await(ctx, "get", address, node(nsInfo, "query"))
	archived := err == nil && feature(info, nsMAM)
	s.flow.state.Lock()
	r := s.flow.rooms[address]
	if r == nil {
		r = &room{address: address, nick: s.c.nick, people: map[string]string{}}
		s.flow.rooms[address] = r
	}
	if r.joined {
		s.flow.state.Unlock()
		return nil
	}
	if archived {
		_, known := s.c.marks.place(address)
		r.archive = &archive{address: address, busy: known}
		s.flow.archives[address] = r.archive
	}
	wait := make(chan error, 1)
	r.waits, r.repeats = append(r.waits, wait), err == nil && feature(info, nsStable)
	s.flow.state.Unlock()
	if err := s.enter(r); err != nil {
		return err
	}

	select {
	case err := <-wait:
		return err
	case <-s.done:
		return s.err()
	case <-ctx.Done():
		return fmt.Errorf("wait for the room %s: %w", address, ctx.Err())
	}
}

// missing are the rooms that we are to be in and are not: they could not be reached, or their server
// was stopped, or lost us.
func (s rooms) missing() (all []string) {
	s.flow.state.Lock()
	defer s.flow.state.Unlock()
	for _, address := range s.c.o.Rooms {
		if r := s.flow.rooms[address]; s.flow.listens && (r == nil || !r.joined && !r.out) {
			all = append(all, address)
		}
	}

	return all
}

// enterMissing enters rooms that we are not in, unless that is being done.
func (s rooms) enterMissing(ctx context.Context) {
	if !s.entering.TryLock() {
		return
	}
	defer s.entering.Unlock()
	for _, address := range s.missing() {
		if err := s.join(ctx, address); err != nil {
			s.c.log.Debug("still not in a room", "room", address, "err", err)
		}
	}
}

// checkEvery is after how many pings the rooms are asked whether they still have us.
const checkEvery = 5

// check asks each room whether we are in it (XEP-0410): one whose server was stopped loses us without a word, and
// then only seems to be quiet.
func (s rooms) check() {
	s.flow.state.Lock()
	var in []string
	for _, r := range s.flow.rooms {
		if r.joined {
			in = append(in, r.address+"/"+r.nick)
		}
	}
	s.flow.state.Unlock()

	for _, us := range in {
		_ = s.request("get", us, node(nsPing, "ping"), func(s *session, e element) {
			switch {
			case e.attr("type") != "error":
			case refusedFor(e, "service-unavailable", "feature-not-implemented", "item-not-found"): // said by another client of ours
			case refusedFor(e, passing...): // it may have us
			default:
				rooms{s}.lost(bareOf(us))
			}
		})
	}
}

// lost notes that a room does not have us any more. It reports whether the address is a room's.
func (s rooms) lost(address string) bool {
	s.flow.state.Lock()
	defer s.flow.state.Unlock()
	r := s.flow.rooms[address]
	if r != nil && r.joined {
		r.joined = false
		s.c.log.Warn("a room lost us: the agent does not read it", "room", r.address, "until", r.until())
	}

	return r != nil
}

// repeat reports whether a message is one that its room repeats to us.
func (s rooms) repeat(m element) bool {
	if m.attr("type") != "groupchat" {
		return false
	}
	s.flow.state.Lock()
	defer s.flow.state.Unlock()
	r := s.flow.rooms[m.attr("to")]

	return r != nil && r.repeats
}

// enter asks a room to let us in, without what was said before: that is in its archive.
func (s rooms) enter(r *room) error {
	return s.put(node(nsClient, "presence", "to", r.address+"/"+r.nick).with(
		node(nsMUC, "x").with(node(nsMUC, "history", "maxstanzas", "0"))))
}

// presence deals with who comes and goes.
func (s rooms) presence(e element) {
	from, err := parseJID(e.attr("from"))
	if err != nil {
		return
	}
	s.flow.state.Lock()
	r := s.flow.rooms[from.bare()]
	s.flow.state.Unlock()
	if r != nil {
		s.occupant(r, from.resource, e)
		return
	}
	if e.attr("type") == "subscribe" && contains(s.c.o.Allow, from.bare()) {
		_ = s.put(node(nsClient, "presence", "to", from.bare(), "type", "subscribed"))
		_ = s.put(node(nsClient, "presence", "to", from.bare(), "type", "subscribe"))
	}
}

// occupant deals with somebody in a room, which may be us.
func (s rooms) occupant(r *room, nick string, e element) {
	x, _ := e.kid(nsMUCUser, "x")
	self, made := hasStatus(x, "110"), hasStatus(x, "201")

	s.flow.state.Lock()
	act := func() {}
	switch e.attr("type") {
	case "error":
		no, _ := e.kid(nsClient, "error")
		if no.has(nsErrors, "conflict") && !r.joined && len(r.nick) < maxNick {
			r.nick += "_" // somebody else has our nick
			act = func() { _ = s.enter(r) }
			break
		}
		r.answer(failure(e))
	case "unavailable":
		delete(r.people, nick)
		if self {
			// Banned, put out, no member any more; not: its server is stopped, or took us for gone.
			r.joined, r.out = false, hasStatus(x, "301", "307", "321", "322") && !hasStatus(x, "332", "333")
			s.c.log.Warn("left a room: the agent does not read it", "room", r.address, "until", r.until())
		}
	case "":
		item, _ := x.kid(nsMUCUser, "item")
		delete(r.people, nick)
		if who := bareOf(item.attr("jid")); who != "" {
			r.people[nick] = who
		}
		if self && !r.joined {
			r.joined, r.out, r.nick = true, false, nick
			r.answer(nil)
			act = func() { s.entered(r, made) }
		}
	}
	s.flow.state.Unlock()
	act()
}

// hasStatus reports whether a presence in a room has one of these codes.
func hasStatus(x element, codes ...string) bool {
	return slices.ContainsFunc(x.Kids, func(k element) bool {
		return k.XMLName.Local == "status" && slices.Contains(codes, k.attr("code"))
	})
}

// until is when we are in a room again that we left, for the log.
func (r *room) until() string {
	if r.out {
		return "the next answer there, or a restart"
	}
	return "it lets us in again; tried each minute"
}

// maxNick bounds how long a nick grows while others have it, in bytes.
const maxNick = 60

// answer ends the waits for a room. The lock is held.
func (r *room) answer(err error) {
	for _, w := range r.waits {
		w <- err
	}
	r.waits = nil
}

// entered goes on when we are in a room: one that we have just made is opened with the
// settings of its server, and what was said while we were away is read.
func (s rooms) entered(r *room, made bool) {
	if made {
		_ = s.request("set", r.address, node(nsOwner, "query").with(node(nsForm, "x", "type", "submit")), func(*session, element) {})
	}
	switch a := r.archive; {
	case a == nil:
	case a.busy:
		archives{s.session}.catchUp(a)
	default: // the first time: from now on
		_ = archives{s.session}.newest(context.Background(), r.address, func(s *session, last position, e element) {
			if e.attr("type") != "error" {
				s.c.marks.start(r.address, last)
			}
		})
	}
}

// who is the account of somebody in a room: what the archived message says, or what the room
// says now. "": the room does not tell.
func (s rooms) who(r *room, nick string, m element, archived bool) string {
	if archived {
		return bareOf(m.down(xml.Name{Space: nsMUCUser, Local: "x"}, xml.Name{Space: nsMUCUser, Local: "item"}).attr("jid"))
	}
	s.flow.state.Lock()
	defer s.flow.state.Unlock()
	return r.people[nick]
}

func (s rooms) room(address string) (r *room, nick string) {
	s.flow.state.Lock()
	defer s.flow.state.Unlock()
	if r = s.flow.rooms[address]; r != nil {
		nick = r.nick
	}

	return r, nick
}

// feature reports whether somebody can do something, as they say.
func feature(info element, name string) bool {
	q, _ := info.kid(nsInfo, "query")
	for _, k := range q.Kids {
		if k.XMLName.Local == "feature" && k.attr("var") == name {
			return true
		}
	}

	return false
}

// nickOf is the name in rooms: as set, else what stands before the @.
func (o Options) nickOf(me jid) string {
	if nick := strings.TrimSpace(o.Nick); nick != "" {
		return nick
	}
	return me.local
}
