package chat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"daycare/engine/message"
)

// maxArrived bounds what arrived and is not taken yet. What is more is fetched when there
// is room.
const maxArrived = 256

// saveEvery is how often marks are saved while messages come. What was taken since is
// fetched once more after a crash and dropped by its dedupe key.
const saveEvery = 2 * time.Second

// ErrNoChannel is what a fetch returns for a channel that is gone, or not ours to read.
var ErrNoChannel = errors.New("the channel cannot be read")

// An Arrival is a message as a platform handed it over.
type Arrival[T any] struct {
	Channel string
	At      int64 // its position among those of its channel, ascending; 0: a note, which is never fetched
	What    T
}

// A Backlog takes messages of many channels from platforms that say each thing once and can be asked for what was
// missed. It accepts the messages of a channel in order and leaves none out. Memory is bounded, however many there
// are: if messages come faster than they are accepted, or came while the connector was not running, it fetches
// them page by page.
type Backlog[T any] struct {
	from  Source[T]
	log   *slog.Logger
	pause time.Duration // after the first failure
	wake  chan struct{} // capacity 1
	tries Strikes

	mu      sync.Mutex
	arrived []Arrival[T]
	behind  []string        // channels to fetch from, in their order
	newer   map[string]bool // of those behind: something arrived since the last fetch began
	marks   marks
	dirty   bool // marks are not saved
}

// A Source is a platform as a backlog sees it. Its functions are called one at a time.
type Source[T any] struct {
	Connector string // its id
	Keeper    Keeper // keeps the marks durably; nil: they are lost with the process
	Now, Then int64  // the positions of this moment, and of a day ago
	Margin    int64  // how much later than a message of another channel one may arrive
	Take      func(ctx context.Context, deliver message.Deliver, a Arrival[T]) error
	// Fetch returns messages of a channel after a position, oldest first, and whether there
	// may be more. Errors: ErrNoChannel; any other is tried again.
	Fetch func(ctx context.Context, channel string, after int64) (page []Arrival[T], more bool, err error)
}

// NewBacklog makes the backlog of a platform. pause is waited after the first failure.
func NewBacklog[T any](from Source[T], pause time.Duration, log *slog.Logger) *Backlog[T] {
	b := &Backlog[T]{from: from, log: log, pause: pause, wake: make(chan struct{}, 1), newer: map[string]bool{}, tries: Strikes{Log: log},
		marks: marks{connector: from.Connector, keeper: from.Keeper, margin: from.Margin}}

	return b
}

// load reads the marks at first use: connectors are made to look at them, too. mu is held.
func (b *Backlog[T]) load() {
	if b.marks.Channel != nil {
		return
	}
	if err := b.marks.load(b.from.Now, b.from.Then); err != nil {
		b.log.Error("messages that came while daycare was not running may be missed", "err", err)
	}
}

// Put adds what arrived. It never waits.
func (b *Backlog[T]) Put(a Arrival[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load()
	_, behind := b.newer[a.Channel]
	switch {
	case a.At == 0:
		if len(b.arrived) < maxArrived {
			b.arrived = append(b.arrived, a)
		}
	case a.At <= b.marks.after(a.Channel):
		if !b.marks.late(a.Channel, a.At) {
			return
		}
		b.arrived = append(b.arrived, a) // fetching begins behind it
	case behind:
		b.newer[a.Channel] = true
	case b.marks.held, len(b.arrived) >= maxArrived: // others may come before it, or there is no room
		b.late(a.Channel)
	default:
		b.arrived = append(b.arrived, a)
	}

	b.poke()
}

// Missed says that newest is the newest message of a channel, of which nothing may have
// arrived; 0: that is not known.
func (b *Backlog[T]) Missed(channel string, newest int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load()
	if newest > 0 && newest <= b.marks.after(channel) {
		return
	}
	b.late(channel)
	b.poke()
}

// late has a channel fetched. Its messages that arrived are fetched, too, except the one
// that is being taken and those that fetching begins behind. mu is held.
func (b *Backlog[T]) late(channel string) {
	if _, ok := b.newer[channel]; ok {
		b.newer[channel] = true
		return
	}
	b.behind, b.newer[channel] = append(b.behind, channel), false
	for i := len(b.arrived) - 1; i > 0; i-- {
		if a := b.arrived[i]; a.Channel == channel && a.At > b.marks.after(channel) {
			b.arrived = slices.Delete(b.arrived, i, i+1)
		}
	}
}

// Known says whether all channels of which something may have been missed are known. While
// they are not, what arrives is fetched, so that it comes after what was missed before it.
func (b *Backlog[T]) Known(all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load()
	b.marks.held = !all
}

// Taken reports whether the message of a channel at a position was taken.
func (b *Backlog[T]) Taken(channel string, at int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load()
	return at <= b.marks.after(channel)
}

func (b *Backlog[T]) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run takes messages until ctx ends. What is left then is taken by the next Run.
func (b *Backlog[T]) Run(ctx context.Context, deliver message.Deliver) {
	b.mu.Lock()
	b.load()
	b.mu.Unlock()
	saved, failures := time.Now(), 0
	var fetchAt time.Time // nothing is fetched before
	for ctx.Err() == nil {
		if a, ok := b.first(); ok {
			if !b.take(ctx, deliver, a) {
				break
			}
			b.done(a)
		}
		if channel, ok := b.next(); ok && !time.Now().Before(fetchAt) {
			if err := b.catchUp(ctx, deliver, channel); err != nil && ctx.Err() == nil {
				b.log.Warn("cannot fetch missed messages; trying again", "channel", channel, "err", err)
				fetchAt = time.Now().Add(min(b.pause<<min(failures, 10), longPause))
				failures++
			} else {
				failures = 0
			}
		}
		if time.Since(saved) >= saveEvery {
			b.save()
			saved = time.Now()
		}

		b.wait(ctx, fetchAt, saved.Add(saveEvery))
	}

	b.save()
}

// first is the oldest message that arrived.
func (b *Backlog[T]) first() (a Arrival[T], ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.arrived) == 0 {
		return a, false
	}

	return b.arrived[0], true
}

// next is the channel to fetch from.
func (b *Backlog[T]) next() (channel string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.behind) == 0 || len(b.arrived) > 0 && b.arrived[0].Channel == b.behind[0] {
		return "", false // what arrived first is taken first
	}

	return b.behind[0], true
}

// take tries until a message is durable (true) or ctx ends.
func (b *Backlog[T]) take(ctx context.Context, deliver message.Deliver, a Arrival[T]) bool {
	for n := 0; ; n++ {
		key := fmt.Sprint(a.Channel, "/", a.At)
		err := b.tries.Guard(key, func() error { return b.from.Take(ctx, deliver, a) })
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		b.log.Warn("message not accepted; retrying", "err", err)
		Rest(ctx, b.pause, n)
	}
}

// done takes the oldest message that arrived off, and notes that it was taken.
func (b *Backlog[T]) done(a Arrival[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived = slices.Delete(b.arrived, 0, 1)
	b.passed(a)
}

// passed notes that a message was taken. mu is held.
func (b *Backlog[T]) passed(a Arrival[T]) {
	if a.At != 0 {
		b.marks.pass(a.Channel, a.At)
		b.dirty = true
	}
}

// catchUp fetches and takes a page of a channel. After the last one the channel is not
// behind any more; else others come first.
func (b *Backlog[T]) catchUp(ctx context.Context, deliver message.Deliver, channel string) error {
	b.mu.Lock()
	after := b.marks.after(channel)
	b.newer[channel] = false
	b.mu.Unlock()
	page, more, err := b.from.Fetch(ctx, channel, after)
	if errors.Is(err, ErrNoChannel) {
		b.log.Debug("missed messages are not fetched", "channel", channel, "err", err)
		page, more, err = nil, false, nil
	}

	for _, a := range page {
		if b.Taken(channel, a.At) {
			continue
		}
		if !b.take(ctx, deliver, a) {
			return ctx.Err()
		}
		b.mu.Lock()
		b.passed(a)
		b.mu.Unlock()
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	b.behind = slices.DeleteFunc(b.behind, func(other string) bool { return other == channel })
	if more || err != nil || b.newer[channel] {
		b.behind = append(b.behind, channel)
	} else {
		delete(b.newer, channel)
	}

	return err
}

// save keeps the marks, if there is anything new.
func (b *Backlog[T]) save() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dirty {
		return
	}
	late := slices.Clone(b.behind)
	for _, a := range b.arrived {
		late = append(late, a.Channel)
	}

	if err := b.marks.save(late); err != nil {
		b.log.Warn("messages will be fetched again after a restart", "err", err)
		return
	}
	b.dirty = false
}

// wait waits for something to do, or until marks have to be saved.
func (b *Backlog[T]) wait(ctx context.Context, fetchAt, saveAt time.Time) {
	b.mu.Lock()
	var due <-chan time.Time
	switch {
	case len(b.arrived) > 0, len(b.behind) > 0 && !time.Now().Before(fetchAt):
		b.mu.Unlock()
		return
	case len(b.behind) > 0 && b.dirty && saveAt.Before(fetchAt), len(b.behind) == 0 && b.dirty:
		due = time.After(time.Until(saveAt))
	case len(b.behind) > 0:
		due = time.After(time.Until(fetchAt))
	}
	b.mu.Unlock()

	select {
	case <-b.wake:
	case <-due:
	case <-ctx.Done():
	}
}
