package control

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// A Filter limits a stream of events; the zero value passes all.
type Filter struct {
	Agent string       // ref of one agent
	Types []event.Type // only these

	rights apitoken.Rights // of who watches
}

func (f Filter) match(e event.Event) bool {
	return f.rights.Know(e.Agent) && (f.Agent == "" || e.Agent == f.Agent) && (len(f.Types) == 0 || slices.Contains(f.Types, e.Type))
}

// watchers serve the stream of events.
type watchers struct {
	api    *api
	events *event.Stream // nil: nothing can be watched
}

// watch is the stream that user interfaces live on. It ends with the client,
// or when the daemon does.
func (g watchers) watch(w http.ResponseWriter, r *http.Request, in eventsIn) {
	filter, err := g.filter(r.Context(), in)
	if err != nil {
		g.api.fail(w, r, err)
		return
	}
	if g.events == nil {
		g.api.fail(w, r, fmt.Errorf("watch events: %w", ErrNotRunning))
		return
	}

	from, gap := g.resume(cmp.Or(in.LastID, in.After))
	out, err := startSSE(w)
	if err != nil {
		return // the client is gone
	}
	if gap != nil && out.value("", GapType, gap) != nil || out.flush() != nil {
		return
	}

	f := newFeed(g.events, filter.Agent, from, filter.match)
	defer f.close()
	streamFeed(r.Context(), f, out)
}

// streamFeed runs the stream until the client or the server ends it.
func streamFeed(ctx context.Context, f *feed, out *sseWriter) {
	t := out.sink()
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-f.wake:
			if f.drain(t) != nil {
				return
			}
		case <-beat.C:
			if out.alive() != nil {
				return
			}
		case <-closingOf(ctx):
			_ = f.drain(t)
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *sseWriter) sink() eventSink {
	return eventSink{event: s.event, gap: func(g Gap) error { return s.send("", GapType, g) }, flush: s.flush}
}

func (g watchers) filter(ctx context.Context, in eventsIn) (Filter, error) {
	f := Filter{rights: callerOf(ctx).Rights}
	if in.Agent != "" {
		id, err := g.api.resolve(ctx, in.Agent)
		if err != nil {
			return f, err
		}
		f.Agent = id
	}

	for _, t := range strings.Split(in.Types, ",") {
		if t = strings.TrimSpace(t); t != "" {
			if !slices.Contains(event.Types, event.Type(t)) {
				return f, &malformed{Invalid{Field: "types", Reason: fmt.Sprintf("unknown type of event %q", t),
					Hint: "docs/api.md lists them"}}
			}
			f.Types = append(f.Types, event.Type(t))
		}
	}

	return f, nil
}

// resume finds the number to continue from. Where the ring cannot tell what
// happened since, because it is of another process, there is a gap.
func (g watchers) resume(last string) (from uint64, gap *Gap) {
	next := g.events.Next()
	if last == "" {
		return next, nil
	}
	n, ok := numberOf(last)
	if ok && bootOf(last) == g.events.Boot() && n < next {
		return n + 1, nil
	}

	_, first := g.events.Since(1)

	return first, &Gap{From: last, To: fmt.Sprintf("%s.%d", g.events.Boot(), first)}
}

// maxStreams bounds the streams that one token, or one browser, has open at once: enough for one of each agent, and so few that
// a program that ends none of its streams takes neither the memory of the daemon nor its descriptors. Who uses the socket on
// this machine could take both anyway.
const maxStreams = 256

// streamsLater is when a caller with too many streams is asked to try again.
const streamsLater = 10 * time.Second

// openStreams are the streams that are open, by who reads them.
type openStreams struct {
	mu sync.Mutex
	by map[string]int
}

// begin counts one more stream of a caller; then end it.
func (o *openStreams) begin(c Caller) (end func(), err error) {
	if c.Local || c.Via != "" { // connectors have bounds of their own
		return func() {}, nil
	}
	who := cmp.Or(c.Session, c.Name)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by[who] >= maxStreams {
		return nil, &Wait{fmt.Errorf("%w: %d", fault.Streams, maxStreams), streamsLater}
	}
	o.by[who]++

	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.by[who]--; o.by[who] == 0 {
			delete(o.by, who)
		}
	}, nil
}
