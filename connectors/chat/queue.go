package chat

import (
	"context"
	"sync"
	"time"

	"daycare/engine/message"
)

// queued bounds what was read from a platform and is not durable: beyond it nothing more
// is read.
const queued = 64

// A Queue takes messages for platforms that say each thing once and offer nothing
// again: a message that is refused is kept and tried until it is durable, also by
// the next Run. What is in it when the process dies is lost, and nobody could get
// it back.
type Queue struct {
	desk    *Desk
	arrived chan Post
	pause   time.Duration
	taken   func(Post)
	strikes Strikes

	mu   sync.Mutex
	head *Post // being taken, or was when Run ended
}

// NewQueue makes the queue of a desk. pause is waited after the first refusal;
// taken (may be nil) is called with each message that is finished.
func NewQueue(d *Desk, pause time.Duration, taken func(Post)) *Queue {
	return &Queue{desk: d, arrived: make(chan Post, queued), pause: pause, taken: taken, strikes: Strikes{Log: d.log}}
}

// Put adds a message. It waits while there is no room, or until ctx ends (false).
func (q *Queue) Put(ctx context.Context, p Post) bool {
	select {
	case q.arrived <- p:
		return true
	case <-ctx.Done():
		return false
	}
}

// Run takes messages in order until ctx ends.
func (q *Queue) Run(ctx context.Context, deliver message.Deliver) {
	for {
		p := q.next(ctx)
		if p == nil || !q.take(ctx, deliver, *p) {
			return
		}
		q.setHead(nil)
		if q.taken != nil {
			q.taken(*p)
		}
	}
}

// next is the message that was left, else the next one; nil: ctx ended.
func (q *Queue) next(ctx context.Context) *Post {
	q.mu.Lock()
	p := q.head
	q.mu.Unlock()
	if p != nil {
		return p
	}

	select {
	case next := <-q.arrived:
		q.setHead(&next)
		return &next
	case <-ctx.Done():
		return nil
	}
}

func (q *Queue) setHead(p *Post) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.head = p
}

// take tries until the message is durable (true) or ctx ends.
func (q *Queue) take(ctx context.Context, deliver message.Deliver, p Post) bool {
	for n := 0; ; n++ {
		err := q.strikes.Guard(p.Key, func() error { return q.desk.Take(ctx, deliver, p) })
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		q.desk.log.Warn("message not accepted; retrying", "err", err)
		Rest(ctx, q.pause, n)
	}
}
