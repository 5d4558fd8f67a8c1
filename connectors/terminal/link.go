package terminal

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/engine/control"
	"daycare/engine/event"
)

const (
	// batchEvery is how often events are handed to the screen at most.
	batchEvery = 33 * time.Millisecond
	// Connecting again begins soon, because a daemon that restarts is back soon,
	// and gets rarer.
	retryFirst, retryLast = 100 * time.Millisecond, 3 * time.Second
)

// outline is what is heard of all agents: everything but the text that streams.
var outline = []event.Type{
	event.AgentCreated, event.AgentWoke, event.AgentSlept, event.AgentReset, event.AgentCompacted, event.AgentEnded,
	event.ItemQueued, event.ItemTaken, event.ItemDone, event.ItemDropped, event.ItemEdited, event.ItemMoved,
	event.TurnStarted, event.TurnFinished, event.ToolStarted, event.ToolFinished,
	event.SubAgentStart, event.SubAgentEnd, event.Retry,
	event.PermissionRequested, event.PermissionDecided, event.PermissionGranted, event.PermissionRevoked,
	event.OutboxFailed, event.ConfigReloaded, event.ConfigInvalid, event.FileEdited, event.FileInvalid, event.BudgetReached,
}

// Messages of the link.
type (
	online   struct{}
	offline  struct{ err error }
	heardAll struct{ events []control.RawEvent }
	// heardOne is what is heard of the one agent that is looked at.
	heardOne struct {
		agent  string
		events []control.RawEvent
	}
)

// A link keeps the connection to the daemon. It listens to the outline of all
// agents and to every word of one.
type link struct {
	dial func(context.Context) (*control.Client, error)
	want chan followed // capacity 1: the newest wish

	mu     sync.Mutex
	client *control.Client // nil while there is no connection
	lastID string          // of the newest event of the outline
}

// followed is whom to listen to, from which event on.
type followed struct{ agent, from string }

func newLink(dial func(context.Context) (*control.Client, error)) *link {
	return &link{dial: dial, want: make(chan followed, 1)}
}

// current returns the client, nil while there is no connection.
func (l *link) current() *control.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client
}

func (l *link) set(c *control.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client = c
}

// follow listens to another agent; "" to none. What happened since the newest
// known event is repeated, so that nothing is lost between history and events.
func (l *link) follow(agent string) {
	l.mu.Lock()
	f := followed{agent, l.lastID}
	l.mu.Unlock()
	for {
		select {
		case l.want <- f:
			return
		default:
		}
		select { // the wish before was not taken yet: it is void
		case <-l.want:
		default:
		}
	}
}

// run connects, and again, until ctx ends. It returns when all it started has.
func (l *link) run(ctx context.Context, send func(tea.Msg)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { l.followers(ctx, send) })
	for pause := retryFirst; ; pause = min(2*pause, retryLast) {
		client, err := l.dial(ctx)
		if err == nil {
			pause = retryFirst
			l.set(client)
			send(online{})
			err = l.listen(ctx, client, send)
			l.set(nil)
			client.Close()
		}
		if ctx.Err() != nil {
			return
		}
		send(offline{err})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// listen tells the outline until the connection ends.
func (l *link) listen(ctx context.Context, c *control.Client, send func(tea.Msg)) error {
	l.mu.Lock()
	from := l.lastID
	l.mu.Unlock()
	return batched(ctx, func(b []control.RawEvent) { send(heardAll{b}) }, func(ctx context.Context, f func(control.RawEvent)) error {
		return c.Events(ctx, control.Filter{Types: outline}, from, func(e control.RawEvent) error {
			if e.ID != "" {
				l.mu.Lock()
				l.lastID = e.ID
				l.mu.Unlock()
			}
			f(e)
			return nil
		})
	})
}

// followers listens to one agent after the other, as it is wished.
func (l *link) followers(ctx context.Context, send func(tea.Msg)) {
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case f := <-l.want:
			end()
			end = l.followOne(ctx, f, send)
		case <-ctx.Done():
			return
		}
	}
}

// followOne listens to one agent until end is called or the connection ends; the
// connection that follows is wished for again.
func (l *link) followOne(ctx context.Context, f followed, send func(tea.Msg)) (end func()) {
	client := l.current()
	if client == nil || f.agent == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = batched(ctx, func(b []control.RawEvent) { send(heardOne{f.agent, b}) },
			func(ctx context.Context, tell func(control.RawEvent)) error {
				return client.Events(ctx, control.Filter{Agent: f.agent}, f.from, func(e control.RawEvent) error {
					tell(e)
					return nil
				})
			})
	})
	return func() { cancel(); wg.Wait() }
}

// batched runs a source of events and hands on what it tells: the first at once,
// more at most every batchEvery.
func batched(ctx context.Context, hand func([]control.RawEvent), source func(context.Context, func(control.RawEvent)) error) error {
	var (
		mu    sync.Mutex
		batch []control.RawEvent
		wake  = make(chan struct{}, 1)
		wg    sync.WaitGroup
	)
	ctx, cancel := context.WithCancel(ctx)
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		for {
			select {
			case <-wake:
			case <-ctx.Done():
				return
			}
			mu.Lock()
			full := batch
			batch = nil
			mu.Unlock()
			hand(full)
			select {
			case <-time.After(batchEvery):
			case <-ctx.Done():
				return
			}
		}
	})
	return source(ctx, func(e control.RawEvent) {
		mu.Lock()
		batch = append(batch, e)
		mu.Unlock()
		select {
		case wake <- struct{}{}:
		default:
		}
	})
}
