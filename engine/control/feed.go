package control

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"daycare/engine/event"
)

const (
	// maxPending is how many events wait for one slow reader; what comes after
	// them is fetched from the stream's ring once the reader has caught up.
	maxPending = 1024
	// maxPendingText bounds the text of the deltas that wait for one slow reader,
	// in bytes. Beyond it text is dropped: the reader sees the hole by the offset.
	maxPendingText = 4 << 20
)

// A feed holds the events that one watcher has not read yet, between the Stream, which
// never waits, and a reader, who may. It holds a bounded number of events,
// joins the deltas of one agent while the reader is slow, and leaves a mark in the
// place of other events that it has no room for: the reader gets them from the ring.
type feed struct {
	stream *event.Stream
	match  func(event.Event) bool

	mu    sync.Mutex
	queue []entry
	last  map[string]int // agent: index in queue of its newest entry
	text  int            // bytes of the deltas in queue

	wake  chan struct{} // capacity 1
	close func()        // ends it
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

// fromNow is the number from which a feed begins that has no events from before it.
const fromNow = math.MaxUint64

// newFeed holds the events of one agent ("": of all) from number `from` on, as far as match lets them pass, until it is closed.
func newFeed(s *event.Stream, agent string, from uint64, match func(event.Event) bool) *feed {
	f := &feed{stream: s, match: match, last: map[string]int{}, wake: make(chan struct{}, 1)}
	next, end := s.Watch(&event.Watch{Agent: agent, Pieces: true, See: f.add})
	f.close = end
	f.before(from, next)

	return f
}

// before leaves a mark for the events of before the watch began. Some of later may be here already.
func (f *feed) before(from, next uint64) {
	if from >= next {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = slices.Insert(f.queue, 0, entry{from: from, to: next})
	clear(f.last) // no delta may move before a mark: its turn may begin there
	f.signal()
}

// missed leaves a mark for event number n, for which there is no room. Callers hold mu.
func (f *feed) missed(n uint64) {
	if k := len(f.queue); k > 0 && f.queue[k-1].to > 0 {
		f.queue[k-1].to = n + 1
	} else {
		f.queue = append(f.queue, entry{from: n, to: n + 1})
		clear(f.last)
	}
	f.signal()
}

func (f *feed) add(e event.Event) {
	if !f.match(e) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch n, numbered := numberOf(e.ID); {
	case !numbered:
		f.addDelta(e)
	case len(f.queue) >= maxPending:
		f.missed(n)
	default:
		f.push(entry{Event: e})
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
	events, first := f.stream.Between(from, to)
	if first > from {
		gap := Gap{From: f.id(from - 1), To: f.id(min(first, to))}
		if err := t.gap(gap); err != nil {
			return err
		}
	}

	for _, e := range events {
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
