package xmpp

import (
	"slices"
	"sync"
)

// A flow is which stanzas either side has (XEP-0198). It outlives its connection: a new one
// that resumes it goes on where the old one broke off.
type flow struct {
	mu   sync.Mutex
	turn int    // which of its connections is the one: what an earlier one writes would not arrive
	id   string // to resume by; "": cannot be resumed
	me   jid    // the full address of the session
	on   bool   // the server counts stanzas

	tally
	wrote     uint32 // stanzas written
	unacked   []*sent
	unheard   []*sent  // the server has them, and their rooms have not repeated them
	delivered []string // keys of messages that the server has, the newest

	talk
}

// A tally is how far what the other side wrote in a flow is read and handled.
type tally struct {
	read uint32          // stanzas read
	done map[uint32]bool // that are handled, after one that is not
	h    uint32          // all up to this one are handled
}

// A talk is what a session has begun with the server and others.
type talk struct {
	state    sync.Mutex
	awaited  map[string]func(*session, element) // by who answers and the id of the question
	queries  map[string]query                   // of archives, by their id
	archives map[string]*archive                // by address
	rooms    map[string]*room                   // by address
	listens  bool                               // we said that we are here
	told     map[string]bool                    // who was told that we cannot read what is encrypted
}

// A sent is a stanza that the server may not have.
type sent struct {
	n    uint32
	key  string // the id of a message that somebody waits for
	raw  []byte
	room bool          // its room repeats it to everybody in it, us too, and only then has it
	done chan struct{} // closed when it has arrived, or was refused
	err  error         // that it was refused
}

// Bounds of what is remembered of a flow.
const (
	maxDelivered = 256
	maxUnacked   = 1000
)

func newFlow(me jid) *flow {
	return &flow{me: me, tally: tally{done: map[uint32]bool{}}, talk: talk{awaited: map[string]func(*session, element){},
		queries: map[string]query{}, archives: map[string]*archive{}, rooms: map[string]*room{}, told: map[string]bool{}}}
}

// count numbers a stanza that was read.
func (f *flow) count() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read++
	return f.read
}

// handled notes that a stanza is done with: durable, or of no use.
func (f *flow) handled(n uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if int32(n-f.h) <= 0 {
		return
	}
	for f.done[n] = true; f.done[f.h+1]; f.h++ {
		delete(f.done, f.h+1)
	}
}

// have is how many stanzas are handled.
func (f *flow) have() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.h
}

// add notes a stanza that is about to be written in a turn; nil: its connection is not that of the flow any more.
func (f *flow) add(turn int, key string, raw []byte, room bool) *sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	if turn != f.turn {
		return nil
	}
	f.wrote++
	s := &sent{n: f.wrote, key: key, raw: raw, room: room, done: make(chan struct{})}
	if len(f.unacked) < maxUnacked {
		f.unacked = append(f.unacked, s)
	}

	return s
}

// acked notes that the server has all stanzas up to h.
func (f *flow) acked(h uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.unacked) > 0 && int32(h-f.unacked[0].n) >= 0 {
		s := f.unacked[0]
		f.unacked = f.unacked[1:]
		if !s.room {
			f.finish(s, nil)
			continue
		}
		f.unheard = append(f.unheard, s)
		f.unheard = f.unheard[max(0, len(f.unheard)-maxUnacked):]
	}
}

// heard notes that a room has repeated a message.
func (f *flow) heard(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.find(key); s != nil && s.room {
		f.finish(s, nil)
	}
}

// forget gives up the wait for a room that repeats a message, so that it can be sent again.
func (f *flow) forget(s *sent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unheard = slices.DeleteFunc(f.unheard, func(other *sent) bool { return other == s })
}

// find looks for a message that is under way. mu is held.
func (f *flow) find(key string) *sent {
	for _, s := range slices.Concat(f.unacked, f.unheard) {
		if s.key == key && key != "" && s.err == nil {
			return s
		}
	}

	return nil
}

// finish ends the wait for a stanza. mu is held.
func (f *flow) finish(s *sent, err error) {
	select {
	case <-s.done:
		return
	default:
	}
	s.err = err
	close(s.done)
	f.unheard = slices.DeleteFunc(f.unheard, func(other *sent) bool { return other == s })
	if s.key != "" && err == nil {
		f.delivered = append(f.delivered, s.key)
		f.delivered = f.delivered[max(0, len(f.delivered)-maxDelivered):]
	}
}

// refuse notes that a message came back. It reports whether somebody waits for it.
func (f *flow) refuse(key string, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.find(key)
	if s == nil {
		f.delivered = slices.DeleteFunc(f.delivered, func(k string) bool { return k == key })
		return false
	}
	f.finish(s, err)

	return true
}

// known looks for a message that was written in this flow: it waits, or has arrived.
func (f *flow) known(key string) (waits *sent, has bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.delivered, key) {
		return nil, true
	}

	return f.find(key), false
}

// resumed takes over after a break: the server has h of ours, and sends again what comes behind the number that we said to
// have, even what was handled since. It returns the turn that begins, and what has to be written again in it.
func (f *flow) resumed(said, h uint32) (turn int, again [][]byte) {
	f.acked(h)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn++
	f.read = said
	for _, s := range f.unacked {
		again = append(again, s.raw)
	}

	return f.turn, again
}
