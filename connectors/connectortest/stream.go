package connectortest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/engine/event"
	"daycare/engine/message"
)

// streams: an answer that is shown while it is written is one message, which in the end is the
// answer, also if that is tried again, and if the platform fails the first tries.
func streams(t *testing.T, p *platform) {
	if p.Shown == nil {
		t.Skip("messages of this platform cannot be edited")
	}
	to := p.To[0]
	events := &watched{seen: make(chan struct{})}
	before := *p.Strangers.Host
	defer func() { *p.Strangers.Host = before }()
	p.Strangers.Host.Events, p.Strangers.Host.Agents, p.Strangers.Host.Hints = events, working{to}, &Keeper{}
	p.Strangers.Host.Talk = func(string) chat.Talk { return chat.Talk{Stream: true} }
	c := p.new(t)
	p.runAgain(t, c, newEngine(t).deliver, func(error) {}) // a connection may break with a fault
	wait(t, events.seen, "nobody watches the events")

	beginning := strings.Repeat("a few words ", 5)
	events.Publish(event.Event{Type: event.TurnStarted, Agent: "agent", Body: event.Started{Items: []string{"item"}}})
	events.Publish(event.Event{Type: event.MessageDelta, Agent: "agent", Body: event.Delta{Text: beginning}})
	for end := time.Now().Add(patience); len(p.Shown()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the beginning of the answer is not shown")
		}
	}
	if got := p.Shown(); len(got) != 1 || !strings.HasPrefix(got[0], "a few words") || !strings.HasSuffix(got[0], "…") {
		t.Errorf("%q is shown, want the beginning", got)
	}

	out := message.Outgoing{ID: "whole", Agent: "agent", To: to, ReplyTo: "1", Text: beginning + "and the rest", Parts: 1}
	for _, fault := range []Fault{Broken, Drop} {
		p.Fault(fault)
		err := p.try(t, c, out)
		p.Fault(None)
		if err == nil {
			t.Errorf("Send = nil while the platform is %s, want an error", fault)
		}
		judgeRetry(t, fault, err)
		if got := p.Shown(); len(got) != 1 {
			t.Errorf("%q are shown after a try while the platform was %s, want one message", got, fault)
		}
		out.Retry = true
	}
	for range 2 {
		if err := p.try(t, c, out); err != nil {
			t.Fatal(err)
		}
		if got := p.Shown(); !slices.Equal(got, []string{out.Text}) {
			t.Errorf("%q is shown, want the answer in the place of its beginning", got)
		}
	}
}

// watched are events that tell when someone watches.
type watched struct {
	event.Broker[event.Event]
	once sync.Once
	seen chan struct{}
}

func (w *watched) Subscribe(ctx context.Context) <-chan event.Event {
	events := w.Broker.Subscribe(ctx)
	w.once.Do(func() { close(w.seen) })
	return events
}

// working is an agent that works for a message of one chat.
type working struct{ to message.Address }

func (w working) Item(context.Context, string, string) (event.Posted, error) {
	return event.Posted{MessageID: "1", Route: &event.Route{Connector: w.to.Connector, ChannelID: w.to.ChannelID, UserID: w.to.UserID,
		ThreadID: w.to.ThreadID}}, nil
}

func (working) Agent(_ context.Context, id string) (event.Agent, error) {
	return event.Agent{ID: id, State: event.Thinking}, nil
}

func (working) Agents(context.Context) ([]event.Agent, error)        { return nil, nil }
func (working) Known(context.Context, string) ([]event.Agent, error) { return nil, nil }
func (working) Stop(context.Context, string) (bool, error)           { return false, nil }
