package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"daycare/agents/providers"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/record"
	"daycare/engine/redact"
)

// draftEvery is how often the streaming answer is replaced on disk at most.
const draftEvery = 250 * time.Millisecond

// A stream follows one answer as it comes.
type stream struct {
	caller   *caller
	turn     *turn
	req      *providers.Request
	asking   providers.Asking
	text     shown
	thinking shown
	began    time.Time // when the model was asked
	first    time.Time // when the first piece of the answer came; zero: not yet
	next     time.Time // when the draft may be written again
	onDisk   bool
	retried  bool
	failed   error // of writing history
}

// shown is the text that users saw while it was streamed: without secrets, which may be cut
// between two pieces.
type shown struct {
	strings.Builder
	clean *redact.Stream
}

// add adds a piece. It returns what can be shown by now, and where in the text that
// begins.
func (t *shown) add(piece string) (offset int, text string) {
	offset, text = t.Len(), t.clean.Next(piece)
	t.WriteString(text)
	return offset, text
}

// discard forgets all of it.
func (t *shown) discard() {
	t.Reset()
	t.clean.Rest()
}

// all is the text, with what was held back: no more comes.
func (t *shown) all() string {
	t.WriteString(t.clean.Rest())
	return t.String()
}

func (s *stream) see(ev providers.Event) {
	s.turn.clock.tick()
	if s.retried {
		s.retried = false
		s.caller.journal.show(event.Thinking, "")
	}

	switch ev := ev.(type) {
	case providers.ContentDelta:
		s.begins()
		offset, text := s.text.add(ev.Text)
		s.piece(event.MessageDelta, offset, text)
		s.draft()
	case providers.ThinkingDelta:
		s.begins()
		offset, text := s.thinking.add(ev.Text)
		s.piece(event.MessageThinking, offset, text)
		s.draft()
	case providers.Asking:
		s.asking = ev
	case providers.Wasted:
		s.wasted(ev)
	case providers.Retry:
		s.retry(ev)
	}
}

// piece shows a piece of the answer to those who watch. Nobody else has it: it is not kept.
func (s *stream) piece(t event.Type, offset int, text string) {
	if text != "" && s.caller.journal.events.Watched(s.caller.journal.id) {
		s.caller.journal.emit(t, s.turn.id, event.Delta{Offset: offset, Text: text})
	}
}

// begins notes when the answer began to come.
func (s *stream) begins() {
	if s.first.IsZero() {
		s.first = time.Now()
	}
}

// timed is an answer with how long it took.
func (s *stream) timed(r providers.Response) *providers.Response {
	r.Took = time.Since(s.began)
	if !s.first.IsZero() {
		r.First = s.first.Sub(s.began)
	}

	return &r
}

// wasted writes down a request that was paid for in vain, so that no cost is missing. A
// draft that stays names no cost any more, or the next start would count it again.
func (s *stream) wasted(w providers.Wasted) {
	if s.asking = (providers.Asking{}); s.onDisk {
		s.write()
	}
	as := paid(s.caller.costs, &record.Assistant{Turn: s.turn.id, Finish: record.FinishInterrupted, Provider: w.Provider,
		Model: w.Model}, w.Usage)
	if _, err := s.caller.journal.append(as); err != nil {
		s.failed = errors.Join(s.failed, err)
	}
}

func (s *stream) retry(r providers.Retry) {
	if r.Discard {
		s.first = time.Time{}
		s.text.discard()
		s.thinking.discard()
	}
	s.caller.journal.show(event.Retrying,
		fmt.Sprintf("retry %d/%d in %s: %s", r.N, r.Of, r.In.Round(100*time.Millisecond), r.Reason))
	s.caller.journal.emit(event.Retry, s.turn.id, event.Attempt{N: r.N, Of: r.Of, InMS: r.In.Milliseconds(),
		Status: r.Status, Reason: r.Reason, Discard: r.Discard, Fallback: r.Fallback})
	s.turn.clock.pause(r.In)
	s.retried = true
}

// draft replaces the draft on disk without a barrier: it survives a kill, perhaps not a
// power cut.
func (s *stream) draft() {
	began := time.Now()
	if began.Before(s.next) {
		return
	}
	s.onDisk = true
	s.write()
	s.next = nextDraft(began, time.Now())
}

// nextDraft is when the draft is written again after a write: 250 ms later, or more for a
// long answer on a slow disk, so that writing takes at most a fifth of the time. The model's
// stream waits meanwhile.
func nextDraft(began, ended time.Time) time.Time {
	return ended.Add(max(draftEvery, 4*ended.Sub(began)))
}

func (s *stream) write() {
	d := record.Draft{Turn: s.turn.id, Text: s.text.String(), Thinking: s.thinking.String(),
		Provider: s.asking.Provider, Model: s.asking.Model}
	if d.Provider != "" {
		d.Input = providers.Estimate(s.req)
	}
	s.caller.journal.drafted = true
	if err := record.WriteDraft(s.caller.journal.volume, s.caller.journal.dir, d); err != nil {
		s.caller.journal.log.Warn("draft not written", "err", err)
	}
}

// A caller calls the agent's model.
type caller struct {
	journal    *journal
	deliveries *deliveries
	box        inbox.Mailbox
	models     Models
	costs      Costs
}

// call asks the model and streams its answer to whoever watches and to the draft
// on disk. With a callError, which is the model's, it returns what had come so far.
func (c *caller) call(ctx context.Context, t *turn, req *providers.Request) (*providers.Response, error) {
	c.journal.show(event.Thinking, "")
	began := time.Now()
	s := &stream{caller: c, turn: t, req: req, began: began, next: began.Add(draftEvery), text: shown{clean: c.journal.redact.Stream()},
		thinking: shown{clean: c.journal.redact.Stream()}}
	stop := func() bool { return true }
	if t.interrupts() {
		ctx, stop = c.interruptible(ctx, &t.self)
	}

	counted := c.count(t)
	answer, err := c.model(t.model()).Call(ctx, req, s.see)
	if !stop() && err != nil {
		err = errInterrupt
	}
	if s.failed = errors.Join(s.failed, counted()); s.failed != nil {
		return nil, s.failed
	}
	if err != nil {
		return s.timed(providers.Response{Text: s.text.all()}), callError{err}
	}
	if s.onDisk {
		defer c.journal.removeDraft()
	}

	return s.timed(*answer), nil
}

// count makes the beginning of a turn durable beside its first model call, not before it: a
// message that ends its process, or its machine, is counted. wait returns when it is, which
// is long before the model has answered. A file that a user saves meanwhile may lack it until the answer is written,
// whether it is saved during the sync or after it, so the file is not looked at.
func (c *caller) count(t *turn) (wait func() error) {
	if t.counted {
		return func() error { return nil }
	}
	t.counted = true
	return c.deliveries.syncBeside(c.journal.history.Flush)
}

// interruptible makes a context that ends when a message arrives that is to
// interrupt. stop reports whether none did.
func (c *caller) interruptible(ctx context.Context, s *self) (_ context.Context, stop func() bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan bool)
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case <-c.box.Arrived():
				for _, h := range c.box.Open() {
					if !h.Taken && !control(h.Kind) && !h.Silent && s.queue(h) == Interrupt {
						cancel(errInterrupt)
						ended <- false
						return
					}
				}
			case <-quit:
				ended <- true
				return
			}
		}
	}()

	return ctx, func() bool {
		close(quit)
		quiet := <-ended
		cancel(nil)
		return quiet
	}
}

// model is the model of a choice. The agent's deliveries are recorded while it is called.
func (c *caller) model(choice record.Model) Model {
	return besideModel{c.deliveries, c.models.Model(choice)}
}

// cut returns the record of an answer that the crash cut off; nil: none.
func (c *caller) cut(turn string) *record.Assistant {
	d, ok, err := record.ReadDraft(c.journal.dir)
	if err != nil || !ok || d.Turn != turn || d.Text+d.Thinking == "" {
		return nil
	}
	as := &record.Assistant{Turn: turn, Text: d.Text, Finish: record.FinishInterrupted}
	if d.Thinking != "" {
		as.Thinking = []record.Thinking{{Text: d.Thinking}}
	}
	if as.Provider, as.Model = d.Provider, d.Model; d.Provider != "" {
		used := providers.Usage{Input: d.Input, Output: providers.EstimateText(d.Text + d.Thinking), Estimated: true}
		as = paid(c.costs, as, used)
		c.costs.Cut(d.Provider, d.Model, used)
	}

	return as
}

// paid puts into a record what its call of the model used and cost.
func paid(costs Costs, as *record.Assistant, u providers.Usage) *record.Assistant {
	as.Tokens = record.Tokens{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Reasoning: u.Reasoning, Estimated: u.Estimated}
	as.Cost = costs.Price(as.Provider, as.Model, u)
	return as
}

// A besideModel is called while deliveries are recorded.
type besideModel struct {
	deliveries *deliveries
	model      Model
}

func (m besideModel) Call(ctx context.Context, req *providers.Request,
	watch func(providers.Event)) (answer *providers.Response, err error) {
	m.deliveries.meanwhile(func(files sync.Locker) {
		there := watch
		if watch != nil {
			there = func(ev providers.Event) {
				files.Lock()
				defer files.Unlock()
				watch(ev)
			}
		}
		answer, err = m.model.Call(ctx, req, there)
	})

	return answer, err
}
