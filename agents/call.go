package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine/event"
	"daycare/engine/record"
	"daycare/engine/redact"
)

// draftEvery is how often the streaming answer is replaced on disk at most.
const draftEvery = 250 * time.Millisecond

// build makes the request of the next model call from history as it is now: what a
// person edited since the last call counts.
func (a *agent) build(t *turn) (*providers.Request, error) {
	if err := a.refresh(t.id); err != nil {
		return nil, err
	}
	context, err := a.history.Context()
	if err != nil {
		return nil, fmt.Errorf("read context: %w", err)
	}
	if context.Session != a.session {
		if err := a.introduce(context.Session); err != nil {
			return nil, err
		}
	}
	req, err := a.builder.Build(context, a.system, a.offer(), prompt.Options{
		Model: a.state.Provider.Model, MaxTokens: a.state.Provider.MaxTokens,
		Temperature: a.state.Provider.Temperature, Thinking: a.state.Provider.Thinking,
		Agent: a.ID, Foreground: a.foreground(),
	})
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	return req, nil
}

// introduce renders the system prompt of a session. It is kept for the whole
// session, because a changed prompt is a new prefix for every cache.
func (a *agent) introduce(session string) error {
	a.definition = a.Briefing.Definition(a.Meta, a.state)
	a.system, a.session = a.Redact.Text(prompt.System(a.definition)), session
	if err := a.Volume.WriteDraft("draft", a.path("SYSTEM.md"), []byte(a.system)); err != nil {
		a.log.Warn("system prompt not written for people to read", "err", err)
	}
	return nil
}

// offer is the list of tools as the model is told of it.
func (a *agent) offer() []providers.Tool {
	if a.Tools == nil {
		return nil
	}
	offer := make([]providers.Tool, 0, a.Tools.Len())
	for s := range a.Tools.All() {
		offer = append(offer, providers.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	return offer
}

// call asks the model and streams its answer to whoever watches and to the draft
// on disk. With a callError, which is the model's, it returns what had come so far.
func (a *agent) call(ctx context.Context, t *turn, req *providers.Request) (*providers.Response, error) {
	a.Stage.Show(event.Thinking, "")
	s := &stream{agent: a, turn: t, req: req, drafted: time.Now(), text: shown{clean: a.Redact.Stream()},
		thinking: shown{clean: a.Redact.Stream()}}
	stop := func() bool { return true }
	if a.interrupts() {
		ctx, stop = a.interruptible(ctx)
	}
	answer, err := a.model().Call(ctx, req, s.see)
	if !stop() && err != nil {
		err = errInterrupt
	}
	if s.failed != nil {
		return nil, s.failed
	}
	if err != nil {
		return &providers.Response{Text: s.text.all()}, callError{err}
	}
	if s.onDisk {
		defer record.RemoveDraft(a.Dir)
	}
	return answer, nil
}

// A stream follows one answer as it comes.
type stream struct {
	agent    *agent
	turn     *turn
	req      *providers.Request
	asking   providers.Asking
	text     shown
	thinking shown
	drafted  time.Time
	onDisk   bool
	retried  bool
	failed   error // of writing history
}

// shown is text that people were told while it came: without secrets, which may be cut
// between two pieces.
type shown struct {
	strings.Builder
	clean *redact.Stream
}

// add takes a piece. It returns what is to be told by now, and where in the text that
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
		s.agent.Stage.Show(event.Thinking, "")
	}
	switch ev := ev.(type) {
	case providers.ContentDelta:
		if offset, text := s.text.add(ev.Text); text != "" {
			s.agent.emit(event.MessageDelta, s.turn.id, event.Delta{Offset: offset, Text: text})
		}
		s.draft()
	case providers.ThinkingDelta:
		if ev.Text == "" {
			break
		}
		if offset, text := s.thinking.add(ev.Text); text != "" {
			s.agent.emit(event.MessageThinking, s.turn.id, event.Delta{Offset: offset, Text: text})
		}
		s.draft()
	case providers.Asking:
		s.asking = ev
	case providers.Wasted:
		s.wasted(ev)
	case providers.Retry:
		s.retry(ev)
	}
}

// wasted writes down a request that was paid for in vain, so that no cost is missing. A
// draft that stays names no cost any more, or the next start would count it again.
func (s *stream) wasted(w providers.Wasted) {
	if s.asking = (providers.Asking{}); s.onDisk {
		s.write()
	}
	as := s.agent.paid(&record.Assistant{Turn: s.turn.id, Finish: record.FinishInterrupted, Provider: w.Provider, Model: w.Model}, w.Usage)
	if _, err := s.agent.append(as); err != nil {
		s.failed = errors.Join(s.failed, err)
	}
}

func (s *stream) retry(r providers.Retry) {
	if r.Discard {
		s.text.discard()
		s.thinking.discard()
	}
	s.agent.Stage.Show(event.Retrying, fmt.Sprintf("retry %d/%d in %s: %s", r.N, r.Of, r.In.Round(100*time.Millisecond), r.Reason))
	s.agent.emit(event.Retry, s.turn.id, event.Attempt{N: r.N, Of: r.Of, InMS: r.In.Milliseconds(),
		Status: r.Status, Reason: r.Reason, Discard: r.Discard, Fallback: r.Fallback})
	s.turn.clock.pause(r.In)
	s.retried = true
}

// draft replaces the draft on disk, at most every 250 ms and without a barrier: it
// survives a kill, perhaps not a power cut.
func (s *stream) draft() {
	if time.Since(s.drafted) < draftEvery {
		return
	}
	s.drafted, s.onDisk = time.Now(), true
	s.write()
}

func (s *stream) write() {
	d := record.Draft{Turn: s.turn.id, Text: s.text.String(), Thinking: s.thinking.String(),
		Provider: s.asking.Provider, Model: s.asking.Model}
	if d.Provider != "" {
		d.Input = providers.Estimate(s.req)
	}
	if err := record.WriteDraft(s.agent.Volume, s.agent.Dir, d); err != nil {
		s.agent.log.Warn("draft not written", "err", err)
	}
}

// interruptible makes a context that ends when a message arrives that is to
// interrupt. stop reports whether none did.
func (a *agent) interruptible(ctx context.Context) (_ context.Context, stop func() bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan bool)
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case <-a.Inbox.Arrived():
				for _, h := range a.Inbox.Open() {
					if !h.Taken && !control(h.Kind) && !h.Silent && a.queue(h) == Interrupt {
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
