package event

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBrokerHandsToAll(t *testing.T) {
	var b Broker[int]
	b.Publish(0) // nobody is there
	if b.Watched() {
		t.Error("Watched without subscribers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	one, two := b.Subscribe(ctx), b.Subscribe(ctx)
	if !b.Watched() {
		t.Error("not Watched with two subscribers")
	}

	for i := range 3 {
		b.Publish(i)
	}
	cancel()

	for _, ch := range []<-chan int{one, two} {
		var got []int
		for v := range ch { // ends: the channel is closed with ctx
			got = append(got, v)
		}
		if d := cmp.Diff([]int{0, 1, 2}, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}

	if b.Watched() {
		t.Error("Watched after the subscribers left")
	}
}

func TestBrokerNeverWaits(t *testing.T) {
	var b Broker[int]
	ctx, cancel := context.WithCancel(t.Context())
	slow := b.Subscribe(ctx)
	for i := range 10 * buffer {
		b.Publish(i)
	}

	cancel()
	n := 0
	for v := range slow {
		if v != n {
			t.Fatalf("value %d is %d: the first ones must be kept, in order", n, v)
		}
		n++
	}

	if n != buffer {
		t.Errorf("a slow subscriber got %d values, want its buffer of %d", n, buffer)
	}
}

func TestBrokerSubscribeAfterEnd(t *testing.T) {
	var b Broker[int]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range b.Subscribe(ctx) {
		t.Error("a value came after the end")
	}
}

// TestBrokerRace lets publishers and subscribers come and go at once.
func TestBrokerRace(t *testing.T) {
	s := NewStream("b")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				s.Emit(Event{Type: MessageDelta, Body: Delta{Offset: i}})
				s.Emit(Event{Type: ItemQueued})
			}
		})

		wg.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				for range s.Subscribe(ctx) {
				}
				cancel()
				_, end := s.Watch(&Watch{Pieces: true, See: func(Event) {}})
				end()
				s.Since(s.Next() - 1)
			}
		})
	}

	wg.Wait()
}

// Who watches gets everything of its agent, in order, and nothing of others; pieces only where they are asked for.
func TestWatch(t *testing.T) {
	s := NewStream("b")
	s.Emit(Event{Type: ItemQueued, Agent: "a"})
	seen := map[string][]string{}
	watch := func(name string, w Watch) (next uint64, end func()) {
		w.See = func(e Event) { seen[name] = append(seen[name], string(e.Type)+" "+e.Agent) }
		return s.Watch(&w)
	}
	next, end := watch("all", Watch{})
	_, endPieces := watch("pieces of a", Watch{Agent: "a", Pieces: true})
	_, endB := watch("b", Watch{Agent: "b"})
	if next != 2 || !s.Watched("a") || s.Watched("b") || s.Watched("") {
		t.Errorf("next is %d; watched are a %v, b %v, all %v", next, s.Watched("a"), s.Watched("b"), s.Watched(""))
	}

	for _, agent := range []string{"a", "b", ""} {
		s.Emit(Event{Type: ItemTaken, Agent: agent})
		s.Emit(Event{Type: MessageDelta, Agent: agent, Body: Delta{}})
	}
	endPieces()
	end()
	end() // twice is once
	s.Emit(Event{Type: ItemDone, Agent: "a"})
	s.Emit(Event{Type: ItemDone, Agent: "b"})
	endB()
	want := map[string][]string{"all": {"item.taken a", "item.taken b", "item.taken "},
		"pieces of a": {"item.taken a", "message.delta a"}, "b": {"item.taken b", "item.done b"}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Watched("a") || len(s.watches.of) > 0 {
		t.Errorf("watches are left: %v", s.watches.of)
	}
}

// Changes says once that there is something, however much there is, and nothing of pieces.
func TestChanges(t *testing.T) {
	s := NewStream("b")
	ctx, cancel := context.WithCancel(t.Context())
	changes := s.Changes(ctx)
	s.Emit(Event{Type: MessageDelta, Agent: "a", Body: Delta{}})
	if len(changes) != 0 || s.Watched("a") {
		t.Errorf("a piece is a change (%d), or somebody wants pieces (%v)", len(changes), s.Watched("a"))
	}
	for range 3 {
		s.Emit(Event{Type: ItemDone, Agent: "a"})
	}
	<-changes
	if len(changes) != 0 {
		t.Error("it says twice that there is something")
	}

	cancel()
	for deadline := time.Now().Add(5 * time.Second); len(s.watching()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it watches after its context has ended")
		}
	}
}

func (s *Stream) watching() map[string][]*Watch {
	s.watches.mu.RLock()
	defer s.watches.mu.RUnlock()
	return maps.Clone(s.watches.of)
}

func TestStreamNumbersInOrder(t *testing.T) {
	s := NewStream("boot")
	ctx, cancel := context.WithCancel(t.Context())
	ch := s.Subscribe(ctx)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				s.Emit(Event{Type: ItemQueued, Agent: "a"})
			}
		})
	}

	wg.Wait()
	cancel()
	n := 0
	for e := range ch {
		n++
		if want := fmt.Sprintf("boot.%d", n); e.ID != want {
			t.Fatalf("event %d has id %s, want %s", n, e.ID, want)
		}
		if e.At.IsZero() {
			t.Fatal("At is not set")
		}
	}

	if n != 40 || s.Next() != 41 || s.Boot() != "boot" {
		t.Errorf("%d events, next %d, boot %s", n, s.Next(), s.Boot())
	}
}

func TestDeltasAreNotKept(t *testing.T) {
	s := NewStream("b")
	for _, typ := range []Type{MessageDelta, MessageThinking, TurnStarted} {
		s.Emit(Event{Type: typ})
	}
	kept, first := s.Since(0)
	if len(kept) != 1 || first != 1 || kept[0].Type != TurnStarted || kept[0].ID != "b.1" {
		t.Errorf("kept %v from %d", kept, first)
	}
}

func TestSince(t *testing.T) {
	s := NewStream("b")
	if kept, first := s.Since(1); len(kept) != 0 || first != 1 {
		t.Errorf("empty stream: %d events from %d", len(kept), first)
	}
	const all = ringSize + 100
	for i := range all {
		s.Emit(Event{Type: ItemQueued, Turn: fmt.Sprint(i + 1)})
	}

	const oldest = all - ringSize + 1
	for _, c := range []struct {
		from, first uint64
		n           int
	}{
		{0, oldest, ringSize},          // gap
		{1, oldest, ringSize},          // gap
		{oldest - 1, oldest, ringSize}, // a gap of one
		{oldest, oldest, ringSize},
		{oldest + 1, oldest + 1, ringSize - 1},
		{all, all, 1},
		{all + 1, all + 1, 0},
		{all + 50, all + 50, 0}, // from the future
	} {
		kept, first := s.Since(c.from)
		if first != c.first || len(kept) != c.n {
			t.Errorf("Since(%d): %d events from %d, want %d from %d", c.from, len(kept), first, c.n, c.first)
			continue
		}

		for i, e := range kept {
			if want := fmt.Sprint(first + uint64(i)); e.Turn != want || e.ID != "b."+want {
				t.Fatalf("Since(%d): event %d is %s, %s; want %s", c.from, i, e.ID, e.Turn, want)
			}
		}
	}
}

// A few thousand large events must not fill the memory: what is kept is bounded in bytes,
// too, and a watcher is told from where on.
func TestRingIsBoundedInBytes(t *testing.T) {
	s := NewStream("b")
	const size, all = 1 << 20, 40
	for range all {
		s.Emit(Event{Type: ToolStarted, Body: Tool{Name: "write", Arguments: make([]byte, size)}})
		s.Emit(Event{Type: SubAgentProgress, Body: SubAgent{Event: &Event{At: time.Now(), Body: Finished{Text: "short"}}}})
	}

	kept, first := s.Since(1)
	bytes := 0
	for _, e := range kept {
		if tool, ok := e.Body.(Tool); ok {
			bytes += len(tool.Arguments)
		}
	}

	t.Logf("%d of %d events are kept, with %d bytes", len(kept), 2*all, bytes)
	if bytes > ringBytes || bytes < ringBytes/2 {
		t.Errorf("%d bytes are kept, want about %d", bytes, ringBytes)
	}
	if first != s.Next()-uint64(len(kept)) || kept[0].ID != fmt.Sprintf("b.%d", first) {
		t.Errorf("the first kept is %d, its id %s; %d are kept up to %d", first, kept[0].ID, len(kept), s.Next())
	}

	s.Emit(Event{Type: TurnFinished, Body: Finished{Text: string(make([]byte, 2*ringBytes))}})
	if kept, _ := s.Since(1); len(kept) != 1 {
		t.Errorf("%d events are kept beside one that is larger than the bound", len(kept))
	}
	for range ringSize {
		s.Emit(Event{Type: AgentWoke})
	}

	if kept, _ := s.Since(1); len(kept) != ringSize || s.bytes > 64*ringSize {
		t.Errorf("%d small events are kept, which count as %d bytes", len(kept), s.bytes)
	}
}

func TestJSONIsFlat(t *testing.T) {
	at := time.Date(2026, 11, 20, 19, 22, 33, 123456789, time.FixedZone("CET", 3600))
	for name, c := range map[string]struct {
		e    Event
		want string
	}{
		"bare": {Event{Type: AgentWoke, At: at}, `{"type":"agent.woke","at":"2026-11-20T18:22:33.123Z"}`},
		"head": {Event{ID: "b.7", Type: AgentSlept, At: at, Agent: "a", Turn: "t"},
			`{"id":"b.7","type":"agent.slept","at":"2026-11-20T18:22:33.123Z","agent":"a","turn":"t"}`},
		"delta": {Event{Type: MessageDelta, At: at, Agent: "a", Body: Delta{Offset: 3, Text: "x\n\"y\""}},
			`{"type":"message.delta","at":"2026-11-20T18:22:33.123Z","agent":"a","offset":3,"text":"x\n\"y\""}`},
		"item": {Event{ID: "b.8", Type: ItemQueued, At: at, Agent: "a", Body: Item{Item: "i", Kind: "message"}},
			`{"id":"b.8","type":"item.queued","at":"2026-11-20T18:22:33.123Z","agent":"a","item":"i","kind":"message"}`},
		"tool": {Event{Type: ToolStarted, At: at,
			Body: Tool{Call: "c", Name: "read", Arguments: json.RawMessage(`{"path":"x"}`)}},
			`{"type":"tool.started","at":"2026-11-20T18:22:33.123Z","toolCallId":"c","name":"read","arguments":{"path":"x"}}`},
		"finished": {Event{Type: TurnFinished, At: at, Agent: "a", Body: Finished{Reason: "done", Text: "ok", Items: []string{"i"}}},
			`{"type":"turn.finished","at":"2026-11-20T18:22:33.123Z","agent":"a","reason":"done","text":"ok","items":["i"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(c.e)
			if err != nil || string(got) != c.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, c.want)
			}
		})
	}

	if _, err := json.Marshal(Event{Type: ToolStarted, Body: Tool{Arguments: json.RawMessage("{")}}); err == nil {
		t.Error("a body that is not JSON must be an error")
	}
}

// TestTypes: every constant of type Type is in Types, once.
func TestTypes(t *testing.T) {
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []Type
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ +Type = "(.+)"$`).FindAllSubmatch(source, -1) {
		want = append(want, Type(m[1]))
	}
	if diff := cmp.Diff(want, Types); diff != "" {
		t.Errorf("(-constants +Types):\n%s", diff)
	}
}

// counting is a body that knows how often it was encoded.
type counting struct{ n *atomic.Int64 }

func (counting) body() {}

func (c counting) MarshalJSON() ([]byte, error) {
	c.n.Add(1)
	return []byte(`{"text":"x"}`), nil
}

// However many watch, an event is encoded once; with another body it is another event.
func TestAnEventIsEncodedOnce(t *testing.T) {
	const readers = 100
	s := NewStream("b")
	var watching []<-chan Event
	for range readers {
		watching = append(watching, s.Subscribe(t.Context()))
	}

	for _, typ := range []Type{ToolStarted, MessageDelta} { // kept for those who come back, and not
		var n atomic.Int64
		s.Emit(Event{Type: typ, Agent: "a", Body: counting{&n}})
		var group sync.WaitGroup
		for _, ch := range watching {
			group.Go(func() {
				e := <-ch
				if data, err := json.Marshal(e); err != nil || !strings.HasSuffix(string(data), `"agent":"a","text":"x"}`) {
					t.Errorf("%s: %s, %v", typ, data, err)
				}
				other, err := json.Marshal(e.WithBody(Reason{Reason: "y"}))
				if err != nil || !strings.HasSuffix(string(other), `"agent":"a","reason":"y"}`) {
					t.Errorf("%s with another body: %s, %v", typ, other, err)
				}
			})
		}

		group.Wait()
		if n.Load() != 1 {
			t.Errorf("%s was encoded %d times for %d readers", typ, n.Load(), readers)
		}
	}
}
