package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
)

// hook is a connector that can answer at one channel alone.
type hook struct{ chatRoom }

func (*hook) ID() string                                       { return "hook" }
func (*hook) Answers(to message.Address) bool                  { return to.ChannelID == "with-callback" }
func (*hook) Run(ctx context.Context, _ message.Deliver) error { <-ctx.Done(); return nil }

// An agent can speak to a chat if its own is one, or if there is any beside hooks.
func TestWhoCanSpeak(t *testing.T) {
	in := func(connector, channel string) address.Descriptor {
		return address.Descriptor{Type: address.User, Connector: connector, ChannelID: channel, UserID: "u"}
	}
	for name, tt := range map[string]struct {
		connectors []Connector
		d          address.Descriptor
		speaks     bool
	}{
		"nothing is connected":      {nil, in("room", "1"), false},
		"its own chat":              {[]Connector{&chatRoom{}}, in("room", "1"), true},
		"another chat":              {[]Connector{&chatRoom{}}, in("gone", "1"), true},
		"a hook with a callback":    {[]Connector{&hook{}}, in("hook", "with-callback"), true},
		"a hook without one":        {[]Connector{&hook{}}, in("hook", "other"), false},
		"a hook, and somebody else": {[]Connector{&hook{}}, in("gone", "1"), false},
		"a hook beside a chat":      {[]Connector{&hook{}, &chatRoom{}}, in("hook", "other"), true},
	} {
		s := newStill(t, func(o *Options) { o.Connectors = tt.connectors })
		if got := s.Speaks(tt.d); got != tt.speaks {
			t.Errorf("%s: it can speak: %v", name, got)
		}
		to := message.Address{Connector: tt.d.Connector, ChannelID: "other"}
		if tt.d.Connector != "room" {
			if err := s.Say(t.Context(), s.colleague(t), "", to, "key", "x"); !errors.Is(err, ErrNoChat) {
				t.Errorf("%s: said to where nobody answers: %v", name, err)
			}
		}
	}
}

// ringing is a connector that receives one message as soon as it runs.
type ringing struct {
	chatRoom
	got chan message.Receipt
}

func (r *ringing) Run(ctx context.Context, deliver message.Deliver) error {
	receipt, err := deliver(ctx, message.Incoming{From: message.Address{Connector: "room", ChannelID: "1", UserID: "u"}, Text: "x"})
	if err != nil {
		return err
	}
	r.got <- receipt
	<-ctx.Done()
	return nil
}

// Connectors receive while Receive runs, and have ended when it returns.
func TestConnectorsReceive(t *testing.T) {
	room := &ringing{got: make(chan message.Receipt, 10)}
	s := newStill(t, func(o *Options) { o.Connectors = []Connector{room} })
	if list := s.Connectors(); len(list) != 1 || list[0].State != "off" {
		t.Errorf("before it receives: %+v", list)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Receive(ctx) }()
	r := <-room.got
	if list := s.Connectors(); len(list) != 1 || list[0].State != event.Connecting {
		t.Errorf("while it receives: %+v", list)
	}

	cancel()
	must(t, <-done)
	if items := s.open(t); len(items) != 1 || items[0].ID != r.Item {
		t.Errorf("open is %+v, want what was received", items)
	}

	select {
	case again := <-room.got:
		t.Errorf("it received %+v after the end", again)
	case <-time.After(10 * time.Millisecond):
	}
}

// An agent that was ended while it works sends nothing more: what it promises then is
// kept at once, and nobody waits for it.
func TestAnEndedAgentSendsNothing(t *testing.T) {
	room := &chatRoom{}
	kept := make(chan message.Result, 1)
	working := make(chan bool)
	s := newStill(t, func(o *Options) { o.Connectors = []Connector{room} })
	id := s.colleague(t)
	s.run(t, func(ctx context.Context, rt Runtime) error {
		working <- true
		<-ctx.Done()
		rt.Send(message.Promise{Since: time.Now(), Report: func(f message.Result) { kept <- f },
			Outgoing: message.Outgoing{ID: strings.Repeat("o", 24), Text: "too late",
				To: message.Address{Connector: "room", ChannelID: "1"}}})
		return nil
	})

	_, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "x"})
	must(t, err)
	<-working
	must(t, s.Kill(t.Context(), id))
	if f := <-kept; !f.Kept || f.Delivered() {
		t.Errorf("its promise ended as %+v, want it kept", f)
	}

	room.mu.Lock()
	defer room.mu.Unlock()
	if len(room.sent) != 0 {
		t.Errorf("it sent %v", room.sent)
	}
	if _, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("it accepts messages: %v", err)
	}
}
