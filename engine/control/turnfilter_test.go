package control

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"daycare/engine/event"
)

// Of all events those of the turn are told that an item is worked on in, and its own.
func TestWhatIsToldOfATurn(t *testing.T) {
	of := func(typ event.Type, agent, turn string, body event.Body) event.Event {
		return event.Event{Type: typ, Agent: agent, Turn: turn, Body: body}
	}
	mine, other := event.Item{Item: "i"}, event.Item{Item: "j"}
	for _, tt := range []struct {
		name string
		turn turnFilter
		e    event.Event
		told bool
		id   string
		over bool
	}{
		{"its beginning", turnFilter{}, of(event.TurnStarted, alpha, "t", event.Started{Items: []string{"i"}}), true, "t", false},
		{"the beginning of another", turnFilter{}, of(event.TurnStarted, alpha, "u", event.Started{Items: []string{"j"}}),
			false, "", false},
		{"that of another agent", turnFilter{}, of(event.TurnStarted, beta, "t", event.Started{Items: []string{"i"}}), false, "", false},
		{"it is taken", turnFilter{}, of(event.ItemTaken, alpha, "t", mine), true, "t", false},
		{"it is taken outside of a turn", turnFilter{}, of(event.ItemTaken, alpha, "", mine), true, "", false},
		{"another is taken", turnFilter{id: "t"}, of(event.ItemTaken, alpha, "t", other), false, "t", false},
		{"it is queued", turnFilter{}, of(event.ItemQueued, alpha, "", mine), false, "", false},
		{"it is done", turnFilter{id: "t"}, of(event.ItemDone, alpha, "t", mine), true, "t", false},
		{"its text", turnFilter{id: "t"}, of(event.MessageDelta, alpha, "t", event.Delta{Text: "x"}), true, "t", false},
		{"text of another turn", turnFilter{id: "t"}, of(event.MessageDelta, alpha, "u", event.Delta{Text: "x"}), false, "t", false},
		{"text before it", turnFilter{}, of(event.MessageDelta, alpha, "", event.Delta{Text: "x"}), false, "", false},
		{"text of another agent", turnFilter{id: "t"}, of(event.MessageDelta, beta, "t", event.Delta{Text: "x"}), false, "t", false},
		{"its end", turnFilter{id: "t"}, of(event.TurnFinished, alpha, "t", event.Finished{}), false, "t", true},
		{"the end of another", turnFilter{id: "t"}, of(event.TurnFinished, alpha, "u", event.Finished{}), false, "t", false},
		{"it begins again", turnFilter{id: "t", over: true}, of(event.TurnStarted, alpha, "u", event.Started{Items: []string{"i"}}),
			true, "u", false},
		{"it is taken again", turnFilter{id: "t", over: true}, of(event.ItemTaken, alpha, "u", mine), true, "u", false},
	} {
		tt.turn.agent, tt.turn.item = alpha, "i"
		if got := tt.turn.matches(tt.e); got != tt.told || tt.turn.id != tt.id || tt.turn.over != tt.over {
			t.Errorf("%s: told %v, the turn is %q, over %v; want %v, %q, %v", tt.name, got, tt.turn.id, tt.turn.over, tt.told,
				tt.id, tt.over)
		}
	}

	for _, tt := range []struct {
		turn turnFilter
		in   string // the turn of the outcome
		want bool
	}{
		{turnFilter{id: "t"}, "t", true}, {turnFilter{id: "t", over: true}, "t", false}, {turnFilter{}, "t", true},
		{turnFilter{}, "", false},
		{turnFilter{old: true}, "t", false}, {turnFilter{old: true, id: "t"}, "t", true}, {turnFilter{over: true}, "t", false},
	} {
		if got := tt.turn.tail(event.Outcome{Turn: tt.in}); got != tt.want {
			t.Errorf("%+v, which ended in %q: events are still to come: %v", tt.turn, tt.in, got)
		}
	}
}

// A reader that goes away is told nothing more, wherever it was.
func TestWhoStopsReadingIsToldNothingMore(t *testing.T) {
	s := event.NewStream("b")
	for range 4097 + 5 { // the oldest are gone
		s.Emit(event.Event{Type: event.ItemDone, Agent: alpha})
	}
	gone := errors.New("gone")
	for name, tt := range map[string]struct {
		queue []entry
		at    string
	}{
		"an event":        {[]entry{{Event: event.Event{ID: "b.1"}}, {Event: event.Event{ID: "b.2"}}}, "event"},
		"a gap":           {[]entry{{from: 1, to: 9}, {Event: event.Event{ID: "b.9"}}}, "gap"},
		"one of the ring": {[]entry{{from: 4000, to: 4003}, {Event: event.Event{ID: "b.4003"}}}, "event"},
		"the end of all":  {[]entry{{Event: event.Event{ID: "b.1"}}}, "flush"},
	} {
		calls := 0
		fails := func(at string) error {
			calls++
			if at == tt.at {
				return gone
			}
			return nil
		}
		f := &feed{stream: s, match: func(event.Event) bool { return true }, last: map[string]int{}, queue: tt.queue}
		err := f.drain(eventSink{event: func(event.Event) error { return fails("event") }, gap: func(Gap) error { return fails("gap") },
			flush: func() error { return fails("flush") }})
		if want := map[bool]int{true: 2, false: 1}[tt.at == "flush"]; !errors.Is(err, gone) || calls != want {
			t.Errorf("%s: %v after %d calls, want %d", name, err, calls, want)
		}
	}

	var told []string
	f := &feed{stream: s, match: func(event.Event) bool { return true }, last: map[string]int{}, queue: []entry{{from: 4000, to: 4003}}}
	if err := f.drain(eventSink{event: func(e event.Event) error { told = append(told, e.ID); return nil },
		flush: func() error { return nil }}); err != nil ||
		strings.Join(told, " ") != "b.4000 b.4001 b.4002" {
		t.Errorf("of the ring are told %v, %v", told, err)
	}

	for id, want := range map[string]struct {
		n    uint64
		ok   bool
		boot string
	}{"b.7": {7, true, "b"}, "a.b.7": {7, true, "a.b"}, "": {0, false, ""}, "7": {0, false, ""}, "b.x": {0, false, "b"},
		".7": {7, true, ""}} {
		if n, ok := numberOf(id); n != want.n || ok != want.ok || bootOf(id) != want.boot {
			t.Errorf("%q is %d, %v of %q", id, n, ok, bootOf(id))
		}
	}
}

// A stream that breaks off, or says what is not an event, is an error with what was known by then.
func TestAStreamThatBreaksOff(t *testing.T) {
	const queued = "event: item.queued\ndata: {\"agent\":\"a\",\"item\":\"i\"}\n\n"
	const finished = "event: turn.finished\ndata: {\"agent\":\"a\",\"turn\":\"t\",\"reason\":\"done\"}\n\n"
	for name, tt := range map[string]struct {
		body string
		is   error
	}{
		"at once":         {"", ErrCut},
		"in an event":     {queued + "event: turn.fin", ErrCut},
		"by the daemon":   {queued + "event: error\ndata: {\"error\":{\"code\":\"busy\",\"message\":\"x\"}}\n\n", ErrBusy},
		"without a word":  {queued + "event: error\ndata: {}\n\n", ErrCut},
		"by nonsense":     {queued + "event: error\ndata: {\n\n", nil},
		"in another way":  {queued + "event: x\ndata: {\n\n", nil},
		"with a bad item": {"event: item.queued\ndata: {\"agent\":\"a\",\"item\":5}\n\n" + finished, nil},
		"with a bad end":  {queued + "event: turn.finished\ndata: {\"agent\":\"a\",\"turn\":\"t\",\"reason\":5}\n\n" + finished, nil},
	} {
		c := NewClient(answers{status: 200, body: tt.body})
		o, err := c.Stream(t.Context(), "alpha", Message{Text: "x"}, nil)
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || strings.HasPrefix(tt.body, queued) && (o.Agent != "a" || o.Item != "i") {
			t.Errorf("%s: %+v, %v; want %v", name, o, err, tt.is)
		}
	}

	asked := ""
	c := NewClient(roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.Path + " " + r.Header.Get("Accept") + " " + r.Header.Get("Content-Type")
		return answers{status: 200, body: queued}.RoundTrip(r)
	}))
	for ref, path := range map[string]string{"": "/v1/messages", "alpha": "/v1/agents/alpha/messages"} {
		if _, _ = c.Stream(t.Context(), ref, Message{Text: "x"}, nil); asked != path+" text/event-stream application/json" {
			t.Errorf("to %q: asked %s", ref, asked)
		}
	}

	_ = c.Folders().WriteFile(t.Context(), "alpha", "state.json", []byte("x"), "h")
	if asked != "/v1/agents/alpha/files/state.json  text/plain" {
		t.Errorf("a file is written by %s", asked)
	}
	c.Introduce("1.2.3", nil)
	version := ""
	c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		version = r.Header.Get(versionHeader) + r.Header.Get("If-Match")
		return nil, io.EOF
	})
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) || version != "1.2.3" {
		t.Errorf("the client says that it is %q, %v", version, err)
	}
	if _ = c.Folders().WriteFile(t.Context(), "alpha", "state.json", []byte("x"), "h"); version != `1.2.3"h"` {
		t.Errorf("a file is written over %s", version)
	}
	if _ = c.Folders().WriteFile(t.Context(), "alpha", "state.json", []byte("x"), ""); version != "1.2.3" {
		t.Errorf("a file that nobody has read is written over %s", version)
	}
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
