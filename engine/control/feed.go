package control

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"daycare/engine/event"
)

const (
	// maxPending is how many events wait for one slow reader; what comes after
	// them is fetched from the stream's ring once the reader has caught up.
	maxPending = 1024
	// maxPendingText bounds the text of the deltas that wait for one slow reader,
	// in bytes. Beyond it text is dropped: the reader sees the hole by the offset.
	maxPendingText = 4 << 20
	// tailCheck is how often the end of the ring is looked at for events that
	// the Broker dropped with none after them.
	tailCheck = time.Second
)

// A feed holds the events that one watcher has not read yet, between the Broker, which
// never waits, and a reader, who may. It holds a bounded number of events,
// joins the deltas of one agent while the reader is slow, and knows by the
// numbers which of the other events were lost: it leaves a mark in their place,
// and the reader gets them from the ring.
type feed struct {
	stream *event.Stream
	match  func(event.Event) bool

	mu    sync.Mutex
	queue []entry
	last  map[string]int // agent: index in queue of its newest entry
	text  int            // bytes of the deltas in queue
	seen  uint64         // number of the next event that is expected

	wake chan struct{} // capacity 1
	done chan struct{} // closed when the pump ended
}

// An entry is an event, or the mark of events that have to be fetched.
type entry struct {
	event.Event
	more     []string // texts of the deltas that were joined to this one
	end      int      // of a delta: the offset where the next one would begin
	from, to uint64   // to > 0: fetch these (to exclusive)
}

// whole is the entry's event, with the text of all joined deltas.
func (e entry) whole() event.Event {
	if d, ok := e.Body.(event.Delta); ok && len(e.more) > 0 {
		d.Text += strings.Join(e.more, "")
		return e.WithBody(d)
	}
	return e.Event
}

// newFeed subscribes from event number `from` on and starts the pump, which ends
// with ctx; wait for done.
func newFeed(ctx context.Context, s *event.Stream, from uint64, match func(event.Event) bool) *feed {
	f := &feed{
		stream: s, match: match, last: map[string]int{}, seen: from,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	events := s.Subscribe(ctx)
	f.catchUp()
	go f.pump(events)

	return f
}

// pump moves events from the Broker's small buffer into the queue.
func (f *feed) pump(events <-chan event.Event) {
	defer close(f.done)
	tick := time.NewTicker(tailCheck)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			f.add(e)
		case <-tick.C:
			if len(events) == 0 {
				f.catchUp()
			}
		}
	}
}

// catchUp leaves a mark for what the ring has and the feed has not seen.
func (f *feed) catchUp() {
	next := f.stream.Next()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missed(next)
}

// missed queues a mark for the events before number n. Callers hold mu.
func (f *feed) missed(n uint64) {
	if n <= f.seen {
		return
	}
	if k := len(f.queue); k > 0 && f.queue[k-1].to == f.seen {
		f.queue[k-1].to = n
	} else {
		f.queue = append(f.queue, entry{from: f.seen, to: n})
		clear(f.last) // no delta may move before a mark: its turn may begin there
	}

	f.seen = n
	f.signal()
}

func (f *feed) add(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := numberOf(e.ID); ok {
		if n < f.seen {
			return // fetched already
		}
		f.missed(n)
		if len(f.queue) >= maxPending {
			f.missed(n + 1)
			return
		}

		f.seen = n + 1
		if !f.match(e) {
			return
		}
		f.push(entry{Event: e})
		return
	}
	if f.match(e) {
		f.addDelta(e)
	}
}

func (f *feed) push(e entry) {
	f.last[e.Agent] = len(f.queue)
	f.queue = append(f.queue, e)
	f.signal()
}

// addDelta joins a delta to the one that waits, if that is the agent's newest
// entry and the text continues where it ends; else it gets an entry of its own.
func (f *feed) addDelta(e event.Event) {
	if p, ok := e.Body.(event.Progress); ok {
		f.addProgress(e, len(p.Text))
		return
	}
	d, ok := e.Body.(event.Delta)
	if !ok || f.text+len(d.Text) > maxPendingText {
		return
	}

	f.text += len(d.Text)
	end := d.Offset + len(d.Text)
	if i, ok := f.last[e.Agent]; ok {
		old := &f.queue[i]
		if old.Type == e.Type && old.Turn == e.Turn && old.end == d.Offset {
			old.more = append(old.more, d.Text)
			old.end = end
			return
		}
	}
	if len(f.queue) < maxPending {
		f.push(entry{Event: e, end: end})
	}
}

// addProgress queues output of a running tool, as long as there is room for it: the
// result has it too.
func (f *feed) addProgress(e event.Event, bytes int) {
	if f.text+bytes > maxPendingText || len(f.queue) >= maxPending {
		return
	}
	f.text += bytes
	f.push(entry{Event: e})
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (f *feed) take() []entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue
	f.queue, f.text = nil, 0
	clear(f.last)

	return q
}

// An eventSink receives what a feed has, in order.
type eventSink struct {
	event func(event.Event) error
	gap   func(Gap) error
	flush func() error // after the last of what waits
}

// drain tells everything that waits.
func (f *feed) drain(t eventSink) error {
	if err := f.deliverAll(t); err != nil {
		return err
	}
	return t.flush()
}

func (f *feed) deliverAll(t eventSink) error {
	for _, e := range f.take() {
		if e.to == 0 {
			if err := t.event(e.whole()); err != nil {
				return err
			}
			continue
		}
		if err := f.fetch(e.from, e.to, t); err != nil {
			return err
		}
	}

	return nil
}

// fetch tells events from the ring, after a gap where it has them no more.
func (f *feed) fetch(from, to uint64, t eventSink) error {
	events, first := f.stream.Since(from)
	if first > from {
		gap := Gap{From: f.id(from - 1), To: f.id(min(first, to))}
		if err := t.gap(gap); err != nil {
			return err
		}
	}

	for i, e := range events {
		if first+uint64(i) >= to {
			break
		}
		if !f.match(e) {
			continue
		}
		if err := t.event(e); err != nil {
			return err
		}
	}

	return nil
}

func (f *feed) id(n uint64) string { return f.stream.Boot() + "." + strconv.FormatUint(n, 10) }

// numberOf is the number in an event id, boot.number; deltas have none.
func numberOf(id string) (uint64, bool) {
	i := strings.LastIndexByte(id, '.')
	if i < 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(id[i+1:], 10, 64)

	return n, err == nil
}

// bootOf is the boot in an event id.
func bootOf(id string) string {
	i := strings.LastIndexByte(id, '.')
	return id[:max(i, 0)]
}
