package talk

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
)

// lookEvery is how often a talk asks how the agent stands while it waits for a
// turn that none of its own messages began.
const lookEvery = 200 * time.Millisecond

// A talk is a conversation with one agent. One goroutine, run, owns the screen and
// all of this; others only hand it what they hear.
//
// The first message's own stream shows its turn. When that has ended, the events
// of the agent are followed from there on: they show the turns that begin with
// someone's approval, with the report of a background agent, with a message from
// elsewhere. How an item ended is never taken from events, which may be lost, but
// from its stream's outcome, or from history.
type talk struct {
	peer
	c       *term.App
	asks    *approvals
	signals <-chan os.Signal

	once   bool          // one message, then leave
	typed  <-chan string // nil when nobody types
	flight flight
}

// A peer is the agent that is talked with: the way to it, and what is heard of it.
type peer struct {
	client   *control.Client
	view     *view
	agent    string // id; "" until the first message made or found it
	wait     bool   // it is busy until its background agents are done, too
	heard    chan heard
	watching bool   // the agent's events are followed
	lastID   string // of the newest event
	wg       sync.WaitGroup
}

// flight is what is in progress.
type flight struct {
	open      int           // own messages without an outcome
	following bool          // a turn is due that no own message waits for
	last      event.Outcome // of the newest turn
	stopping  bool          // Ctrl-C was pressed
	prompted  bool          // the prompt stands on the screen
	calm      time.Time     // since when a turn is due and the agent has no work
}

// expect: a turn is due that no own message waits for.
func (f *flight) expect() { f.following, f.calm = true, time.Time{} }

// due reports whether a turn is due that no event need announce.
func (f *flight) due() bool { return f.following && f.open == 0 }

// heard is what goroutines hand to run: an event, the end of an own message, that
// someone is asked something, or the end of what is followed.
type heard struct {
	event *control.RawEvent
	ended *event.Outcome
	asked bool  // the queue of requests changed
	err   error // with ended: of the message; alone: of what is followed
}

func newTalk(c *term.App, client *control.Client, o chatOptions, signals <-chan os.Signal, once bool) *talk {
	return &talk{peer: peer{client: client, view: newView(c), wait: o.wait, heard: make(chan heard)},
		c: c, asks: newApprovals(c, o.permission), signals: signals, once: once}
}

// run talks until it is over: after the answer to text, or, with no text, when
// the user leaves.
func (t *talk) run(ctx context.Context, text string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer t.wg.Wait()
	defer cancel()
	if err := t.asks.begin(ctx, t.client, t.once); err != nil {
		return err
	}
	if !t.once {
		t.typed = typedLines(t.c)
		t.c.Note("Enter sends the line, /help lists the commands.")
	}
	if err := t.waiting(ctx); err != nil {
		return err
	}
	if t.once {
		t.say(ctx, text)
	} else {
		t.prompt()
		t.watchAsks(ctx)
	}

	for {
		var over bool
		var err error
		var glance <-chan time.Time
		if t.flight.due() && t.agent != "" && !(t.once && t.asks.open()) {
			glance = time.After(lookEvery)
		}

		select {
		case h := <-t.heard:
			over, err = t.hear(ctx, h)
		case line, ok := <-t.typed:
			over, err = t.line(ctx, line, ok)
		case sig := <-t.signals:
			over, err = t.signal(ctx, sig)
		case <-glance:
			over, err = t.settle(ctx)
		}

		if over || err != nil {
			t.view.newline()
			return err
		}
	}
}

// say sends a message and waits for its end.
func (t *talk) say(ctx context.Context, text string) {
	m := Own(control.Message{Text: text})
	show := func(control.RawEvent) {}
	if !t.watching && t.flight.open == 0 {
		show = func(e control.RawEvent) { t.tell(ctx, heard{event: &e}) }
	}
	t.flight.open++
	agent := t.agent
	t.wg.Go(func() {
		o, err := t.client.Stream(ctx, agent, m, show)
		t.tell(ctx, heard{ended: &o, err: err})
	})
}

// tell hands something to run, unless that has ended.
func (p *peer) tell(ctx context.Context, h heard) {
	select {
	case p.heard <- h:
	case <-ctx.Done():
	}
}

// watch follows the agent's events from the last one seen.
func (p *peer) watch(ctx context.Context) {
	if p.watching || p.agent == "" {
		return
	}
	p.watching = true
	from := p.lastID
	filter := control.Filter{Agent: p.agent}
	p.wg.Go(func() {
		err := p.client.Events(ctx, filter, from, func(e control.RawEvent) error {
			p.tell(ctx, heard{event: &e})
			return ctx.Err()
		})
		p.tell(ctx, heard{err: err})
	})
}

// watchAsks gets the requests of all agents: those of the agent's family are shown here.
func (p *peer) watchAsks(ctx context.Context) {
	filter := control.Filter{Types: []event.Type{event.PermissionRequested, event.PermissionDecided}}
	p.wg.Go(func() {
		err := p.client.Events(ctx, filter, "", func(control.RawEvent) error {
			p.tell(ctx, heard{asked: true})
			return ctx.Err()
		})
		p.tell(ctx, heard{err: err})
	})
}

func (t *talk) hear(ctx context.Context, h heard) (over bool, err error) {
	switch {
	case h.event != nil:
		return false, t.showEvent(*h.event)
	case h.asked && (t.flight.open > 0 || t.agent == ""):
		return false, nil
	case h.asked:
		return t.settle(ctx)
	case h.ended == nil:
		return true, h.err
	}
	t.flight.open--
	if t.agent == "" {
		t.agent = h.ended.Agent
	}
	if h.err != nil {
		return t.unsent(h.err)
	}
	if err := t.conclude(*h.ended); err != nil {
		return true, err
	}
	if t.flight.open > 0 {
		t.watch(ctx)
		return false, nil
	}

	t.flight.following = t.flight.following || t.wait
	return t.settle(ctx)
}

// unsent is for a message that could not be sent, or not be waited for.
func (t *talk) unsent(err error) (over bool, _ error) {
	if t.once || errors.Is(err, control.ErrNotRunning) {
		return true, err
	}
	t.c.Report(err)
	t.prompt()

	return false, nil
}

func (t *talk) showEvent(e control.RawEvent) error {
	if e.ID != "" {
		t.lastID = e.ID
	}
	if t.agent == "" {
		t.agent = e.Agent
	}
	if e.Type == event.PermissionDecided {
		if err := decode(e, t.decidedElsewhere); err != nil {
			return err
		}
	}
	if t.c.JSON {
		return t.c.PrintJSON(e.Data)
	}
	if err := t.view.event(e); err != nil {
		return err
	}
	if e.Type == event.TurnFinished && t.flight.open == 0 {
		t.prompt()
	}

	return nil
}

// conclude closes a turn on the screen with its whole text.
func (t *talk) conclude(o event.Outcome) error {
	t.flight.last = o
	if !t.once {
		t.flight.stopping = false // Ctrl-C had its effect; the next one is a first again
	}
	if t.c.JSON {
		if t.view.closed[o.Turn] {
			return nil
		}
		t.view.closed[o.Turn] = o.Turn != ""
		return t.c.PrintJSON(outcomeLine{"outcome", o})
	}

	t.view.finish(o.Turn, o.Reason, o.Text)
	return nil
}

// outcomeLine is the last line that --json prints of a message.
type outcomeLine struct {
	Type string `json:"type"`
	event.Outcome
}

// nextLine makes ready for what the user types next.
func (t *talk) nextLine() {
	if t.flight.last.Reason != "" {
		t.c.Report(ending(t.flight.last))
		t.flight.last.Reason = ""
	}
	t.prompt()
}

// prompt shows that a line can be typed, once while nothing else is printed.
func (t *talk) prompt() {
	if t.once || t.asks.open() || t.view.turn != "" || t.flight.prompted && !t.view.wrote {
		return
	}
	t.flight.prompted = true
	t.view.prompt("> ")
}

// signal: the first Ctrl-C stops the turn, the second leaves.
func (t *talk) signal(ctx context.Context, sig os.Signal) (over bool, err error) {
	if t.flight.stopping || sig == syscall.SIGTERM || t.once && t.asks.open() {
		t.view.typing = !t.once // the ^C stands on the line
		return true, term.ErrInterrupted
	}
	t.flight.stopping = true
	if t.agent == "" || t.flight.open == 0 && !t.flight.following && t.view.turn == "" {
		t.view.note("Ctrl-C again exits")
		t.prompt()
		return false, nil
	}

	t.view.note("stopping; Ctrl-C again exits")
	_, err = t.client.Stop(ctx, t.agent, "")
	return err != nil, err
}
