package acp

import (
	"context"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/record"
)

// fromStart is an event id of no process: what is asked for from there begins with a gap.
const fromStart = "0.0"

// A follower tells a session of its agent.
type follower struct{ *session }

// followed waits until the session's agent is followed and all its records were sent.
func (s *session) followed(ctx context.Context) error {
	s.mu.Lock()
	if s.ready == nil {
		s.ready = make(chan struct{})
		ready := s.ready
		s.door.wg.Go(func() { follower{s}.follow(ready) })
	}
	ready := s.ready
	s.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.door.gone():
		return context.Canceled
	}
}

// follow reports on the agent until the session ends or, while no prompt waits, the daemon.
func (s follower) follow(ready chan struct{}) {
	told := false
	opened := func() {
		if !told {
			told = true
			close(ready)
		}
	}
	defer opened()

	for {
		err := s.listen(opened)
		if s.ctx.Err() != nil || s.unfollowed() {
			return
		}
		if err := s.door.link.back(s.ctx, err); err != nil {
			s.fail(problem(codeInternal, "the daemon stopped: %v; the prompt is safe and continues when daycare runs again", err))
			return
		}
	}
}

func (s *session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompt != nil
}

// unfollowed ends following the agent if no prompt waits. A prompt that begins in this moment is followed by this
// follower or by one of its own, never by none.
func (s follower) unfollowed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompt != nil {
		return false
	}

	s.ready = nil
	return true
}

// listen reports on the agent until the connection ends.
func (s follower) listen(opened func()) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	c, err := s.door.link.connected(ctx)
	if err != nil {
		return err
	}
	since := time.Now().Truncate(time.Millisecond)                                   // as exact as events say it
	old := func(e control.RawEvent) bool { return e.ID != "" && e.At.Before(since) } // a gap has no id
	asks := make(chan struct{})
	defer func() { cancel(); <-asks }()
	go func() {
		defer close(asks)
		types := []event.Type{event.PermissionRequested, event.PermissionDecided}
		_ = c.Events(ctx, control.Filter{Types: types}, fromStart, func(e control.RawEvent) error {
			if !old(e) {
				questions{s.session}.look(ctx, c, false)
			}
			return nil
		})
	}()

	return c.Events(ctx, control.Filter{Agent: s.agentID()}, fromStart, func(e control.RawEvent) error {
		if old(e) {
			return nil // it is on disk, and was read at the gap
		}
		err := s.event(ctx, c, e)
		switch e.Type {
		case control.GapType:
			if err == nil {
				questions{s.session}.look(ctx, c, true)
				opened()
			}
		case event.ToolFinished:
			questions{s.session}.look(ctx, c, false)
		case event.TurnFinished:
			questions{s.session}.look(ctx, c, true)
		}
		return err
	})
}

// event reports one event.
func (s follower) event(ctx context.Context, c *control.Client, e control.RawEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.settle()
	switch e.Type {
	case event.MessageDelta, event.MessageThinking:
		return s.streams(ctx, c, e)
	case event.ToolProgress:
		if p, err := control.Body[event.Progress](e); err == nil {
			s.tell.progress(p, time.Now())
		}
		return nil
	case event.ItemDropped:
		if it, err := control.Body[event.Item](e); err == nil && s.prompt != nil && it.Item == s.prompt.item {
			s.prompt.closed, s.prompt.canceled = true, true
		}
		return nil
	case event.Retry:
		if a, err := control.Body[event.Attempt](e); err == nil && a.Discard {
			s.tell.cut()
		}
		return nil
	case event.HookSaid:
		if r, err := control.Body[event.Reason](e); err == nil {
			s.tell.note("A hook says: " + r.Reason)
		}
		return nil
	case event.ItemQueued, event.AgentWoke, event.AgentSlept:
		return nil
	case event.TurnStarted:
		if p := s.prompt; p != nil && p.canceled && !p.closed {
			_, _ = c.Stop(ctx, s.agent, p.item) // it was canceled when it had not begun
		}
	case event.PermissionGranted:
		s.mode(ctx, c)
	}

	if err := s.catchUp(ctx, c); err != nil {
		return err
	}
	if e.Type == event.ToolStarted {
		if t, err := control.Body[event.Tool](e); err == nil {
			s.tell.runs(t)
		}
	}
	if e.Type == control.GapType {
		return s.missed(ctx, c)
	}

	return nil
}

// streams tells a piece of an answer. s.mu is held.
func (s follower) streams(ctx context.Context, c *control.Client, e control.RawEvent) error {
	d, err := control.Body[event.Delta](e)
	if err != nil {
		return nil
	}
	thinking := e.Type == event.MessageThinking
	if d.Offset == 0 { // it begins: what was before it is on disk
		if err := s.catchUp(ctx, c); err != nil {
			return err
		}
		if s.tell.begins(thinking, d) {
			s.tell.cut()
		}
	}
	if s.tell.late(e.At) {
		return nil
	}
	if s.tell.delta(thinking, d) {
		return s.missed(ctx, c)
	}

	return nil
}

// missed tells what of the current answer was missed. s.mu is held.
func (s follower) missed(ctx context.Context, c *control.Client) error {
	d, err := c.Draft(ctx, s.agent)
	if err == nil {
		s.tell.draft(d)
	}

	return err
}

// catchUp tells the records that were not told. s.mu is held.
func (s *session) catchUp(ctx context.Context, c *control.Client) error {
	entries, err := newer(ctx, c, s.agent, s.tell.seq)
	for _, e := range entries {
		s.tell.record(e)
		if s.prompt != nil && s.prompt.item != "" {
			s.prompt.record(e)
		}
	}

	return err
}

// newer reads the records after a seq, oldest first.
func newer(ctx context.Context, c *control.Client, agent string, seq int64) (list []*record.Entry, err error) {
	before, limit := int64(0), 50
	for {
		page, err := c.History(ctx, agent, before, limit)
		if err != nil {
			return nil, err
		}
		var some []*record.Entry
		reached := false
		for _, line := range page.Records {
			e, err := record.Decode(line)
			if err != nil {
				continue // who loads the agent reports it
			}
			if e.Seq <= seq {
				reached = true
				continue
			}
			some = append(some, e)
		}
		list = append(some, list...)
		if reached || page.Before == nil || len(page.Records) == 0 {
			return list, nil
		}
		before, limit = *page.Before, 1000
	}
}

// current are the records of the conversation as it is: since its last reset, without what was
// rewound.
func current(all []*record.Entry) (list []*record.Entry) {
	for _, e := range all {
		switch r := e.Rec.(type) {
		case *record.Reset:
			list = nil
			continue
		case *record.Rewind:
			for len(list) > 0 && list[len(list)-1].Seq > r.To {
				list = list[:len(list)-1]
			}
			continue
		}
		list = append(list, e)
	}

	return list
}
