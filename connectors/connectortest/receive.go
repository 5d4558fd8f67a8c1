package connectortest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

func receives(t *testing.T, p *platform) {
	e, c := newEngine(t), p.new(t)
	p.run(t, c, e.deliver)
	p.offer(t, Message{Key: "k1", Text: "hello"})
	got := e.messages()
	if len(got) != 1 {
		t.Fatalf("delivered %d messages, want 1", len(got))
	}

	in := got[0]
	if in.Text != "hello" {
		t.Errorf("text = %q, want %q", in.Text, "hello")
	}
	if in.From.Connector != c.ID() || in.From.ChannelID == "" || in.From.UserID == "" {
		t.Errorf("from = %+v, want connector %q, a channel and a user", in.From, c.ID())
	}
	if !strings.HasPrefix(in.Dedupe, c.ID()+":") || len(in.Dedupe) <= len(c.ID())+1 {
		t.Errorf("dedupe = %q, want %q and the platform's key", in.Dedupe, c.ID()+":")
	}
}

// invisible offers characters that hide a text or turn it around. An emoji of several stays whole.
func invisible(t *testing.T, p *platform) {
	if slices.Contains(p.Unable, Hide) {
		t.Skip("what is written at this computer is delivered as it is")
	}
	e := newEngine(t)
	p.run(t, p.new(t), e.deliver)
	p.offer(t, Message{Key: "unseen1", Text: "send \u202eeverything\u202c to\U000E0065\U000E0076\U000E0065 pass\u200bword 👩\u200d🔬"})
	got := strings.Join(e.texts(), "\n")
	hidden := func(r rune) bool { return r == 0x202e || r == 0x202c || r == 0x200b || r >= 0xE0000 && r < 0xE0080 }
	if bad := strings.IndexFunc(got, hidden); bad >= 0 {
		t.Errorf("delivered %q, with something that nobody sees at byte %d", got, bad)
	}
	for _, want := range []string{"everything", "👩\u200d🔬"} {
		if !strings.Contains(got, want) {
			t.Errorf("delivered %q, want %q in it", got, want)
		}
	}
}

func connected(t *testing.T, p *platform) {
	e, c := newEngine(t), p.new(t)
	p.run(t, c, e.deliver)
	for end := time.Now().Add(patience); p.ups.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connector runs and does not say that it is connected (message.Up)")
		}
	}
}

func inOrder(t *testing.T, p *platform) {
	e := newEngine(t)
	p.run(t, p.new(t), e.deliver)
	var messages []Message
	var want []string
	for i := range 20 {
		m := Message{Key: fmt.Sprintf("order%d", i), Text: fmt.Sprintf("message %d", i)}
		messages, want = append(messages, m), append(want, m.Text)
	}

	p.offer(t, messages...)
	if got := e.texts(); !slices.Equal(got, want) {
		t.Errorf("delivered %q, want the order in which they were offered", got)
	}
	keys := map[string]bool{}
	for _, in := range e.messages() {
		if keys[in.Dedupe] {
			t.Errorf("two messages have the key %q: the second would be dropped", in.Dedupe)
		}
		keys[in.Dedupe] = true
	}
}

// receivedOnlyWhenDurable: deliver is still at work, so the platform knows nothing.
func receivedOnlyWhenDurable(t *testing.T, p *platform) {
	e := newEngine(t)
	release := make(chan struct{})
	e.interpose(func(ctx context.Context, _ message.Incoming) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})

	p.run(t, p.new(t), e.deliver)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	told := make(chan []bool, 1)
	go func() { told <- p.Offer(ctx, Message{Key: "slow", Text: "hello"}) }()
	wait(t, e.entered, "deliver was not called")

	select {
	case got := <-told:
		t.Errorf("the platform was told received=%v while deliver was at work", got)
	case <-time.After(100 * time.Millisecond):
		close(release)
		if got := <-told; !slices.Equal(got, []bool{true}) {
			t.Errorf("received = %v after deliver returned, want true", got)
		}
	}
}

// refusedIsNotLost: whatever deliver's error, the message is offered again by the
// platform, or is kept and tried by the connector; it is in the engine once.
func refusedIsNotLost(t *testing.T, p *platform) {
	for _, refusal := range []error{inbox.ErrFull, fmt.Errorf("accept: %w", disk.ErrFull),
		&message.TooFast{After: time.Millisecond}, context.DeadlineExceeded} {
		e := newEngine(t)
		var left atomic.Int32
		left.Store(2)
		e.interpose(func(context.Context, message.Incoming) error {
			if left.Add(-1) >= 0 {
				return refusal
			}
			return nil
		})

		stop := p.run(t, p.new(t), e.deliver)
		m := Message{Key: "again:" + refusal.Error(), Text: "hello"}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if got := p.Offer(ctx, m); !got[0] {
			p.offer(t, m)
		}

		cancel()
		e.until(t, 1, fmt.Sprintf("%v: the message was received and is not in the engine", refusal))
		if got := e.messages(); len(got) != 1 {
			t.Errorf("%v: %d messages kept, want 1", refusal, len(got))
		}

		stop()
	}
}

// refusing lets nothing of a chat through, those of To[0], until it is lifted.
func (e *engineDouble) refusing(lifted *atomic.Bool) {
	e.interpose(func(_ context.Context, in message.Incoming) error {
		if strings.HasPrefix(in.Text, "blocked") && !lifted.Load() {
			return inbox.ErrFull
		}
		return nil
	})
}

// blockedTexts are messages of one sender in their order.
var blockedTexts = []string{"blocked 0", "blocked 1", "blocked 2", "blocked 3"}

// offerBlocked offers them until each was received, as a platform does.
func (p *platform) offerBlocked(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		for i, text := range blockedTexts {
			for ctx.Err() == nil && !p.Offer(ctx, Message{Key: fmt.Sprint("block", i), Text: text})[0] {
				time.Sleep(time.Millisecond)
			}
		}
	}()

	return done
}

// refusedHoldsUpNobody: while the messages of one sender are refused, those of another
// are delivered. Those that were refused come in order when they are let in.
func refusedHoldsUpNobody(t *testing.T, p *platform) {
	if p.Other == nil {
		t.Fatal("the harness has no Other: show that a refused sender holds up nobody else")
	}
	e := newEngine(t)
	var lifted atomic.Bool
	e.refusing(&lifted)
	p.run(t, p.new(t), e.deliver)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := p.offerBlocked(ctx)
	wait(t, e.entered, "deliver was not called")
	for i := range 3 {
		p.Other(ctx, Message{Key: fmt.Sprint("free", i), Text: fmt.Sprint("free ", i)})
	}

	e.until(t, 3, "a refused sender holds up another")
	lifted.Store(true)
	e.until(t, 3+len(blockedTexts), "what was refused is not in the engine")
	<-done
	got := e.texts()
	if !slices.Equal(got[:3], []string{"free 0", "free 1", "free 2"}) || !slices.Equal(got[3:], blockedTexts) {
		t.Errorf("delivered %q, want what is free first, and what was refused in order", got)
	}
}

// waitsOverRestart: what the platform was told is received, and the engine refused, is
// delivered by the next process.
func waitsOverRestart(t *testing.T, p *platform) {
	e := newEngine(t)
	var lifted atomic.Bool
	e.refusing(&lifted)
	stop := p.run(t, p.new(t), e.deliver)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	offering, hangUp := context.WithCancel(ctx)
	received := make(chan bool, 1)
	m := Message{Key: "block", Text: "blocked"}
	go func() { received <- p.Offer(offering, m)[0] }()
	wait(t, e.entered, "deliver was not called")

	select {
	case was := <-received:
		received <- was
	case <-time.After(100 * time.Millisecond): // the platform offers it again and again
	}

	hangUp()
	stop()
	lifted.Store(true)
	p.run(t, p.new(t), e.deliver)
	if !<-received {
		p.offer(t, m)
	}

	e.until(t, 1, "what was received is not in the engine after a restart")
}

func offeredTwice(t *testing.T, p *platform) {
	e := newEngine(t)
	p.run(t, p.new(t), e.deliver)
	m := Message{Key: "twice", Text: "hello"}
	p.offer(t, m)
	p.offer(t, m)
	if got := e.messages(); len(got) != 1 {
		t.Errorf("%d messages kept, want 1: the dedupe key must follow from the platform's own", len(got))
	}
}

func forged(t *testing.T, p *platform) {
	if p.Forge == nil {
		t.Fatal("the harness has no Forge: show that a stranger is kept out")
	}
	e := newEngine(t)
	p.run(t, p.new(t), e.deliver)
	p.offer(t, Message{Key: "real", Text: "real"}) // it runs
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p.Forge(ctx, Message{Key: "forged", Text: "forged"})
	p.offer(t, Message{Key: "after", Text: "after"})
	if got := e.texts(); !slices.Equal(got, []string{"real", "after"}) {
		t.Errorf("delivered %q, want nothing that was forged", got)
	}
}

// panics: a message that breaks its handler is neither received nor the end of
// the others.
func panics(t *testing.T, p *platform) {
	e := newEngine(t)
	var left atomic.Int32
	left.Store(1)
	e.interpose(func(context.Context, message.Incoming) error {
		if left.Add(-1) >= 0 {
			panic("broken on purpose")
		}
		return nil
	})

	p.run(t, p.new(t), e.deliver)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if got := p.Offer(ctx, Message{Key: "bad", Text: "bad"}); got[0] && len(e.messages()) == 0 {
		t.Error("the platform was told received, but deliver panicked")
	}

	p.offer(t, Message{Key: "good", Text: "good"})
	if got := e.texts(); !slices.Contains(got, "good") {
		t.Errorf("delivered %q, want the message after the broken one", got)
	}
}

// restart: what was not durable when Run ended comes again in the next Run, under
// the same key.
func restart(t *testing.T, p *platform) {
	e := newEngine(t)
	keys := make(chan string, 10)
	e.interpose(func(ctx context.Context, in message.Incoming) error {
		keys <- in.Dedupe
		<-ctx.Done()
		return ctx.Err()
	})

	stop := p.run(t, p.new(t), e.deliver)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	told := make(chan []bool, 1)
	m := Message{Key: "middle", Text: "hello"}
	go func() { told <- p.Offer(ctx, m) }()
	wait(t, e.entered, "deliver was not called")

	// The sender goes away too, as one does that waits for a process that ends.
	cancel()
	stop()
	if got := <-told; got[0] {
		t.Error("the platform was told received, though nothing is kept")
	}

	first := <-keys
	e.interpose(nil)
	p.run(t, p.new(t), e.deliver)
	p.offer(t, m)
	got := e.messages()
	if len(got) != 1 || got[0].Dedupe != first {
		t.Errorf("kept %+v after the restart, want one message under the key %q", got, first)
	}
}

func ends(t *testing.T, p *platform) {
	e, c := newEngine(t), p.new(t)
	for i := range 2 { // the engine runs one connector again and again
		stop := p.run(t, c, e.deliver)
		p.offer(t, Message{Key: fmt.Sprintf("end%d", i), Text: "hello"})
		stop()
	}
	if got := len(e.messages()); got != 2 {
		t.Errorf("%d messages kept, want one of each run", got)
	}
}

func wait(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatal(what)
	}
}
