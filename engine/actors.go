package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// actors are the agents that are in memory.
type actors struct {
	place
	descriptors *descriptors
	connectors  *connectors
	senders     *senders
	waker       *waker
	quota       *inbox.Quota

	start atomic.Pointer[StartFunc]
	ctx   context.Context // ends when agents are to suspend
	stop  context.CancelCauseFunc
	wg    sync.WaitGroup

	memory
	spent sync.Map // by id: what agents that have ended have cost
}

// A memory has the entries of actors.
type memory struct {
	mu        sync.Mutex
	entries   map[string]*entry
	subagents map[string]*entry // of entries, those of subagents
	saved     *edits            // whose settings may differ from what other machines have
}

// WakeAll wakes the agents whose files do not prove that they have nothing to do. An
// agent that wakes repairs what a crash or a hand left in its files.
func (a *actors) WakeAll(ctx context.Context) {
	ids := a.index.IDs()
	each(len(ids), func(i int) {
		if ctx.Err() == nil && !a.settled(ids[i]) {
			a.wake(ids[i])
		}
	})
}

// each calls do for 0 to n-1, some of them at the same time, and waits for all.
func each(n int, do func(i int)) {
	const together = 16 // one after the other
	var group errgroup.Group
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	for from := 0; from < n; from += together {
		group.Go(func() error {
			for i := from; i < min(from+together, n); i++ {
				do(i)
			}
			return nil
		})
	}

	_ = group.Wait() // none of them fails
}

// wake starts an agent that has work in its files. An entry that goes to sleep at this
// moment (a delivery found it, and not yet whom to start) is looked up again.
func (a *actors) wake(id string) {
	for {
		e, err := a.entry(id)
		if err != nil {
			return
		}
		if e.lockAndWake() {
			return
		}
	}
}

// entry returns the entry of an agent, making it. Errors: message.ErrUnknownAgent.
func (a *actors) entry(id string) (*entry, error) {
	meta, ok := a.index.Get(id)
	if !ok {
		return nil, fmt.Errorf("%w: %s", message.ErrUnknownAgent, id)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.entries[id]
	if !ok {
		e = &entry{actors: a, meta: meta, dir: a.folder(id), edited: make(chan struct{}, 1)}
		a.entries[id] = e
		if meta.Descriptor.Type == address.Subagent {
			a.subagents[id] = e
		}
	}

	return e, nil
}

// acquire returns an agent's entry with its mailbox loaded; release it after use.
func (a *actors) acquire(id string) (*entry, inbox.Mailbox, error) {
	for {
		e, err := a.entry(id)
		if err != nil {
			return nil, nil, err
		}
		box, err := e.open()
		if errors.Is(err, errGone) {
			continue
		}
		return e, box, err
	}
}

// forget takes an entry that sleeps out of memory.
func (a *actors) forget(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries[e.meta.ID] == e {
		delete(a.entries, e.meta.ID)
		delete(a.subagents, e.meta.ID)
	}
}

// awake returns the entry of an agent if it is in memory.
func (m *memory) awake(id string) (*entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[id]
	return e, ok
}

// runs reports whether an agent is in memory, and so watches its files.
func (a *actors) runs(id string) bool {
	e, ok := a.awake(id)
	if !ok {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}

// busy reports whether an agent is at work or has work waiting.
func (a *actors) busy(id string) bool {
	if waits, _ := a.waker.waits(id); waits {
		return true
	}
	e, ok := a.awake(id)
	if !ok {
		return false
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.box == nil {
		return false
	}

	act := e.activity.Load()
	return e.box.Len() > 0 || e.running && act != nil && act.state != event.Idle
}

func (m *memory) awakeSubagents() []*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.subagents))
}

// ended reports whether an agent was ended, by this process or an earlier one. Its files
// are read once: from then on the index knows.
func (a *actors) ended(id string) bool {
	if e, ok := a.awake(id); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.ended {
			return true
		}
	}
	if ended, known := a.index.Ended(id); known {
		return ended
	}

	state, _, _ := record.CurrentState(a.vol, a.folder(id)) // the agent reports what cannot be read
	a.index.SawEnded(id, state.Ended != nil)
	return state.Ended != nil
}
