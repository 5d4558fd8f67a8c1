package engine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/message"
)

const (
	sendFirst   = time.Second      // pause after the first failed try
	sendLast    = time.Minute      // longest pause
	sendGiveUp  = 24 * time.Hour   // a promise that is older is given up
	sendAtLeast = 10 * time.Minute // but was tried for this long: a clock that is set right makes all old at once
	sendLimit   = 2 * time.Minute
)

// A chat is what has a sender. What waits for the end of quiet hours has one of its own, so that
// it holds up no answer.
type chat struct {
	connector, channel string
	later              bool
}

// senders deliver promised answers: one sender a chat, so that the order of a chat
// is kept over all agents and a chat that is down delays no other. A sender exists
// only while its chat has something to send.
//
// Promises are known by the agent and the id of the answer: an agent that failed, or
// slept, and promises again what it finds in its history changes nothing about what
// is on its way.
type senders struct {
	connector func(id string) (Connector, bool)
	outlet    Outlet
	events    *event.Stream
	log       *slog.Logger
	paid      func(agent string) // nothing of an agent is on its way any more

	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	waits    map[chat][]*promise
	accounts map[string]*account // by agent
	idle     *sync.Cond
}

// An account is what one agent has promised, and the results that it has not recorded.
type account struct {
	outs    map[string]*promise // by the id of the answer
	results *message.Results
	away    bool // the agent sleeps: the account ends with its last promise
}

// A promise is an answer on its way. It ends with its context.
type promise struct {
	message.Promise
	chat   chat
	ctx    context.Context
	cancel context.CancelFunc
}

func newSenders(connector func(id string) (Connector, bool), paid func(agent string), outlet Outlet, events *event.Stream,
	log *slog.Logger) *senders {
	s := &senders{connector: connector, paid: paid, outlet: outlet, events: events, log: log,
		waits: map[chat][]*promise{}, accounts: map[string]*account{}}
	s.idle = sync.NewCond(&s.mu)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// account is the account of an agent. The lock is held.
func (s *senders) account(agent string) *account {
	a := s.accounts[agent]
	if a == nil {
		a = &account{outs: map[string]*promise{}, results: message.NewResults()}
		s.accounts[agent] = a
	}

	return a
}

// results is where the results of an agent's promises are kept, until left forgets it.
func (s *senders) results(agent string) *message.Results {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.account(agent)
	a.away = false
	return a.results
}

// left is called when an agent goes to sleep. It reports whether there are results
// that the agent has not recorded.
func (s *senders) left(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[agent]
	switch {
	case a == nil:
	case a.results.Len() > 0:
		return true
	case len(a.outs) == 0:
		delete(s.accounts, agent)
	default:
		a.away = true
	}

	return false
}

// end closes the account of an agent that has ended, and takes the results that it has
// not recorded.
func (s *senders) end(agent string) []message.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[agent]
	if a == nil {
		return nil
	}
	delete(s.accounts, agent)

	return a.results.Take()
}

// unrecorded takes the results that no agent has recorded, by agent.
func (s *senders) unrecorded() map[string][]message.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[string][]message.Result{}
	for id, a := range s.accounts {
		if results := a.results.Take(); len(results) > 0 {
			list[id] = results
		}
	}

	return list
}

// send queues a promise behind what its chat still has to send.
func (s *senders) send(p message.Promise) {
	c := chat{p.To.Connector, p.To.ChannelID, s.disturbs(p)}
	if crash.Bug("onelane") {
		c = chat{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.account(p.Agent)
	if known := a.outs[p.ID]; known != nil {
		known.Report = p.Report
		return
	}
	if a.results.Has(p.ID) {
		return // over, and the agent is about to read that
	}
	if s.ctx.Err() != nil {
		p.Report(message.Result{Out: p.ID, Kept: true})
		return
	}

	made := &promise{Promise: p, chat: c}
	made.ctx, made.cancel = context.WithCancel(s.ctx)
	a.outs[p.ID] = made
	_, running := s.waits[c]
	s.waits[c] = append(s.waits[c], made)
	if crash.Bug("sendtwice") {
		s.waits[c] = append(s.waits[c], &promise{Promise: p, ctx: s.ctx, cancel: func() {}})
	}
	if waits := s.waits[c]; crash.Bug("newestanswer") && len(waits) > 2 {
		waits[1], waits[len(waits)-1] = waits[len(waits)-1], waits[1]
	}
	if !running {
		go s.work(c)
	}
}

// drop takes back what an agent has promised and is not delivered yet. A try in progress
// is cut short, and its result is not reported any more.
func (s *senders) drop(agent string) {
	s.mu.Lock()
	a := s.accounts[agent]
	if a == nil {
		s.mu.Unlock()
		return
	}

	dropped := slices.Collect(maps.Values(a.outs))
	clear(a.outs) // from here on the sender reports nothing of them
	for _, p := range dropped {
		p.cancel()
		c := p.chat
		if i := slices.Index(s.waits[c], p); i > 0 { // the first one is being sent
			s.waits[c] = slices.Delete(s.waits[c], i, i+1)
		}
	}

	s.mu.Unlock()
	for _, p := range dropped {
		p.Report(message.Result{Out: p.ID, Kept: true})
	}
}

// report passes a result on, unless the promise was forgotten meanwhile.
func (s *senders) report(p *promise, f message.Result) {
	s.mu.Lock()
	report, known := p.Report, s.owes(p)
	s.mu.Unlock()
	if known {
		report(f)
	}
}

// forget ends a promise: nothing more is sent or reported of it.
func (s *senders) forget(p *promise) {
	p.cancel()
	s.mu.Lock()
	last := false
	if a := s.accounts[p.Agent]; s.owes(p) {
		delete(a.outs, p.ID)
		last = len(a.outs) == 0
		if a.away && last && a.results.Len() == 0 { // the agent recorded the result and sleeps again
			delete(s.accounts, p.Agent)
		}
	}
	s.mu.Unlock()

	if last {
		s.paid(p.Agent)
	}
}

// sending reports whether something of an agent is on its way.
func (s *senders) sending(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[agent]
	return a != nil && len(a.outs) > 0 && s.ctx.Err() == nil
}

// owes reports whether a promise stands. The lock is held.
func (s *senders) owes(p *promise) bool {
	a := s.accounts[p.Agent]
	return a != nil && a.outs[p.ID] == p
}

func (s *senders) work(c chat) {
	for {
		s.mu.Lock()
		if len(s.waits[c]) == 0 {
			delete(s.waits, c)
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}

		p := s.waits[c][0]
		s.mu.Unlock()

		if c.later {
			s.hold(p)
		}
		s.deliver(p)
		s.forget(p)

		s.mu.Lock()
		s.waits[c] = s.waits[c][1:]
		s.mu.Unlock()
	}
}

// deliver sends every part that is not known to be delivered, in order.
func (s *senders) deliver(p *promise) {
	if p.ctx.Err() != nil {
		s.report(p, message.Result{Out: p.ID, Kept: true})
		return
	}
	conn, ok := s.connector(p.To.Connector)
	if !ok {
		s.settle(p, message.Result{Out: p.ID, Parts: 1, Error: removed(p.To.Connector), Final: true})
		return
	}

	parts, files := s.parts(conn, p)
	sent := false
	for i, text := range parts {
		if p.Done[i] {
			continue
		}
		sent = true
		out := p.Outgoing
		out.Agent = p.Agent
		out.Part, out.Parts, out.Text, out.Files = i, len(parts), text, files
		if i > 0 {
			out.Files = nil
		}
		if !s.try(p, out) {
			return
		}
	}

	if !sent { // the agent knows which parts arrived, not that these are all
		s.settle(p, message.Result{Out: p.ID, Part: max(len(parts)-1, 0), Parts: max(len(parts), 1)})
	}
}

func removed(connector string) string { return "connector " + connector + " was removed" }

// try sends one part until it is delivered (true) or given up. The connector is
// looked up each time: new settings may have replaced or removed it meanwhile.
func (s *senders) try(p *promise, out message.Outgoing) bool {
	began := time.Now()
	for pause := sendFirst; ; pause = min(2*pause, sendLast) {
		result := message.Result{Out: out.ID, Part: out.Part, Parts: out.Parts, Retry: out.Retry}
		var err error
		if result.RemoteID, err = s.once(p.ctx, out); err == nil {
			s.settle(p, result)
			return true
		}
		if p.ctx.Err() != nil {
			s.report(p, message.Result{Out: out.ID, Kept: true})
			return false
		}

		result.Error = err.Error()
		wait := pause + time.Duration(rand.Int64N(int64(pause)/5+1))
		var ns *message.NotSent
		if errors.As(err, &ns) {
			result.Final = ns.Final
			wait = max(wait, ns.After)
		}

		result.Final = result.Final || givenUp(crash.Now().Sub(p.Since), time.Since(began))
		s.log.Warn("answer not delivered", "connector", out.To.Connector, "out", out.ID, "err", err, "final", result.Final, "again", wait)
		s.settle(p, result)
		if result.Final {
			return false
		}

		select {
		case <-time.After(wait):
		case <-p.ctx.Done():
			s.report(p, message.Result{Out: out.ID, Kept: true})
			return false
		}

		out.Retry = true
	}
}

// givenUp reports whether a promise of some age is not tried again, after it was tried for a while.
func givenUp(age, tried time.Duration) bool { return age > sendGiveUp && tried > sendAtLeast }

func (s *senders) once(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	conn, ok := s.connector(out.To.Connector)
	if !ok {
		return "", &message.NotSent{Final: true, Err: errors.New(removed(out.To.Connector))}
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	err = guard(func() error {
		crash.Point("send.before")
		remoteID, err = conn.Send(ctx, out)
		crash.Point("send.after")
		return err
	})

	return remoteID, err
}

// settle reports the result to the agent, which records it, and to watchers.
func (s *senders) settle(p *promise, f message.Result) {
	kind := event.OutboxSent
	if !f.Delivered() {
		kind = event.OutboxFailed
	}
	s.events.Emit(event.Event{Type: kind, Agent: p.Agent, Body: event.Sent{Out: f.Out, Connector: p.To.Connector,
		Channel: p.To.ChannelID, Part: f.Part, Parts: f.Parts, Error: f.Error}})
	s.report(p, f)
}

// close gives what is in progress some time to leave, then ends all senders.
func (s *senders) close(grace time.Duration) {
	defer time.AfterFunc(grace, s.cancel).Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, waits := range s.waits {
		for i := 0; c.later && i < len(waits); i++ {
			waits[i].cancel() // the night is longer
		}
	}
	for len(s.waits) > 0 {
		s.idle.Wait()
	}
	s.cancel() // under the lock: no sender begins from here on
}
