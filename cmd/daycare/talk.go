package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/record"
)

// lookEvery is how often a talk asks how the agent stands while it waits for a
// turn that none of its own messages began.
const lookEvery = 200 * time.Millisecond

// A talk is a conversation with one agent. One goroutine, run, owns the screen and
// all of this; others only hand it what they hear.
//
// The first message's own stream shows its turn. When that has ended, the events
// of the agent are followed from there on: they show the turns that begin with
// somebody's approval, with the report of a background agent, with a message from
// elsewhere. How an item ended is never taken from events, which may be lost, but
// from its stream's outcome, or from history.
type talk struct {
	c       *cli
	client  *control.Client
	view    *view
	asks    *approvals
	signals <-chan os.Signal

	agent  string // id; "" until the first message made or found it
	once   bool   // one message, then leave
	wait   bool   // leave only when background agents are done, too
	heard  chan heard
	typed  <-chan string // nil: nobody types
	flight flight
	wg     sync.WaitGroup
}

// flight is what is under way.
type flight struct {
	open      int           // own messages without an outcome
	following bool          // a turn is due that no own message waits for
	watching  bool          // the agent's events are followed
	lastID    string        // of the newest event
	last      event.Outcome // of the newest turn
	stopping  bool          // Ctrl-C was pressed
	prompted  bool          // the prompt stands on the screen
	looked    time.Time     // when the queue of requests was last read
	calm      time.Time     // since when a turn is due and the agent has no work
}

// heard is what goroutines hand to run: an event, the end of an own message, or
// the end of the watch.
type heard struct {
	event *control.RawEvent
	ended *event.Outcome
	err   error // with ended: of the message; alone: of the watch
}

func (c *cli) newTalk(client *control.Client, o chatOptions, signals <-chan os.Signal, once bool) *talk {
	return &talk{c: c, client: client, view: c.newView(), asks: newApprovals(c, o.permission), signals: signals,
		once: once, wait: o.wait, heard: make(chan heard)}
}

// run talks until it is over: after the answer to text, or, with no text, when
// the person leaves.
func (t *talk) run(ctx context.Context, text string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer t.wg.Wait()
	defer cancel()
	if err := t.asks.begin(ctx, t.client, t.once); err != nil {
		return err
	}
	if t.once {
		t.say(ctx, text)
	} else {
		t.typed = t.c.typedLines()
		t.c.note("Enter sends, /help says what else there is.")
		t.prompt()
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var over bool
		var err error
		select {
		case h := <-t.heard:
			over, err = t.hear(ctx, h)
		case line, ok := <-t.typed:
			over, err = t.line(ctx, line, ok)
		case sig := <-t.signals:
			over, err = t.signal(ctx, sig)
		case <-tick.C:
			over, err = t.look(ctx)
		}
		if over || err != nil {
			t.view.newline()
			return err
		}
	}
}

// say sends a message and hears of its end.
func (t *talk) say(ctx context.Context, text string) {
	m := own(control.Message{Text: text})
	show := func(control.RawEvent) {}
	if !t.flight.watching && t.flight.open == 0 {
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
func (t *talk) tell(ctx context.Context, h heard) {
	select {
	case t.heard <- h:
	case <-ctx.Done():
	}
}

// watch follows the agent's events from the last one seen.
func (t *talk) watch(ctx context.Context) {
	if t.flight.watching || t.agent == "" {
		return
	}
	t.flight.watching = true
	from := t.flight.lastID
	filter := control.Filter{Agent: t.agent}
	t.wg.Go(func() {
		err := t.client.Events(ctx, filter, from, func(e control.RawEvent) error {
			t.tell(ctx, heard{event: &e})
			return ctx.Err()
		})
		t.tell(ctx, heard{err: err})
	})
}

func (t *talk) hear(ctx context.Context, h heard) (over bool, err error) {
	switch {
	case h.event != nil:
		return false, t.showEvent(*h.event)
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
	t.c.report(err)
	t.prompt()
	return false, nil
}

func (t *talk) showEvent(e control.RawEvent) error {
	if e.ID != "" {
		t.flight.lastID = e.ID
	}
	if t.agent == "" {
		t.agent = e.Agent
	}
	if e.Type == event.PermissionDecided {
		if err := show(e, t.decidedElsewhere); err != nil {
			return err
		}
	}
	if t.c.json {
		return t.c.printJSON(e.Data)
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
	if t.c.json {
		if t.view.closed[o.Turn] {
			return nil
		}
		t.view.closed[o.Turn] = o.Turn != ""
		return t.c.printJSON(outcomeLine{"outcome", o})
	}
	t.view.finish(o.Turn, o.Reason, o.Text)
	return nil
}

// outcomeLine is the last line that --json prints of a message.
type outcomeLine struct {
	Type string `json:"type"`
	event.Outcome
}

// look is the regular glance while no own message is under way.
func (t *talk) look(ctx context.Context) (over bool, err error) {
	idle := !t.flight.following && time.Since(t.flight.looked) < time.Second
	if t.flight.open > 0 || t.agent == "" || idle || t.once && t.asks.open() {
		return false, nil
	}
	return t.settle(ctx)
}

// settle decides, with no own message under way, whether more is to come: the
// answer of a person to what the agent asks, and the turns that follow from it.
func (t *talk) settle(ctx context.Context) (over bool, err error) {
	t.flight.looked = time.Now()
	asks, err := familyAsks(ctx, t.client, t.agent)
	if err != nil {
		return true, err
	}
	if err := t.answerAsks(ctx, t.asks.fresh(asks, t.flight.last.Reason == record.ReasonWaiting)); err != nil || t.asks.open() {
		return err != nil, err
	}
	if t.flight.following {
		t.watch(ctx)
		if more, err := t.busy(ctx); more || err != nil {
			t.flight.calm = time.Time{}
			return err != nil, err
		}
		return t.settled(ctx)
	}
	if !t.once {
		t.watch(ctx)
		t.nextLine()
		return false, nil
	}
	return true, t.leaving()
}

// busy reports whether the agent is at work or will be; with --wait, its
// background agents too.
func (t *talk) busy(ctx context.Context) (bool, error) {
	agents, err := t.client.Agents(ctx)
	if err != nil {
		return false, err
	}
	for _, a := range agents {
		mine := a.ID == t.agent || t.wait && inFamily(agents, a.ID, t.agent)
		if mine && busy(a, t.wait) {
			return true, nil
		}
	}
	return false, nil
}

// calmLimit is how long an agent without work is believed to begin a turn that a
// decision has to lead to.
const calmLimit = 10 * time.Second

// settled: the agent is not at work. The turns that were due are over when history
// has a turn after each decision; the newest is shown from there, because its
// events may have been lost.
func (t *talk) settled(ctx context.Context) (over bool, err error) {
	p, err := readPast(ctx, t.client, t.agent)
	if err != nil {
		return true, err
	}
	if t.flight.calm.IsZero() {
		t.flight.calm = time.Now()
	}
	if !t.asks.heardOf(p.followed) && time.Since(t.flight.calm) < calmLimit {
		return false, nil
	}
	t.flight.following = false
	if p.last.Turn != "" && p.last.Turn != t.flight.last.Turn {
		if err := t.conclude(p.last); err != nil {
			return true, err
		}
	}
	return t.settle(ctx)
}

// nextLine makes ready for what the person types next.
func (t *talk) nextLine() {
	if t.flight.last.Reason != "" {
		t.c.report(ending(t.flight.last))
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

// leaving is the exit of a talk of one message.
func (t *talk) leaving() error {
	if t.flight.stopping {
		return errInterrupted
	}
	if t.asks.left != nil {
		return needsApproval(*t.asks.left)
	}
	if err := ending(t.flight.last); err != nil {
		return err
	}
	if t.asks.denied {
		return &problem{code: exitDenied, err: errSilent}
	}
	if t.flight.last.Reason == record.ReasonWaiting {
		t.c.note("it waits for its background agents; with --wait the command does, too")
	}
	return nil
}

// signal: the first Ctrl-C stops the turn, the second leaves.
func (t *talk) signal(ctx context.Context, sig os.Signal) (over bool, err error) {
	if t.flight.stopping || sig == syscall.SIGTERM || t.once && t.asks.open() {
		return true, errInterrupted
	}
	t.flight.stopping = true
	if t.agent == "" || t.flight.open == 0 && !t.flight.following && t.view.turn == "" {
		t.view.note("Ctrl-C again leaves")
		return false, nil
	}
	t.view.note("stopping; Ctrl-C again leaves")
	_, err = t.client.Stop(ctx, t.agent)
	return err != nil, err
}
