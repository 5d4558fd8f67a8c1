package xmpp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"daycare/engine/message"
)

const (
	pingEvery = 60 * time.Second  // how often the server is asked whether it is there
	silence   = 150 * time.Second // after which a connection counts as lost
	byeTime   = 2 * time.Second
	askTime   = 30 * time.Second
)

// A session is one connection, logged in.
type session struct {
	c      *Connector
	stream *stream
	flow   *flow
	turn   int    // of the flow
	how    string // how it logged in, for users
	again  bool   // it resumed the flow of the one before

	order    sync.Mutex // held while a stanza is numbered and written, and while what we have is counted and acknowledged
	entering sync.Mutex // held while rooms are entered that we are not in

	ending
}

// ending is how a session is ended, and how its end is known.
type ending struct {
	done    chan struct{}
	wg      sync.WaitGroup
	stopped context.Context
	stop    context.CancelCauseFunc
}

// connect calls the server and logs in; the flow of the connection before is resumed if
// that can be.
func (c *Connector) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	st, features, how, err := c.o.dial(ctx, c.me, c.password)
	if err != nil {
		return nil, err
	}
	s := &session{c: c, stream: st, how: how, ending: ending{done: make(chan struct{})}}
	unwatch := context.AfterFunc(ctx, func() { _ = st.conn.SetDeadline(time.Now()) })
	err = s.start(features)
	if !unwatch() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		st.conn.Close()
		return nil, fmt.Errorf("log in at the server of %s: %w", c.me.domain, err)
	}

	s.stopped, s.stop = context.WithCancelCause(context.Background())
	s.wg.Go(s.read)
	s.wg.Go(s.ping)

	return s, nil
}

// start resumes the flow of before, or begins one.
func (s *session) start(features element) error {
	old := s.c.flow
	manages := features.has(nsSM, "sm")
	if old != nil && old.id != "" && manages {
		have := old.have()
		end, err := s.stream.ask(node(nsSM, "resume", "previd", old.id, "h", strconv.FormatUint(uint64(have), 10)))
		if err != nil {
			return err
		}
		if end.is(nsSM, "resumed") {
			h, err := strconv.ParseUint(end.attr("h"), 10, 32)
			if err != nil {
				return errors.New("the server resumes a session without saying what it has")
			}
			s.flow, s.again = old, true
			var unsure [][]byte
			s.turn, unsure = old.resumed(have, uint32(h))
			for _, raw := range unsure {
				if err := s.stream.send(raw); err != nil {
					return err
				}
			}
			return nil
		}
	}

	s.c.flow = nil
	bound, err := s.stream.ask(node(nsClient, "iq", "type", "set", "id", "bind").with(
		node(nsBind, "bind").with(node(nsBind, "resource").saying(s.c.resource))))
	if err != nil {
		return err
	}
	b, _ := bound.kid(nsBind, "bind")
	full, _ := b.kid(nsBind, "jid")
	me, err := parseJID(full.Text)
	if err != nil || bound.attr("type") != "result" {
		return fmt.Errorf("the server gives us no address: %s", condition(bound))
	}

	s.flow = newFlow(me)
	if manages {
		enabled, err := s.stream.ask(node(nsSM, "enable", "resume", "true"))
		if err != nil {
			return err
		}
		s.flow.on = enabled.is(nsSM, "enabled")
		if r := enabled.attr("resume"); r == "true" || r == "1" {
			s.flow.id = enabled.attr("id")
		}
	}
	s.c.flow = s.flow

	return nil
}

// read reads until the connection ends.
func (s *session) read() {
	defer close(s.done)
	for {
		_ = s.stream.conn.SetReadDeadline(time.Now().Add(silence))
		e, err := s.stream.next()
		if err != nil {
			s.stop(s.explain(err))
			return
		}

		switch {
		case e.is(nsSM, "r"):
			s.ack()
		case e.is(nsSM, "a"):
			if h, err := strconv.ParseUint(e.attr("h"), 10, 32); err == nil {
				s.flow.acked(uint32(h))
			}
		case e.XMLName.Space == nsClient:
			if !s.stanza(s.flow.count(), e) {
				return
			}
		}
	}
}

// explain says what to do about the end of a stream.
func (s *session) explain(err error) error {
	var f *fatal
	if errors.As(err, &f) && f.Condition == "conflict" {
		return fmt.Errorf("%w\nanother program has logged in as %s: stop it, or give daycare an account of its own", err, s.flow.me)
	}

	return fmt.Errorf("read from the server of %s: %w", s.flow.me.domain, err)
}

// stanza deals with one stanza; false: the session ends.
func (s *session) stanza(n uint32, e element) bool {
	switch e.XMLName.Local {
	case "message":
		return intake{s}.message(n, e)
	case "presence":
		rooms{s}.presence(e)
	case "iq":
		s.query(e)
	}
	s.c.marks.free(mark{flow: s.flow, n: n})

	return true
}

// query deals with an answer to us, or a question.
func (s *session) query(e element) {
	switch e.attr("type") {
	case "result", "error":
		s.flow.state.Lock()
		id := s.ours(e.attr("from")) + " " + e.attr("id")
		answer := s.flow.awaited[id]
		delete(s.flow.awaited, id)
		s.flow.state.Unlock()
		if answer != nil {
			answer(s, e)
		}
	case "get", "set":
		end := node(nsClient, "iq", "type", "result", "to", e.attr("from"), "id", e.attr("id"))
		switch {
		case e.has(nsPing, "ping"):
		case e.has(nsInfo, "query"):
			info := node(nsInfo, "query").with(node(nsInfo, "identity", "category", "client", "type", "bot", "name", "daycare"))
			for _, f := range []string{nsInfo, nsPing, nsReceipt, nsStates, nsCorrect, nsRetract, nsReply, nsReact, nsOOB} {
				info = info.with(node(nsInfo, "feature", "var", f))
			}
			end = end.with(info)
		default:
			end = node(nsClient, "iq", "type", "error", "to", e.attr("from"), "id", e.attr("id")).with(
				node(nsClient, "error", "type", "cancel").with(node(nsErrors, "service-unavailable")))
		}
		_ = s.put(end) // if it is lost the connection is, too
	}
}

// request asks a question. answer is called by the reader, in the order of the stream, and
// must not wait; only the one that was asked can answer.
func (s *session) request(kind, to string, what element, answer func(*session, element)) error {
	id := rand.Text()
	s.flow.state.Lock()
	s.flow.awaited[s.ours(to)+" "+id] = answer
	s.flow.state.Unlock()
	return s.put(node(nsClient, "iq", "type", kind, "to", to, "id", id).with(what))
}

// ours is who is asked or answers: our account, where nobody is named.
func (s *session) ours(address string) string {
	if address == "" {
		return s.flow.me.bare()
	}
	return address
}

// await asks a question and waits for its answer; an answer that is an error is one.
func (s *session) await(ctx context.Context, kind, to string, what element) (element, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers := make(chan element, 1)
	if err := s.request(kind, to, what, func(_ *session, e element) { answers <- e }); err != nil {
		return element{}, err
	}

	select {
	case e := <-answers:
		if e.attr("type") == "error" {
			return e, failure(e)
		}
		return e, nil
	case <-s.done:
		return element{}, s.err()
	case <-ctx.Done():
		return element{}, fmt.Errorf("wait for the server: %w", ctx.Err())
	}
}

// echoed deals with a message of our own that somebody waits for.
func (s *session) echoed(e element) bool {
	s.flow.state.Lock()
	heard := s.flow.awaited[echoOf(e.attr("id"))]
	delete(s.flow.awaited, echoOf(e.attr("id")))
	s.flow.state.Unlock()
	if heard != nil {
		heard(s, e)
	}

	return heard != nil
}

// echoOf is what is awaited of a message to ourselves.
func echoOf(id string) string { return "echo " + id }

// put sends a stanza that nobody waits for.
func (s *session) put(e element) error {
	_, err := s.write("", e)
	return err
}

// write sends a stanza. Its number and its place in the stream go together.
func (s *session) write(key string, e element) (*sent, error) {
	s.order.Lock()
	defer s.order.Unlock()
	raw := e.bytes()
	n := s.flow.add(s.turn, key, raw, rooms{s}.repeat(e))
	if n == nil {
		return nil, s.err()
	}
	if err := s.stream.send(raw); err != nil {
		return n, fmt.Errorf("write to the server: %w", err)
	}

	return n, nil
}

// ack acknowledges what is done with, never less than before.
func (s *session) ack() {
	s.order.Lock()
	defer s.order.Unlock()
	if s.flow.on {
		_ = s.stream.put(node(nsSM, "a", "h", strconv.FormatUint(uint64(s.flow.have()), 10)))
	}
}

// say sends a message and waits until the server has it, or the room that it is for.
func (s *session) say(ctx context.Context, e element) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	key := e.attr("id")
	w, has := s.flow.known(key)
	if has {
		return nil
	}
	if w == nil {
		var err error
		if w, err = s.write(key, e); err != nil {
			return err
		}
	}
	if s.flow.on {
		if err := s.stream.put(node(nsSM, "r")); err != nil {
			return err
		}
	} else { // a server answers a ping after all that came before it
		err := s.request("get", s.flow.me.domain, node(nsPing, "ping"), func(s *session, _ element) { s.flow.acked(w.n) })
		if err != nil {
			return err
		}
	}

	select {
	case <-w.done:
		return w.err
	case <-s.done:
		return s.err()
	case <-ctx.Done():
		s.flow.forget(w)
		return fmt.Errorf("wait for the server: %w", ctx.Err())
	}
}

// ping keeps the connection alive, and notices when it is not, and has us in the rooms.
func (s *session) ping() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
			if s.flow.on {
				_ = s.stream.put(node(nsSM, "r"))
			} else {
				_ = s.request("get", s.flow.me.domain, node(nsPing, "ping"), func(*session, element) {})
			}
			if n%checkEvery == 0 {
				rooms{s}.check()
			}
			s.wg.Go(func() { rooms{s}.enterMissing(s.stopped) })
		case <-s.stopped.Done():
			return
		}
	}
}

func (s *session) ended() bool { return s.stopped.Err() != nil }

// err is why the connection ended.
func (s *session) err() error { return context.Cause(s.stopped) }

// close ends the session for good: the server need not keep it. It waits until all has ended.
func (s *session) close() {
	if !s.ended() {
		s.ack()
		_ = s.stream.send([]byte("</stream:stream>"))
		s.stop(errors.New("connection closed"))
		_ = s.stream.conn.SetReadDeadline(time.Now().Add(byeTime)) // the server closes, too
		select {
		case <-s.done:
		case <-time.After(byeTime):
		}
		s.c.flow = nil
	}

	s.stream.conn.Close()
	s.wg.Wait()
}

// condition is what an error says, in the words of the protocol.
func condition(e element) string {
	no, ok := e.kid(nsClient, "error")
	if !ok {
		return "no answer to the question"
	}
	word, text := no.attr("type"), ""
	for _, k := range no.Kids {
		if k.XMLName.Space != nsErrors {
			continue
		}
		if k.XMLName.Local == "text" {
			text = ": " + k.Text
		} else {
			word = k.XMLName.Local
		}
	}

	return word + text
}

// passing are the conditions that may be over soon, though servers call them final.
var passing = []string{"remote-server-not-found", "remote-server-timeout", "internal-server-error"}

// refusedFor reports whether a stanza came back for one of these conditions.
func refusedFor(e element, conditions ...string) bool {
	no, _ := e.kid(nsClient, "error")
	return slices.ContainsFunc(no.Kids, func(k element) bool {
		return k.XMLName.Space == nsErrors && slices.Contains(conditions, k.XMLName.Local)
	})
}

// failure is an error that a stanza came back with, and whether to try again.
func failure(e element) error {
	no, _ := e.kid(nsClient, "error")
	final := slices.Contains([]string{"cancel", "modify", "auth"}, no.attr("type")) && !refusedFor(e, passing...)
	return &message.NotSent{Final: final, Err: fmt.Errorf("the server of %s refuses it: %s", bareOf(e.attr("from")), condition(e))}
}
