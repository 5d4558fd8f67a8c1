package event

import (
	"context"
	"math"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// buffer is how many values a slow subscriber may be behind before it loses some.
const buffer = 64

// A Broker hands each value to everyone who subscribed, never waiting for any of
// them: a subscriber whose buffer is full loses the value. The zero value works.
type Broker[T any] struct {
	mu   sync.RWMutex
	subs map[chan T]struct{}
}

// Publish hands v to all subscribers.
func (b *Broker[T]) Publish(v T) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for ch := range b.subs {
		select {
		case ch <- v:
		default:
		}
	}
}

// Subscribe returns a channel that is closed when ctx ends.
func (b *Broker[T]) Subscribe(ctx context.Context) <-chan T {
	ch := make(chan T, buffer)
	b.mu.Lock()
	if b.subs == nil {
		b.subs = map[chan T]struct{}{}
	}

	b.subs[ch] = struct{}{}
	b.mu.Unlock()
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		delete(b.subs, ch)
		close(ch)
		b.mu.Unlock()
	})

	return ch
}

// Watched reports whether anybody is subscribed, so that an event which is costly
// to make need not be made.
func (b *Broker[T]) Watched() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.subs) > 0
}

// How much is kept for those who come back: events, and bytes of what they carry, since
// one may have the whole arguments of a tool or a whole answer.
const (
	ringSize  = 4096
	ringBytes = 8 << 20
)

// A Stream is the Broker of all events of one process. It numbers them and keeps
// the newest (deltas aside) within ringSize and ringBytes, so that a watcher that lost
// some can fetch them, or learns that it cannot.
type Stream struct {
	Broker[Event]
	watches watches
	boot    string

	mu    sync.Mutex
	ring  [ringSize]Event
	first uint64        // number of the oldest that is kept
	bytes int           // of those that are kept
	next  atomic.Uint64 // number of the next event, from 1
}

// NewStream makes the stream of one process; boot tells it from earlier ones.
func NewStream(boot string) *Stream {
	s := &Stream{boot: boot, first: 1}
	s.next.Store(1)
	return s
}

// Emit numbers, keeps and publishes an event. At is set if it is zero.
func (s *Stream) Emit(e Event) {
	if !e.Replayable() && !s.Watched(e.Agent) {
		return // it would not be kept either: an answer has one for each piece
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.encoded = &encoded{}
	if !e.Replayable() {
		s.hand(e)
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock() // publishing inside keeps the order of the numbers
	n := s.next.Load()
	e.ID = s.boot + "." + strconv.FormatUint(n, 10)
	s.keep(n, e)
	s.next.Store(n + 1)
	s.hand(e)
}

// hand gives an event to all who watch.
func (s *Stream) hand(e Event) {
	s.Publish(e)
	s.watches.see(e)
}

// keep puts an event into the ring and lets the oldest go for which there is no room.
func (s *Stream) keep(n uint64, e Event) {
	if n-s.first >= ringSize {
		s.drop()
	}
	kept := &s.ring[n%ringSize]
	*kept = e
	for s.bytes += weight(reflect.ValueOf(kept).Elem()); s.first < n && s.bytes > ringBytes; {
		s.drop()
	}
}

// drop lets the oldest event go.
func (s *Stream) drop() {
	old := &s.ring[s.first%ringSize]
	s.bytes -= weight(reflect.ValueOf(old).Elem())
	*old = Event{}
	s.first++
}

// weight is how many bytes the texts in a value have, whatever its type is.
func weight(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return weight(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0 // its zone is shared by all
		}
		for i := range v.NumField() {
			n += weight(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len()
		}
		for i := range v.Len() {
			n += weight(v.Index(i))
		}
	}

	return n
}

// Since returns the events numbered from up to (exclusive) the next one, and the
// number of the first that is still kept: above from, there is a gap.
func (s *Stream) Since(from uint64) (events []Event, first uint64) {
	return s.Between(from, math.MaxUint64)
}

// Between is Since without the events numbered to and above.
func (s *Stream) Between(from, to uint64) (events []Event, first uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = max(from, s.first)
	for n := first; n < min(to, s.next.Load()); n++ {
		events = append(events, s.ring[n%ringSize])
	}

	return events, first
}

// Next is the number that the next event will get.
func (s *Stream) Next() uint64 { return s.next.Load() }

// Boot tells the streams of two processes apart; ids are boot.number.
func (s *Stream) Boot() string { return s.boot }
