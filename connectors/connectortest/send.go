package connectortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"daycare/engine"
	"daycare/engine/message"
)

// try sends once, its error kept for the search for secrets.
func (p *platform) try(t *testing.T, c engine.Connector, out message.Outgoing) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := c.Send(ctx, out)
	p.heard(err)

	return err
}

func (p *platform) canSend(t *testing.T, f Fault) {
	t.Helper()
	if p.Sent == nil {
		t.Skip("this platform takes no answers")
	}
	if slices.Contains(p.Unable, f) {
		t.Skipf("this platform cannot be %s", f)
	}
}

func (p *platform) answer(id, text string) message.Outgoing {
	return message.Outgoing{ID: id, To: p.To[0], ReplyTo: "1", Text: text, Parts: 1}
}

// sends: without Run and in order.
func sends(t *testing.T, p *platform) {
	p.canSend(t, None)
	c := p.new(t)
	var want []string
	for i := range 5 {
		text := fmt.Sprintf("answer %d", i)
		if err := p.try(t, c, p.answer(fmt.Sprintf("out%d", i), text)); err != nil {
			t.Fatalf("Send = %v", err)
		}
		want = append(want, text)
	}

	var got []string
	for _, s := range p.Sent() {
		got = append(got, s.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the platform got %q, want %q", got, want)
	}
}

func sendsAtOnce(t *testing.T, p *platform) {
	p.canSend(t, None)
	c := p.new(t)
	p.run(t, c, newEngine(t).deliver)
	var senders sync.WaitGroup
	for _, to := range p.To {
		senders.Go(func() {
			for i := range 5 {
				out := message.Outgoing{ID: fmt.Sprintf("%s-%d", to.ChannelID, i), To: to, Text: "answer", Parts: 1}
				if err := p.try(t, c, out); err != nil {
					t.Errorf("Send to %s = %v", to.ChannelID, err)
				}
			}
		})
	}

	senders.Wait()
	if got, want := len(p.Sent()), 5*len(p.To); got != want {
		t.Errorf("the platform got %d answers, want %d", got, want)
	}
}

// retries: the connector says whether to try again, the engine does it.
func retries(t *testing.T, p *platform) {
	p.canSend(t, None)
	for _, fault := range []Fault{Broken, Busy, Gone, Stall, Forget} {
		t.Run(string(fault), func(t *testing.T) {
			p.canSend(t, fault)
			c := p.new(t)
			p.Fault(fault)
			defer p.Fault(None)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if fault == Stall {
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			begun := time.Now()
			_, err := c.Send(ctx, p.answer("out-"+string(fault), "answer"))
			p.heard(err)
			if err == nil {
				t.Fatal("Send = nil, want an error: nothing was delivered")
			}
			if took := time.Since(begun); took > BusyFor/2 {
				t.Errorf("Send took %v: waiting is the engine's, and a context that ends ends it", took)
			}

			judgeRetry(t, fault, err)
		})
	}
}

func judgeRetry(t *testing.T, fault Fault, err error) {
	t.Helper()
	var no *message.NotSent
	said := errors.As(err, &no)
	switch fault {
	case Gone:
		if !said || !no.Final {
			t.Errorf("Send = %v, want a message.NotSent with Final: trying again is no use", err)
		}
	case Busy:
		if !said || no.Final || no.After != BusyFor {
			t.Errorf("Send = %#v, want a message.NotSent with After %v", err, BusyFor)
		}
	default:
		if said && no.Final {
			t.Errorf("Send = %v is final, want one that is tried again", err)
		}
	}
}

// lostAnswer: the platform took it and we do not know. Trying again finds it there, or carries
// the same key, so that a platform that can will drop the second.
func lostAnswer(t *testing.T, p *platform) {
	p.canSend(t, Drop)
	c := p.new(t)
	out := p.answer("lost", "answer")
	p.Fault(Drop)
	err := p.try(t, c, out)
	p.Fault(None)
	var no *message.NotSent
	if err == nil || errors.As(err, &no) && no.Final {
		t.Fatalf("Send = %v, want an error that is tried again", err)
	}

	out.Retry = true
	if err := p.try(t, c, out); err != nil {
		t.Fatalf("Send = %v at the second try", err)
	}
	if got := p.Sent(); len(got) < 1 || len(got) > 2 || got[0] != got[len(got)-1] {
		t.Errorf("the platform got %+v, want the answer once, or twice under the same key", got)
	}
}
