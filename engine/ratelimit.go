package engine

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"daycare/engine/crash"
	"daycare/engine/message"
)

// maxLimited is how many senders are remembered; those who have been quiet for a
// minute are forgotten first.
const maxLimited = 10_000

// A rateLimit keeps one sender of a connector from flooding the inboxes. Messages above
// the limit are refused with *message.TooFast, and the platform keeps them meanwhile.
type rateLimit struct {
	next      message.Deliver
	perMinute func() int // asked each time: settings may change; 0 means no limit

	mu      sync.Mutex
	senders map[message.Address]*rate.Limiter
}

func newRateLimit(next message.Deliver, perMinute func() int) *rateLimit {
	if perMinute == nil {
		perMinute = func() int { return 0 }
	}
	return &rateLimit{next: next, perMinute: perMinute, senders: map[message.Address]*rate.Limiter{}}
}

// deliver hands a message on unless its sender is too fast. What is not accepted
// does not count.
func (p *rateLimit) deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	limit := p.perMinute()
	if limit <= 0 || in.Kind != "" && in.Kind != message.Text {
		return p.next(ctx, in) // a /reset or a note of an edit comes through
	}
	now := crash.Now()
	r := p.limiter(in.From, limit, now).ReserveN(now, 1)
	if after := r.DelayFrom(now); after > 0 {
		r.CancelAt(now)
		return message.Receipt{}, &message.TooFast{After: after}
	}

	receipt, err := p.next(ctx, in)
	if err != nil {
		r.CancelAt(now)
	}

	return receipt, err
}

// limiter is that of a sender: a minute's worth at once, and then as much a minute.
func (p *rateLimit) limiter(from message.Address, limit int, now time.Time) *rate.Limiter {
	from.ThreadID = "" // threads are free to open
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.senders[from]
	if l == nil {
		p.forget(now)
		l = rate.NewLimiter(rate.Limit(float64(limit)/60), limit)
		p.senders[from] = l
	}
	if l.Burst() != limit {
		l.SetBurstAt(now, limit)
		l.SetLimitAt(now, rate.Limit(float64(limit)/60))
	}

	return l
}

// forget makes room for one more. A sender who has all of a minute's messages left
// is as good as unknown. mu is held.
func (p *rateLimit) forget(now time.Time) {
	if len(p.senders) < maxLimited {
		return
	}
	for from, l := range p.senders {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(p.senders, from)
		}
	}

	for from := range p.senders {
		if len(p.senders) < maxLimited {
			return
		}
		delete(p.senders, from)
	}
}
