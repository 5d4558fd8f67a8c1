package agents

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"daycare/engine/record"
)

const (
	loopWindow = 10 // newest calls looked at
	loopTimes  = 5  // the same call with the same result that often among them ends the turn
)

// A loopGuard notices a model that makes the same call over and over.
type loopGuard struct{ newest [][32]byte }

// again notes a call with its result and reports whether the model goes in circles.
func (g *loopGuard) again(c record.ToolCall, r *record.ToolResult) bool {
	sum := sha256.Sum256([]byte(c.Name + "\x00" + string(c.Arguments) + "\x00" + string(r.Status) + "\x00" + r.Output.Text))
	g.newest = append(g.newest, sum)
	if len(g.newest) > loopWindow {
		g.newest = g.newest[1:]
	}

	n := 0
	for _, s := range g.newest {
		if s == sum {
			n++
		}
	}

	return n >= loopTimes
}

// progress ends a turn that makes none. Events of the model and ends of tools are
// progress; while a tool runs or a retry is waited for the clock stands still,
// because these have bounds of their own.
type progress struct {
	mu     sync.Mutex
	timer  *time.Timer
	limit  time.Duration
	holds  int
	cancel context.CancelCauseFunc
}

func watchProgress(ctx context.Context, limit time.Duration) (context.Context, *progress) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &progress{limit: limit, cancel: cancel}
	p.timer = time.AfterFunc(limit, func() { cancel(errStuck) })
	return ctx, p
}

func (p *progress) tick() { p.pause(0) }

// pause adds a wait that is known beforehand.
func (p *progress) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holds == 0 {
		p.timer.Reset(p.limit + d)
	}
}

// hold stops the clock until the returned function is called.
func (p *progress) hold() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds++
	p.timer.Stop()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.holds--; p.holds == 0 {
			p.timer.Reset(p.limit)
		}
	}
}

func (p *progress) stop() {
	p.timer.Stop()
	p.cancel(nil)
}
