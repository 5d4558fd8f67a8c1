package cassette

import (
	"context"
	"fmt"
	"iter"

	"daycare/agents/providers"
)

// Record is a provider that asks p and keeps its whole answers on the tape. Requests that
// failed are not kept: the caller makes them again.
func (t *Tape) Record(p providers.Provider) providers.Provider { return recorder{p, t} }

type recorder struct {
	providers.Provider
	tape *Tape
}

func (r recorder) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		v := newView(r.tape.blur)
		c := &call{frame: newFrame(req, v)}
		for ev := range r.Provider.Stream(ctx, req) {
			if c.add(ev); len(c.answer) > 0 && c.answer[len(c.answer)-1].End != nil {
				r.tape.keep(c, v)
			}
			if !yield(ev) {
				return
			}
		}
	}
}

// keep adds a call that was answered.
func (t *Tape) keep(c *call, v *view) {
	for i := range c.answer {
		s := &c.answer[i]
		s.Text = v.answer(s.Text)
		if s.Thinking != nil {
			s.Thinking.Text = v.answer(s.Thinking.Text)
		}
		if s.Call != nil {
			s.Call.Arguments = v.answer(s.Call.Arguments)
		}
	}

	c.key, c.used = c.frame.key(), true
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, c)
}

// add takes the next event of the answer.
func (c *call) add(ev providers.Event) {
	var last *step
	if len(c.answer) > 0 {
		last = &c.answer[len(c.answer)-1]
	}

	switch ev := ev.(type) {
	case providers.ContentDelta:
		if last != nil && last.Text != "" {
			last.Text += ev.Text
			return
		}
		c.answer = append(c.answer, step{Text: ev.Text})
	case providers.ThinkingDelta:
		if last != nil && last.Thinking != nil && last.Thinking.Signature == "" {
			last.Thinking.Text += ev.Text
			last.Thinking.Signature = ev.Signature
			return
		}
		c.answer = append(c.answer, step{Thinking: &thinking{ev.Text, ev.Signature}})
	case providers.ToolUseStart:
		c.answer = append(c.answer, step{Call: &asked{ID: ev.ID, Name: ev.Name}})
	case providers.ToolUseStop:
		for i := range c.answer {
			if s := c.answer[i].Call; s != nil && s.ID == ev.ID {
				s.Arguments = ev.Arguments
			}
		}
	case providers.Complete:
		c.answer = append(c.answer, step{End: &end{ev.Finish, ev.Usage, ev.Model, ev.Asked}})
	}
}

// Play is a provider that answers from the tape.
func (t *Tape) Play() providers.Provider { return player{t} }

type player struct{ tape *Tape }

func (p player) ID() string   { return p.tape.head.Provider }
func (p player) Wire() string { return p.tape.head.Wire }

func (p player) Stream(_ context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		v := newView(p.tape.blur)
		c, missed := p.tape.find(newFrame(req, v))
		if missed != nil {
			yield(providers.Error{Err: &providers.Failure{Kind: providers.Rejected, Provider: p.ID(), Err: missed}})
			return
		}

		for _, s := range c.answer {
			for _, ev := range s.events(v) {
				if !yield(ev) {
					return
				}
			}
		}
	}
}

// events are what a step was recorded from.
func (s step) events(v *view) []providers.Event {
	switch {
	case s.Thinking != nil:
		return []providers.Event{providers.ThinkingDelta{Text: v.played(s.Thinking.Text), Signature: s.Thinking.Signature}}
	case s.Call != nil:
		arguments := v.played(s.Call.Arguments)
		return []providers.Event{providers.ToolUseStart{ID: s.Call.ID, Name: s.Call.Name},
			providers.ToolUseDelta{ID: s.Call.ID, Arguments: arguments}, providers.ToolUseStop{ID: s.Call.ID, Arguments: arguments}}
	case s.End != nil:
		return []providers.Event{providers.Complete{Finish: s.End.Finish, Usage: s.End.Usage, Model: s.End.Model, Asked: s.End.Asked}}
	}

	return []providers.Event{providers.ContentDelta{Text: v.played(s.Text)}}
}

// find is the call that was recorded for a request, the first that was not played yet.
func (t *Tape) find(f frame) (*call, *Mismatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, again := f.key(), false
	for _, c := range t.calls {
		if c.key != key {
			continue
		}
		if !c.used {
			c.used = true
			return c, nil
		}
		again = true
	}

	m := &Mismatch{Head: t.head}
	switch near := t.nearest(f); {
	case again:
		m.Differs = "the request was recorded, but it is made more often now than then\n"
	case near < 0:
		m.Differs = fmt.Sprintf("all %d recorded calls were played, and the agent makes one more:\n%s", len(t.calls), newest(f))
	default:
		m.Call, m.Differs = near+1, differences(t.calls[near].frame, f)
	}
	t.missed = append(t.missed, m)

	return nil, m
}

// nearest is the call, of those that were not played, that is most like a request; -1: all were.
func (t *Tape) nearest(f frame) int {
	best, most := -1, -1
	for i, c := range t.calls {
		if c.used {
			continue
		}
		n := 0
		for n < min(len(f.messages), len(c.frame.messages)) && f.messages[n] == c.frame.messages[n] {
			n++
		}
		if n = 2 * n; c.frame.system == f.system {
			n++
		}
		if n > most {
			best, most = i, n
		}
	}

	return best
}
