package providers

import (
	"context"
	"iter"
	"slices"
	"sync"
)

// DefaultConcurrency is how many calls of one provider are in progress at once.
const DefaultConcurrency = 8

// A Limiter bounds the calls of a provider that are in progress. Who has to wait is
// served fairly: foreground before background, and among the agents that wait in
// turn, so that one with twenty calls does not keep the others out. Of several places
// background calls leave one free: children do not hold up the agent that a user
// waits for. Waiting ends with the context.
type Limiter struct {
	Provider
	mu    sync.Mutex
	free  int
	kept  int     // places for foreground calls alone
	lines [2]line // foreground, background
}

// Limit wraps p; n < 1 takes DefaultConcurrency.
func Limit(p Provider, n int) *Limiter {
	if n < 1 {
		n = DefaultConcurrency
	}
	return &Limiter{Provider: p, free: n, kept: min(1, n-1)}
}

// Stream waits for its place first. Leaving the loop gives it back.
func (l *Limiter) Stream(ctx context.Context, req *Request) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if err := l.enter(ctx, req); err != nil {
			yield(Error{err})
			return
		}
		defer l.leave()
		l.Provider.Stream(ctx, req)(yield)
	}
}

// Waiting is how many calls wait for a place.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[0].n + l.lines[1].n
}

func (l *Limiter) enter(ctx context.Context, req *Request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	line, kept := &l.lines[1], l.kept
	if req.Foreground {
		line, kept = &l.lines[0], 0
	}

	l.mu.Lock()
	if l.free > kept { // nobody waits in this line then
		l.free--
		l.mu.Unlock()
		return nil
	}

	turn := line.join(req.Agent)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}

	l.mu.Lock()
	waited := line.quit(req.Agent, turn)
	l.mu.Unlock()
	if !waited { // the place came at the same moment: pass it on
		l.leave()
	}

	return context.Cause(ctx)
}

// leave hands the place to the next in line, or frees it.
func (l *Limiter) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free++
	for i, kept := range []int{0, l.kept} {
		if l.free <= kept {
			return
		}
		if turn, ok := l.lines[i].next(); ok {
			l.free--
			close(turn)
			return
		}
	}
}

// A line holds those who wait, by agent; the agents take turns.
type line struct {
	agents []*waiting
	n      int
}

type waiting struct {
	agent string
	turns []chan struct{} // first come first
}

func (l *line) join(agent string) chan struct{} {
	turn := make(chan struct{})
	l.n++
	for _, w := range l.agents {
		if w.agent == agent {
			w.turns = append(w.turns, turn)
			return turn
		}
	}

	l.agents = append(l.agents, &waiting{agent, []chan struct{}{turn}})

	return turn
}

// next takes the first turn of the first agent, who goes to the end of the line.
func (l *line) next() (chan struct{}, bool) {
	if len(l.agents) == 0 {
		return nil, false
	}
	w := l.agents[0]
	turn := w.turns[0]
	w.turns = w.turns[1:]
	l.agents = l.agents[1:]
	if len(w.turns) > 0 {
		l.agents = append(l.agents, w)
	}
	l.n--

	return turn, true
}

// quit reports whether the turn was still waiting.
func (l *line) quit(agent string, turn chan struct{}) bool {
	for i, w := range l.agents {
		if w.agent != agent {
			continue
		}
		at := slices.Index(w.turns, turn)
		if at < 0 {
			return false
		}

		w.turns = slices.Delete(w.turns, at, at+1)
		if len(w.turns) == 0 {
			l.agents = slices.Delete(l.agents, i, i+1)
		}
		l.n--
		return true
	}

	return false
}
