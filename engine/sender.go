package engine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/message"
)

const (
	sendFirst  = time.Second    // pause after the first failed try
	sendLast   = time.Minute    // longest pause
	sendGiveUp = 24 * time.Hour // a promise that is older is given up
	sendLimit  = 2 * time.Minute
)

type chat struct{ connector, channel string }

// senders deliver promised answers: one sender a chat, so that the order of a chat
// is kept over all agents and a chat that is down delays no other. A sender exists
// only while its chat has something to send.
type senders struct {
	connector func(id string) (Connector, bool)
	events    *event.Stream
	log       *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	waits map[chat][]message.Promise
	idle  *sync.Cond
}

func newSenders(connector func(id string) (Connector, bool), events *event.Stream, log *slog.Logger) *senders {
	s := &senders{connector: connector, events: events, log: log, waits: map[chat][]message.Promise{}}
	s.idle = sync.NewCond(&s.mu)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// send queues a promise behind what its chat still has to send.
func (s *senders) send(p message.Promise) {
	c := chat{p.To.Connector, p.To.ChannelID}
	if crash.Bug("onelane") {
		c = chat{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		p.Report(message.Fate{Out: p.ID, Kept: true})
		return
	}
	_, running := s.waits[c]
	s.waits[c] = append(s.waits[c], p)
	if crash.Bug("sendtwice") {
		s.waits[c] = append(s.waits[c], p)
	}
	if waits := s.waits[c]; crash.Bug("newestanswer") && len(waits) > 2 {
		waits[1], waits[len(waits)-1] = waits[len(waits)-1], waits[1]
	}
	if !running {
		s.wg.Go(func() { s.work(c) })
	}
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

		s.deliver(p)

		s.mu.Lock()
		s.waits[c] = s.waits[c][1:]
		s.mu.Unlock()
	}
}

// deliver sends every part that is not known to be delivered, in order.
func (s *senders) deliver(p message.Promise) {
	if s.ctx.Err() != nil {
		p.Report(message.Fate{Out: p.ID, Kept: true})
		return
	}
	conn, ok := s.connector(p.To.Connector)
	if !ok {
		s.settle(p, message.Fate{Out: p.ID, Parts: 1, Error: removed(p.To.Connector), Final: true})
		return
	}
	parts := []string{p.Text}
	if sp, ok := conn.(Splitter); ok {
		parts = sp.Split(p.Text)
	}
	for i, text := range parts {
		if p.Done[i] {
			continue
		}
		out := p.Outgoing
		out.Part, out.Parts, out.Text = i, len(parts), text
		if i > 0 {
			out.Files = nil
		}
		if !s.try(p, out) {
			return
		}
	}
}

func removed(connector string) string { return "connector " + connector + " was removed" }

// try sends one part until it is delivered (true) or given up. The connector is
// looked up each time: new settings may have replaced or removed it meanwhile.
func (s *senders) try(p message.Promise, out message.Outgoing) bool {
	for pause := sendFirst; ; pause = min(2*pause, sendLast) {
		fate := message.Fate{Out: out.ID, Part: out.Part, Parts: out.Parts, Retry: out.Retry}
		var err error
		if fate.RemoteID, err = s.once(out); err == nil {
			s.settle(p, fate)
			return true
		}
		if s.ctx.Err() != nil {
			p.Report(message.Fate{Out: out.ID, Kept: true})
			return false
		}
		fate.Error = err.Error()
		wait := pause + time.Duration(rand.Int64N(int64(pause)/5+1))
		var ns *message.NotSent
		if errors.As(err, &ns) {
			fate.Final = ns.Final
			wait = max(wait, ns.After)
		}
		fate.Final = fate.Final || time.Since(p.Since) > sendGiveUp
		s.log.Warn("answer not delivered", "connector", out.To.Connector, "out", out.ID, "err", err, "final", fate.Final, "again", wait)
		s.settle(p, fate)
		if fate.Final {
			return false
		}
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
			p.Report(message.Fate{Out: out.ID, Kept: true})
			return false
		}
		out.Retry = true
	}
}

func (s *senders) once(out message.Outgoing) (remoteID string, err error) {
	conn, ok := s.connector(out.To.Connector)
	if !ok {
		return "", &message.NotSent{Final: true, Err: errors.New(removed(out.To.Connector))}
	}
	ctx, cancel := context.WithTimeout(s.ctx, sendLimit)
	defer cancel()
	err = guard(func() error {
		crash.Point("send.before")
		remoteID, err = conn.Send(ctx, out)
		crash.Point("send.after")
		return err
	})
	return remoteID, err
}

// settle tells the agent, who writes it down, and whoever watches.
func (s *senders) settle(p message.Promise, f message.Fate) {
	kind := event.OutboxSent
	if !f.Delivered() {
		kind = event.OutboxFailed
	}
	s.events.Emit(event.Event{Type: kind, Agent: p.Agent, Body: event.Sent{Out: f.Out, Connector: p.To.Connector,
		Channel: p.To.ChannelID, Part: f.Part, Parts: f.Parts, Error: f.Error}})
	p.Report(f)
}

// close gives what is under way some time to leave, then ends all senders.
func (s *senders) close(grace time.Duration) {
	timer := time.AfterFunc(grace, s.cancel)
	s.mu.Lock()
	for len(s.waits) > 0 && s.ctx.Err() == nil {
		s.idle.Wait()
	}
	s.mu.Unlock()
	timer.Stop()
	s.cancel()
	s.wg.Wait()
}
