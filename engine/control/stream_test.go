package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// watch collects events until stop says that it is enough.
func watch(ctx context.Context, c *Client, filter Filter, last string, stop func(RawEvent) bool) ([]RawEvent, error) {
	var got []RawEvent
	err := c.Events(ctx, filter, last, func(e RawEvent) error {
		got = append(got, e)
		if stop(e) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}

	return got, err
}

func ids(events []RawEvent) []string {
	var list []string
	for _, e := range events {
		list = append(list, e.ID)
	}
	return list
}

// emit sends n ring events of an agent, numbered in Turn.
func emit(s *event.Stream, agent string, n int) {
	for range n {
		s.Emit(event.Event{Type: event.ItemDone, Agent: agent, Turn: fmt.Sprint(s.Next())})
	}
}

func TestEventsFromNowOn(t *testing.T) {
	c, s := serve(t, &fake{})
	emit(s, alpha, 3) // before: not told
	done := make(chan struct{})
	go func() {
		defer close(done)
		soon(t, "somebody watches", func() bool { return s.Watched(alpha) })
		s.Emit(event.Event{Type: event.MessageDelta, Agent: alpha, Turn: "t", Body: event.Delta{Offset: 2, Text: "xy"}})
		emit(s, alpha, 1)
	}()

	got, err := watch(t.Context(), c, Filter{}, "", func(e RawEvent) bool { return e.Type == event.ItemDone })
	<-done
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	if d, err := Body[event.Delta](got[0]); err != nil || d.Offset != 2 || d.Text != "xy" || got[0].ID != "" ||
		got[0].Agent != alpha || got[0].Turn != "t" {
		t.Errorf("delta %+v, %v, head %+v", d, err, got[0])
	}
	if got[1].ID != "boot.4" || got[1].At.IsZero() {
		t.Errorf("head %+v", got[1])
	}
}

func TestEventsReplay(t *testing.T) {
	c, s := serve(t, &fake{})
	emit(s, alpha, 5)
	last := func(id string) func(RawEvent) bool { return func(e RawEvent) bool { return e.ID == id } }
	got, err := watch(t.Context(), c, Filter{}, "boot.2", last("boot.5"))
	if d := cmp.Diff([]string{"boot.3", "boot.4", "boot.5"}, ids(got)); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}

	for range 4096 / 32 {
		emit(s, alpha, 32)
	}
	got, err = watch(t.Context(), c, Filter{}, "boot.2", last("boot.4101"))
	if err != nil || len(got) != 4097 {
		t.Fatalf("after a wrap: %d events, %v", len(got), err)
	}
	if gap, err := Body[Gap](got[0]); err != nil || got[0].Type != GapType ||
		gap != (Gap{From: "boot.2", To: "boot.6"}) || got[1].ID != "boot.6" {
		t.Errorf("gap %+v, %v, then %s", gap, err, got[1].ID)
	}

	for name, id := range map[string]string{"another boot": "old.7", "nonsense": "x", "the future": "boot.99999"} {
		got, err = watch(t.Context(), c, Filter{}, id, last("boot.4101"))
		if err != nil || len(got) != 4097 {
			t.Fatalf("%s: %d events, %v", name, len(got), err)
		}
		if gap, err := Body[Gap](got[0]); err != nil || gap != (Gap{From: id, To: "boot.6"}) {
			t.Errorf("%s: gap %+v, %v", name, gap, err)
		}
	}
}

func TestEventsFilter(t *testing.T) {
	c, s := serve(t, &fake{})
	for range 50 {
		emit(s, "other", 10)
		emit(s, alpha, 1)
		s.Emit(event.Event{Type: event.AgentWoke, Agent: alpha})
	}

	s.Emit(event.Event{Type: event.AgentSlept, Agent: alpha})
	got, err := watch(t.Context(), c, Filter{Agent: "0/", Types: []event.Type{event.ItemDone, event.AgentSlept}}, "boot.0",
		func(e RawEvent) bool { return e.Type == event.AgentSlept })
	if err != nil || len(got) != 51 {
		t.Fatalf("%d events, %v", len(got), err)
	}

	for _, e := range got {
		if e.Agent != alpha || e.Type == event.AgentWoke || e.Type == GapType {
			t.Errorf("event %+v passes the filter", e)
		}
	}
}

// TestSlowReader: a reader that takes nothing for a while loses no event but
// deltas' borders: texts are joined, everything else comes from the ring.
func TestSlowReader(t *testing.T) {
	c, s := serve(t, &fake{})
	const rounds, deltas = 300, 10
	var text strings.Builder
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		soon(t, "somebody watches", func() bool { return s.Watched(alpha) })
		for r := range rounds {
			for d := range deltas {
				piece := fmt.Sprintf("%d.%d ", r, d)
				s.Emit(event.Event{Type: event.MessageDelta, Agent: alpha, Turn: "t", Body: event.Delta{Offset: text.Len(), Text: piece}})
				text.WriteString(piece)
				if d%5 == 0 {
					time.Sleep(50 * time.Microsecond) // the Broker's buffer is small
				}
			}
			emit(s, "other", 1)
			if r%10 == 0 {
				emit(s, alpha, 1)
			}
		}
		s.Emit(event.Event{Type: event.AgentSlept, Agent: alpha})
	})
	first := true
	got, err := watch(t.Context(), c, Filter{}, "", func(e RawEvent) bool {
		if first {
			time.Sleep(200 * time.Millisecond)
			first = false
		}
		return e.Type == event.AgentSlept
	})
	if err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	var numbers []uint64
	end, n := 0, 0
	for _, e := range got {
		if e.Type != event.MessageDelta {
			number, _ := numberOf(e.ID)
			numbers = append(numbers, number)
			continue
		}
		d, err := Body[event.Delta](e)
		if err != nil || d.Offset < end {
			t.Fatalf("delta at %d after %d: %v", d.Offset, end, err)
		}
		if whole := text.String(); whole[d.Offset:d.Offset+len(d.Text)] != d.Text {
			t.Fatalf("the text at %d is not what was said there: %q", d.Offset, d.Text)
		}
		end = d.Offset + len(d.Text)
		n++
	}
	if want := rounds + rounds/10 + 1; len(numbers) != want || !slices.IsSorted(numbers) {
		t.Errorf("%d events that are not deltas, want %d, sorted %v", len(numbers), want, slices.IsSorted(numbers))
	}
	if n >= rounds*deltas {
		t.Errorf("%d deltas of %d: they were not joined for the slow reader", n, rounds*deltas)
	}
}

// TestFeed is about order and bounds without a transport in between.
func TestFeed(t *testing.T) {
	s := event.NewStream("b")
	emit(s, "a", 3)
	f := newFeed(s, "", 2, func(event.Event) bool { return true })
	defer f.close()
	delta := func(agent string, offset int, text string) {
		f.add(event.Event{Type: event.MessageDelta, Agent: agent, Body: event.Delta{Offset: offset, Text: text}})
	}
	other := func(agent string, n int) {
		f.add(event.Event{ID: fmt.Sprintf("b.%d", n), Type: event.ItemDone, Agent: agent})
	}
	delta("a", 0, "one ")
	delta("b", 0, "x")
	delta("a", 4, "two ")
	delta("a", 9, "hole")
	other("a", 4)
	delta("a", 13, "after")
	delta("b", 1, "y")
	var got []string
	told := eventSink{event: func(e event.Event) error {
		if d, ok := e.Body.(event.Delta); ok {
			got = append(got, fmt.Sprintf("%s %d %s", e.Agent, d.Offset, d.Text))
		} else {
			got = append(got, e.ID)
		}
		return nil
	}, gap: func(g Gap) error { got = append(got, "gap "+g.From+" "+g.To); return nil }, flush: func() error { return nil }}
	if err := f.drain(told); err != nil {
		t.Fatal(err)
	}

	want := []string{"b.2", "b.3", "a 0 one two ", "b 0 xy", "a 9 hole", "b.4", "a 13 after"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	// A flood with a reader that takes nothing: bounded.
	for i := range 3 * maxPending {
		other("a", 5+i)
		delta("b", i, strings.Repeat("z", 8<<10))
	}
	text := 0
	for _, e := range f.queue {
		if d, ok := e.Body.(event.Delta); ok {
			text += len(d.Text) + len(strings.Join(e.more, ""))
		}
	}
	if len(f.queue) > maxPending+1 || f.text > maxPendingText || text > maxPendingText {
		t.Errorf("%d entries and %d bytes queued, %d counted", len(f.queue), text, f.text)
	}
	if last := f.queue[len(f.queue)-1]; last.to != uint64(5+3*maxPending) {
		t.Error("what came after the bound is not marked to be fetched")
	}
}

// The text of deltas that are joined while the reader is slow is bounded, too, and what is read makes room.
func TestJoinedTextIsBounded(t *testing.T) {
	f := newFeed(event.NewStream("b"), "", 1, func(event.Event) bool { return true })
	defer f.close()
	const size = 8 << 10
	for round := range 2 {
		for i := range 2 * maxPendingText / size {
			f.add(event.Event{Type: event.MessageDelta, Agent: alpha, Body: event.Delta{Offset: i * size, Text: strings.Repeat("z", size)}})
		}
		got := f.take()
		if len(got) != 1 || len(got[0].whole().Body.(event.Delta).Text) != maxPendingText {
			t.Errorf("round %d: %d entries wait, not one with %d bytes", round, len(got), maxPendingText)
		}
	}
}

// TestFeedFindsTheTail: there was no room for the last events, and none follows.
func TestFeedFindsTheTail(t *testing.T) {
	const all = 3 * maxPending
	s := event.NewStream("b")
	f := newFeed(s, "", 1, func(event.Event) bool { return true })
	defer f.close()
	emit(s, "a", all)
	if len(f.queue) > maxPending+1 {
		t.Errorf("%d entries wait, want at most %d", len(f.queue), maxPending+1)
	}
	n := 0
	err := f.drain(eventSink{event: func(event.Event) error { n++; return nil },
		gap: func(Gap) error { t.Error("gap"); return nil }, flush: func() error { return nil }})
	if err != nil || n != all {
		t.Errorf("told %d events of %d, %v", n, all, err)
	}
}

// Who watches one agent is handed nothing of the others, so that an event costs nothing for those who watch another agent,
// and finds again what there was no room for.
func TestAFeedOfOneAgent(t *testing.T) {
	s := event.NewStream("b")
	emit(s, "a", 1)
	emit(s, "b", 1)
	f := newFeed(s, "a", 1, Filter{Agent: "a"}.match)
	defer f.close()
	told := func() (n int) {
		t.Helper()
		<-f.wake
		err := f.drain(eventSink{event: func(e event.Event) error {
			if n++; e.Agent != "a" {
				t.Errorf("told an event of %s", e.Agent)
			}
			return nil
		}, gap: func(Gap) error { t.Error("gap"); return nil }, flush: func() error { return nil }})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if n := told(); n != 1 {
		t.Errorf("%d events of before, want 1", n)
	}

	for range 2 * maxPending {
		emit(s, "b", 1)
		emit(s, "a", 1)
	}
	if n := told(); n != 2*maxPending {
		t.Errorf("%d events, want %d", n, 2*maxPending)
	}
	emit(s, "b", 1)
	if len(f.queue) > 0 || len(f.wake) > 0 {
		t.Errorf("an event of another agent woke the reader; %d wait", len(f.queue))
	}
}

// A stream on which nothing happens says that it lives: proxies and clients would give it up.
func TestKeepAlive(t *testing.T) {
	for what, of := range map[string]struct {
		method, path, body string
		begins             time.Duration
	}{
		"events": {get, "/v1/events", "", 0},
		"a log":  {get, "/v1/logs?follow=1", "", logBegins},
		"a turn": {post, "/v1/agents/alpha/messages", `{"text":"x"}`, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := (&fake{await: func(ctx context.Context, _, _ string) (event.Outcome, error) {
				<-ctx.Done()
				return event.Outcome{}, ctx.Err()
			}}).backend()
			b.Inspector = quiet{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, of.method, "http://daycare"+of.path, strings.NewReader(of.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", eventStream)
			start := time.Now()
			resp, err := Local(Handler(b, Options{})).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var at []time.Duration
			for lines := bufio.NewScanner(resp.Body); len(at) < 3 && lines.Scan(); {
				if strings.HasPrefix(lines.Text(), ":") {
					at = append(at, time.Since(start)-of.begins)
				}
			}
			if d := cmp.Diff([]time.Duration{0, keepAlive, 2 * keepAlive}, at); d != "" {
				t.Errorf("%s (-want +got):\n%s", what, d)
			}
		})
	}
}

func TestNoEventsWithoutDaemon(t *testing.T) {
	b := (&fake{}).backend()
	b.Events, b.Files = nil, nil
	c := NewClient(Local(Handler(b, Options{})))
	if err := c.Events(t.Context(), Filter{}, "", nil); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Events: %v", err)
	}
	if status, _, body := raw(t, Handler(b, Options{}), "GET", "/v1/events", ""); status != 503 || !strings.Contains(body, "watch events") {
		t.Errorf("Events: %d %s", status, body)
	}
	if _, err := c.Stream(t.Context(), "alpha", Message{Text: "x"}, nil); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stream: %v", err)
	}
	if _, err := c.Send(t.Context(), "alpha", Message{Text: "x", Files: []File{{Name: "a"}}}); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Send with a file: %v", err)
	}
}

func TestReadSSE(t *testing.T) {
	const text = ": hello\n\nid: b.1\nevent: x\ndata: {\"a\":1}\n\n" +
		"event: y\r\ndata:one\r\ndata: two\r\n\r\nevent: no data\n\ndata: cut"
	var got []string
	err := readSSE(strings.NewReader(text), func(e sseEvent) error {
		got = append(got, e.ID+"|"+e.Type+"|"+string(e.Data))
		return nil
	})
	if d := cmp.Diff([]string{`b.1|x|{"a":1}`, "|y|one\ntwo"}, got); d != "" || !errors.Is(err, io.EOF) {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}

	big := "data: " + strings.Repeat("x", 100<<10) + "\n\n"
	if err := readSSE(strings.NewReader(big), func(e sseEvent) error {
		if len(e.Data) != 100<<10 {
			t.Errorf("%d bytes", len(e.Data))
		}
		return errEnough
	}); !errors.Is(err, errEnough) {
		t.Error(err)
	}
	if err := readSSE(strings.NewReader("data: "+strings.Repeat("x", maxEvent)), nil); !errors.Is(err, errEventTooLarge) {
		t.Error(err)
	}
}

func FuzzReadSSE(f *testing.F) {
	f.Add("id: 1\nevent: x\ndata: {}\n\n")
	f.Add("data: \r\n\r\n:\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		_ = readEvents(strings.NewReader(text), func(e RawEvent) error {
			if !strings.Contains(text, "data") {
				t.Errorf("event %+v out of nothing", e)
			}
			return nil
		})
	})
}

// A feed from now has no events from before it, however many of other agents come while it begins.
func TestAFeedFromNow(t *testing.T) {
	s := event.NewStream("boot")
	var others sync.WaitGroup
	stop := make(chan struct{})
	defer func() {
		close(stop)
		others.Wait()
	}()
	for range 8 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.Emit(event.Event{Type: event.AgentWoke, Agent: "b", Body: event.Reason{}})
				}
			}
		})
	}
	for range 3000 {
		f := newFeed(s, "a", fromNow, func(event.Event) bool { return true })
		if got := f.take(); len(got) != 0 {
			t.Fatalf("%d events wait: %+v", len(got), got)
		}
		f.close()
	}
}

// What a running tool prints reaches those who watch, between the pieces of answers.
func TestProgressIsTold(t *testing.T) {
	s := event.NewStream("boot")
	f := newFeed(s, "", fromNow, func(event.Event) bool { return true })
	defer f.close()
	f.add(event.Event{Type: event.MessageDelta, Agent: alpha, Body: event.Delta{Text: "a"}})
	f.add(event.Event{Type: event.ToolProgress, Agent: alpha, Body: event.Progress{Call: "c", Text: "compiling"}})
	f.add(event.Event{Type: event.MessageDelta, Agent: alpha, Body: event.Delta{Offset: 1, Text: "b"}})
	var told []event.Type
	err := f.drain(eventSink{event: func(e event.Event) error { told = append(told, e.Type); return nil },
		gap: func(Gap) error { return nil }, flush: func() error { return nil }})
	if err != nil || !slices.Equal(told, []event.Type{event.MessageDelta, event.ToolProgress, event.MessageDelta}) {
		t.Errorf("told were %v, %v", told, err)
	}

	f.add(event.Event{Type: event.ToolProgress, Agent: alpha, Body: event.Progress{Text: strings.Repeat("x", maxPendingText+1)}})
	if got := f.take(); len(got) != 0 {
		t.Errorf("%d events are kept that there is no room for", len(got))
	}
}

// A page that connects again by itself cannot send Last-Event-ID.
func TestAfterIsLastEventID(t *testing.T) {
	b := (&fake{}).backend()
	for n := range 3 {
		b.Events.Emit(event.Event{Type: event.AgentWoke, Agent: alpha, Body: event.Reason{Reason: fmt.Sprint("woke ", n)}})
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://daycare/v1/events?after="+b.Events.Boot()+".1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Local(Handler(b, Options{})).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var told []string
	err = readSSE(resp.Body, func(e sseEvent) error {
		if told = append(told, e.ID); len(told) == 2 {
			return errEnough
		}
		return nil
	})
	if want := []string{b.Events.Boot() + ".2", b.Events.Boot() + ".3"}; !errors.Is(err, errEnough) || !slices.Equal(told, want) {
		t.Errorf("told %v, %v; want %v", told, err, want)
	}
}

// Events are passed on whole, with their ids, and what says only that a stream lives is not.
func TestEventsAreRelayed(t *testing.T) {
	stream := ": daycare\n\nid: b.1\nevent: agent.woke\ndata: {}\n\n: \n\nevent: message.delta\ndata: 1\ndata: 2\n\nid: b.2\nevent: half"
	var got []string
	note := func(id string, event []byte) error {
		got = append(got, id+"|"+string(event))
		return nil
	}
	if err := Relay(strings.NewReader(stream), note); err != nil {
		t.Error(err)
	}
	want := []string{"b.1|id: b.1\nevent: agent.woke\ndata: {}\n\n", "|event: message.delta\ndata: 1\ndata: 2\n\n"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}

	gone := errors.New("gone")
	if err := Relay(strings.NewReader(stream), func(string, []byte) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("it ended with %v, want what the reader said", err)
	}
	large := "event: x\ndata: " + strings.Repeat("x", 200_000) + "\n\n"
	got = nil
	if err := Relay(strings.NewReader(large), note); err != nil || !slices.Equal(got, []string{"|" + large}) {
		t.Errorf("a large event: %v, %d events", err, len(got))
	}
	if err := Relay(strings.NewReader("data: "+strings.Repeat("x", maxEvent)), note); err == nil {
		t.Error("an event without an end is read for ever")
	}
}

// One token, or one browser, that ends none of its streams keeps no other away.
func TestAStreamTooMany(t *testing.T) {
	h := Handler((&fake{}).backend(), Options{})
	reader := Caller{Name: "api:reader", Rights: apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Read}}}
	browser := Caller{Name: "web", Session: "red fox", Rights: apitoken.Everything}
	open := func(c Caller) (body io.Closer, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://daycare/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: LocalAs(h, c)}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode == http.StatusOK {
			return resp.Body, nil
		}
		if resp.Header.Get("Retry-After") != "10" {
			t.Errorf("Retry-After: %q, want 10 seconds", resp.Header.Get("Retry-After"))
		}
		return nil, readError(resp)
	}

	for _, c := range []Caller{reader, browser} {
		var last io.Closer
		for n := range maxStreams {
			body, err := open(c)
			if err != nil {
				t.Fatalf("stream %d of %s: %v", n+1, c.Name, err)
			}
			last = body
		}
		if _, err := open(c); !errors.Is(err, fault.Streams) {
			t.Errorf("one stream more of %s: %v", c.Name, err)
		}

		last.Close()
		if _, err := open(c); err != nil {
			t.Errorf("after one of %s has ended: %v", c.Name, err)
		}
	}

	others := []Caller{{Name: "api:other", Rights: reader.Rights}, {Name: "web", Session: "blue owl", Rights: apitoken.Everything},
		{Name: "root", Local: true, Rights: apitoken.Everything}}
	for _, c := range others {
		if _, err := open(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
