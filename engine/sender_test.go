package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A slowRoom is a chat that takes a message when it is let.
type slowRoom struct {
	chatRoom
	tries chan string
	let   chan error
}

func newSlowRoom() *slowRoom { return &slowRoom{tries: make(chan string, 100), let: make(chan error)} }

func (r *slowRoom) Split(text string) []string { return []string{text} }

func (r *slowRoom) Send(ctx context.Context, out message.Outgoing) (string, error) {
	r.tries <- out.Key()
	select {
	case err := <-r.let:
		if err == nil {
			_, err = r.chatRoom.Send(ctx, out)
		}
		return "remote", err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (r *slowRoom) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

var toRoom = message.Address{Connector: "room", ChannelID: "1"}

// promising plays an agent that promises one answer and records what became of it, as
// agents do.
type promising struct {
	mu       sync.Mutex
	runs     int
	recorded []message.Result
	each     func(run int) error // how a run ends; nil: when the agent is told to leave
}

func (p *promising) run(ctx context.Context, rt Runtime) error {
	p.mu.Lock()
	p.runs++
	n, open := p.runs, len(p.recorded) == 0
	p.mu.Unlock()
	if open && !p.settle(rt) {
		rt.Send(message.Promise{Since: time.Now(), Report: rt.Results.Put,
			Outgoing: message.Outgoing{ID: "answer", Text: "x", To: toRoom}})
	}

	for _, h := range rt.Inbox.Open() {
		if err := rt.Inbox.Done(h.ID); err != nil {
			return err
		}
	}
	if err := p.each(n); err != nil {
		return err
	}

	p.settle(rt)
	return nil
}

func (p *promising) settle(rt Runtime) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recorded = append(p.recorded, rt.Results.Take()...)
	return len(p.recorded) > 0
}

func (p *promising) done() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.recorded) > 0
}

func TestAnAgentThatFailsAloneSendsNothingTwice(t *testing.T) {
	t.Parallel()
	room := newSlowRoom()
	fails := make(chan error)
	p := &promising{each: func(run int) error {
		if run == 1 {
			return <-fails
		}
		return nil
	}}
	h := newHouse(t, t.TempDir(), p.run, room)
	h.deliver(from("one", "hello"))
	<-room.tries // it is on its way
	fails <- errors.New("seeded")
	waitFor(t, "the second run", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.runs > 1 })
	room.let <- nil
	waitFor(t, "the delivery is recorded", p.done)

	select {
	case out := <-room.tries:
		t.Errorf("%s was sent a second time", out)
	case <-time.After(200 * time.Millisecond):
	}
}

// A result that came in while the failed run could not record it is there for the next.
func TestAResultOutlivesARunThatFails(t *testing.T) {
	t.Parallel()
	room := newSlowRoom()
	fails := make(chan error)
	p := &promising{each: func(run int) error {
		if run == 1 {
			return <-fails
		}
		return nil
	}}
	h := newHouse(t, t.TempDir(), p.run, room)
	r := h.deliver(from("one", "hello"))
	<-room.tries
	room.let <- nil
	waitFor(t, "the result came in", func() bool { return h.senders.results(r.Agent).Len() == 1 })
	fails <- errors.New("seeded")
	waitFor(t, "the delivery is recorded", p.done)
	if sent := room.all(); len(sent) != 1 {
		t.Errorf("sent %v, want the answer once", sent)
	}
}

func TestAResultWakesAnAgentThatSleeps(t *testing.T) {
	room := newSlowRoom()
	p := &promising{each: func(int) error { return nil }}
	h := newHouse(t, t.TempDir(), p.run, room)
	r := h.deliver(from("one", "hello"))
	<-room.tries
	waitFor(t, "the agent sleeps", func() bool { _, awake := h.awake(r.Agent); return !awake })
	room.let <- nil
	waitFor(t, "the delivery is recorded", p.done)
	waitFor(t, "the account is closed", func() bool {
		h.senders.mu.Lock()
		defer h.senders.mu.Unlock()
		return h.senders.accounts[r.Agent] == nil
	})
}

// An agent can record a result and sleep before its sender has put the promise away.
func TestAnAgentThatSleepsBeforeItsSenderEndsLeavesNoAccount(t *testing.T) {
	room := newSlowRoom()
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}), room)
	h.senders.results("agent")
	h.senders.send(message.Promise{Agent: "agent", Since: time.Now(), Report: func(message.Result) {}, // recorded at once
		Outgoing: message.Outgoing{ID: "answer", Text: "x", To: toRoom}})
	<-room.tries
	if h.senders.left("agent") {
		t.Error("there are results that the agent has not recorded")
	}
	room.let <- nil
	waitFor(t, "the account is closed", func() bool {
		h.senders.mu.Lock()
		defer h.senders.mu.Unlock()
		return h.senders.accounts["agent"] == nil
	})
}

func TestAPromiseWithNothingLeftToSendIsSettledAtOnce(t *testing.T) {
	room := &chatRoom{}
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}), room)
	results := make(chan message.Result, 5)
	h.senders.send(message.Promise{Since: time.Now(), Done: map[int]bool{0: true, 1: true}, Report: func(f message.Result) { results <- f },
		Outgoing: message.Outgoing{ID: "a", Text: "1122", To: toRoom}})

	select {
	case f := <-results:
		if !f.Delivered() || f.Part != 1 || f.Parts != 2 {
			t.Errorf("result %+v, want both parts delivered", f)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing was reported")
	}

	if len(room.sent) > 0 {
		t.Errorf("sent %v again", room.sent)
	}
}

// A promise that is old by a clock that was set right only now, or because the machine was off, is
// tried for a while, too.
func TestAnOldPromiseIsTriedForAWhile(t *testing.T) {
	t.Parallel()
	room := newSlowRoom()
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}), room)
	results := make(chan message.Result, 5)
	h.senders.send(message.Promise{Since: time.Now().Add(-72 * time.Hour), Report: func(f message.Result) { results <- f },
		Outgoing: message.Outgoing{ID: "a", Text: "x", To: toRoom}})
	<-room.tries
	room.let <- errors.New("busy")
	if f := <-results; f.Final || f.Delivered() {
		t.Errorf("the first try that failed ended with %+v, want another one", f)
	}
	<-room.tries
	room.let <- nil
	if f := <-results; !f.Delivered() {
		t.Errorf("the second try ended with %+v", f)
	}
	for _, tt := range []struct {
		age, tried time.Duration
		want       bool
	}{{sendGiveUp + 1, sendAtLeast + 1, true}, {sendGiveUp + 1, sendAtLeast, false}, {sendGiveUp, time.Hour, false},
		{-time.Hour, time.Hour, false}} {
		if got := givenUp(tt.age, tt.tried); got != tt.want {
			t.Errorf("a promise that is %v old and was tried for %v is given up: %v", tt.age, tt.tried, got)
		}
	}
}

func TestFilesWithoutTextAreSentAlthoughNothingIsSplit(t *testing.T) {
	room := &chatRoom{}
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}), room)
	results := make(chan message.Result, 5)
	h.senders.send(message.Promise{Since: time.Now(), Report: func(f message.Result) { results <- f },
		Outgoing: message.Outgoing{ID: "a", Files: []message.File{{ID: "f"}}, To: toRoom}})
	if f := <-results; !f.Delivered() || !slices.Equal(room.sent, []string{"a"}) {
		t.Errorf("result %+v, sent %v", f, room.sent)
	}
}

// owing is an agent of the terminal whose history promises an answer to the room.
func owing(t *testing.T, h *house) address.Meta { return owingIn(t, h, "7") }

// owingIn is owing for the agent of another channel.
func owingIn(t *testing.T, h *house, channel string) address.Meta {
	t.Helper()
	meta, err := h.lifecycle.registrar.create(address.Descriptor{
		Type: address.User, Connector: Terminal().Connector, ChannelID: channel, UserID: "u"})
	if err != nil {
		t.Fatal(err)
	}

	err = record.AppendApart(h.vol, h.folder(meta.ID), h.log, func(*record.Obligations) []record.Record {
		return []record.Record{&record.Start{Session: "s", V: record.Version},
			&record.Assistant{Turn: "t", Text: "x", Finish: record.FinishEndTurn, Out: &record.Out{ID: "answer", To: toRoom}},
			&record.TurnEnd{Turn: "t", Items: []string{}, Reason: record.ReasonDone}}
	})
	if err != nil {
		t.Fatal(err)
	}

	return meta
}

// rests reports whether an agent does not work.
func (h *house) rests(id string) bool {
	e, ok := h.awake(id)
	if !ok {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.running
}

// leaving plays an agent that waits at its end until nothing of it is on its way.
func leaving(ctx context.Context, rt Runtime) error {
	rt.Send(message.Promise{Since: time.Now(), Report: rt.Results.Put, Outgoing: message.Outgoing{ID: "answer", Text: "x", To: toRoom}})
	<-ctx.Done()
	<-rt.Results.Arrived()
	return nil
}

func TestAnAnswerThatCannotBeDeliveredDoesNotHoldUpTheEndOfItsAgent(t *testing.T) {
	for name, end := range map[string]func(*house, context.Context, string) error{
		"kill":       func(h *house, ctx context.Context, id string) error { return h.Kill(ctx, id) },
		"rm --force": func(h *house, ctx context.Context, id string) error { _, err := h.Remove(ctx, id, true); return err },
		"ttl":        func(h *house, ctx context.Context, id string) error { return h.retire(ctx, id, "no work for 1h") },
	} {
		t.Run(name, func(t *testing.T) {
			room := newSlowRoom()
			h := newHouse(t, t.TempDir(), leaving, room)
			meta := owing(t, h)
			h.wake(meta.ID)
			<-room.tries // the chat is down, and may be for a day
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			dir := h.folder(meta.ID)
			if err := end(h, ctx, meta.ID); err != nil {
				t.Fatal(err)
			}
			if !disk.Exists(dir) {
				return // in the trash
			}
			if settled, err := record.Settled(dir); err != nil || !settled {
				t.Errorf("the promise still stands: settled %v, %v", settled, err)
			}

			page, err := h.History(t.Context(), meta.ID, 0, 10)
			if err != nil || !strings.Contains(string(page.Records[len(page.Records)-1]), "the agent has ended") {
				t.Errorf("history does not say that the answer is given up: %s, %v", page.Records, err)
			}
			if _, err := h.Remove(t.Context(), meta.ID, false); err != nil {
				t.Errorf("an ended agent that owes nothing cannot be removed: %v", err)
			}
		})
	}
}

// A promise of an agent that sleeps, or waits for a place, is given up as well.
func TestAnAgentThatSleepsGivesUpItsAnswersAtItsEnd(t *testing.T) {
	room := newSlowRoom()
	h := newHouse(t, t.TempDir(), func(_ context.Context, rt Runtime) error {
		rt.Send(message.Promise{Since: time.Now(), Report: rt.Results.Put,
			Outgoing: message.Outgoing{ID: "answer", Text: "x", To: toRoom}})
		return nil
	}, room)
	meta := owing(t, h)
	h.wake(meta.ID)
	<-room.tries
	waitFor(t, "the agent sleeps", func() bool { _, awake := h.awake(meta.ID); return !awake })
	if err := h.Kill(t.Context(), meta.ID); err != nil {
		t.Fatal(err)
	}
	if settled, err := record.Settled(h.folder(meta.ID)); err != nil || !settled {
		t.Errorf("the promise still stands: settled %v, %v", settled, err)
	}

	h.senders.mu.Lock()
	left := h.senders.accounts[meta.ID]
	h.senders.mu.Unlock()
	if left != nil {
		t.Errorf("an agent that has ended still owes %v", left.outs)
	}
}

// What leaves during the grace of a shutdown is recorded, although its agent sleeps.
func TestResultsDuringTheShutdownAreRecorded(t *testing.T) {
	room := newSlowRoom()
	root := t.TempDir()
	h := newHouseWith(t, root, func(_ context.Context, rt Runtime) error {
		rt.Send(message.Promise{Since: time.Now(), Report: rt.Results.Put,
			Outgoing: message.Outgoing{ID: "answer", Text: "x", To: toRoom}})
		return nil
	}, Options{Connectors: []Connector{room}})
	h.grace = 20 * time.Second
	meta := owing(t, h)
	h.wake(meta.ID)
	<-room.tries
	waitFor(t, "the agent rests", func() bool { return h.rests(meta.ID) })
	ended := make(chan error, 1)
	go func() { ended <- h.end() }()
	waitFor(t, "agents are suspended", func() bool { return h.actors.ctx.Err() != nil })
	room.let <- nil
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if settled, err := record.Settled(h.folder(meta.ID)); err != nil || !settled {
		t.Errorf("the answer would be sent again: settled %v, %v", settled, err)
	}
}

// A lastSend is a chat whose sending takes a moment to end.
type lastSend struct {
	*slowRoom
	began, ended chan struct{}
}

func (l *lastSend) Send(ctx context.Context, out message.Outgoing) (string, error) {
	if out.To.ChannelID != "1" {
		return l.slowRoom.Send(ctx, out)
	}
	close(l.began)
	<-ctx.Done()
	time.Sleep(50 * time.Millisecond)
	close(l.ended)
	return "", ctx.Err()
}

// When the system has ended, nothing is being sent any more: a connector could use what is
// closed by then.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	room := &lastSend{newSlowRoom(), make(chan struct{}), make(chan struct{})}
	h := newHouse(t, t.TempDir(), idle, room)
	for _, channel := range []string{"1", "2"} {
		to := message.Address{Connector: "room", ChannelID: channel}
		h.senders.send(message.Promise{Since: time.Now(), Report: func(message.Result) {},
			Outgoing: message.Outgoing{ID: channel, Text: "x", To: to}})
	}
	<-room.began
	<-room.tries // the other chat ends at once
	must(t, h.end())
	select {
	case <-room.ended:
	default:
		t.Error("the system has ended, and its connector still sends")
	}
}

// What an agent promised whose folder is gone is given up without a trace: no folder is made
// for it.
func TestGivingUpMakesNoFolder(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	meta := owing(t, h)
	must(t, os.RemoveAll(h.folder(meta.ID)))
	h.actors.abandon(meta.ID, "it was removed")
	if disk.Exists(h.folder(meta.ID)) {
		t.Error("its folder is there again")
	}
}

// An event says what cannot be delivered, and why.
func TestAFailedDeliveryIsTold(t *testing.T) {
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}))
	told := h.events.Subscribe(t.Context())
	results := make(chan message.Result, 5)
	h.senders.send(message.Promise{Since: time.Now(), Report: func(f message.Result) { results <- f },
		Outgoing: message.Outgoing{ID: "a", Text: "x", To: message.Address{Connector: "gone", ChannelID: "1"}}})
	if f := <-results; f.Delivered() || !f.Final {
		t.Errorf("result %+v", f)
	}
	for e := range told {
		sent, ok := e.Body.(event.Sent)
		if !ok {
			continue
		}
		if e.Type != event.OutboxFailed || sent.Out != "a" || sent.Error == "" {
			t.Errorf("told is %s %+v", e.Type, sent)
		}
		break
	}
}
