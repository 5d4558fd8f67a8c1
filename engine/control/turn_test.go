package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/event"
	"daycare/engine/message"
)

// turnFake answers with a turn whose events it emits while Await waits.
func turnFake(s **event.Stream, play func(s *event.Stream), release <-chan struct{}) *fake {
	return &fake{
		deliver: func(_ context.Context, in message.Incoming) (message.Receipt, error) {
			(*s).Emit(event.Event{Type: event.ItemQueued, Agent: alpha, Body: event.Item{Item: "item1"}})
			go play(*s)
			return message.Receipt{Agent: alpha, Item: "item1", Seq: 7}, nil
		},
		await: func(ctx context.Context, id, item string) (event.Outcome, error) {
			select {
			case <-release:
				return event.Outcome{Agent: id, Item: item, Turn: "t1", Reason: "done", Text: "hello", Cost: 0.25}, nil
			case <-ctx.Done():
				return event.Outcome{}, ctx.Err()
			}
		},
	}
}

func TestStreamTurn(t *testing.T) {
	var s *event.Stream
	release := make(chan struct{})
	f := turnFake(&s, func(s *event.Stream) {
		defer close(release)
		say := func(typ event.Type, agent, turn string, b event.Body) {
			s.Emit(event.Event{Type: typ, Agent: agent, Turn: turn, Body: b})
			time.Sleep(time.Millisecond)
		}
		say(event.MessageDelta, alpha, "t0", event.Delta{Text: "of an earlier turn"})
		say(event.TurnFinished, alpha, "t0", event.Finished{Reason: "done", Items: []string{"item0"}})
		say(event.ItemTaken, alpha, "", event.Item{Item: "item1"})
		say(event.TurnStarted, "other", "t9", event.Started{Items: []string{"item1"}})
		say(event.TurnStarted, alpha, "t1", event.Started{Items: []string{"item1"}})
		say(event.MessageDelta, alpha, "t1", event.Delta{Text: "hel"})
		say(event.MessageDelta, "other", "t9", event.Delta{Text: "no"})
		say(event.ItemQueued, alpha, "", event.Item{Item: "item2"})
		say(event.MessageDelta, alpha, "t1", event.Delta{Offset: 3, Text: "lo"})
		say(event.ItemDone, alpha, "t1", event.Item{Item: "item1"})
		say(event.TurnFinished, alpha, "t1", event.Finished{Reason: "from the broker"})
		say(event.MessageDelta, alpha, "t2", event.Delta{Text: "of a later turn"})
	}, release)
	c, stream := serve(t, f)
	s = stream
	var got []string
	o, err := c.Stream(t.Context(), "alpha", Message{Text: "hi"}, func(e RawEvent) {
		got = append(got, fmt.Sprintf("%s %s", e.Type, e.Turn))
	})
	want := []string{"item.queued ", "item.taken ", "turn.started t1", "message.delta t1", "message.delta t1",
		"item.done t1", "turn.finished t1"}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if d := cmp.Diff(event.Outcome{Agent: alpha, Item: "item1", Turn: "t1", Reason: "done", Text: "hello", Cost: 0.25}, o); d != "" {
		t.Errorf("outcome (-want +got):\n%s", d)
	}
}

// TestStreamFolded: the item is folded into a turn that runs already.
func TestStreamFolded(t *testing.T) {
	var s *event.Stream
	release := make(chan struct{})
	f := turnFake(&s, func(s *event.Stream) {
		s.Emit(event.Event{Type: event.MessageDelta, Agent: alpha, Turn: "t1", Body: event.Delta{Text: "before"}})
		s.Emit(event.Event{Type: event.ItemTaken, Agent: alpha, Turn: "t1", Body: event.Item{Item: "item1"}})
		s.Emit(event.Event{Type: event.MessageDelta, Agent: alpha, Turn: "t1", Body: event.Delta{Text: "after"}})
		close(release)
		s.Emit(event.Event{Type: event.TurnFinished, Agent: alpha, Turn: "t1", Body: event.Finished{}})
	}, release)
	c, stream := serve(t, f)
	s = stream
	var got []string
	_, err := c.Stream(t.Context(), "alpha", Message{Text: "hi"}, func(e RawEvent) {
		d, _ := Body[event.Delta](e)
		got = append(got, string(e.Type)+" "+d.Text)
	})

	// The last one has the text of the outcome.
	want := []string{"item.queued ", "item.taken ", "message.delta after", "turn.finished hello"}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// TestStreamWithoutEvents: events are lossy; the answer comes from Await alone.
func TestStreamWithoutEvents(t *testing.T) {
	for name, f := range map[string]*fake{
		"all lost": {},
		"duplicate that is done": {deliver: func(context.Context, message.Incoming) (message.Receipt, error) {
			return message.Receipt{Agent: alpha, Item: "item0", Duplicate: true}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, f)
			var got []event.Type
			duplicate := false
			o, err := c.Stream(t.Context(), "alpha", Message{Text: "hi", Dedupe: "k"}, func(e RawEvent) {
				got = append(got, e.Type)
				if item, err := Body[event.Item](e); err == nil && item.Duplicate {
					duplicate = true
				}
			})
			if d := cmp.Diff([]event.Type{event.ItemQueued, event.TurnFinished}, got); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
			if o.Text != "the answer" || o.Cost != 0.5 || duplicate != (f.deliver != nil) {
				t.Errorf("outcome %+v, duplicate %v", o, duplicate)
			}
		})
	}
}

func TestStreamAccept(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://daycare/v1/agents/alpha/messages",
		strings.NewReader(`{"text":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := Local(Handler((&fake{}).backend(), Options{})).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("status %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
}

// A stream that ends with an error says which, or that it was cut.
func TestTheErrorThatEndsAStream(t *testing.T) {
	for data, want := range map[string]string{
		`{"error":{"code":"busy","message":"not now"}}`: "not now", `{}`: ErrCut.Error(), `{"error":`: "JSON",
	} {
		if err := streamError(RawEvent{Type: "error", Data: []byte(data)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", data, err, want)
		}
	}
}

func TestStreamErrors(t *testing.T) {
	refused := &fake{deliver: func(context.Context, message.Incoming) (message.Receipt, error) {
		return message.Receipt{}, message.ErrUnknownAgent
	}}
	c, _ := serve(t, refused)
	if _, err := c.Stream(t.Context(), "alpha", Message{Text: "x"}, nil); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("refused: %v", err)
	}

	lost := &fake{await: func(context.Context, string, string) (event.Outcome, error) {
		return event.Outcome{}, fmt.Errorf("await: %w", message.ErrUnknownAgent)
	}}
	c, _ = serve(t, lost)
	o, err := c.Stream(t.Context(), "alpha", Message{Text: "x"}, nil)
	if !errors.Is(err, message.ErrUnknownAgent) || o.Item != "item1" {
		t.Errorf("agent removed while waiting: %+v, %v", o, err)
	}

	waits := &fake{await: func(ctx context.Context, _, _ string) (event.Outcome, error) {
		<-ctx.Done()
		return event.Outcome{}, ctx.Err()
	}}
	c, _ = serve(t, waits)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = c.Stream(ctx, "alpha", Message{Text: "x"}, func(RawEvent) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the caller goes: %v", err)
	}
}

func TestLocalStreamsAndEnds(t *testing.T) {
	release := make(chan struct{})
	ended := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		fmt.Fprint(w, "one")
		<-release
		fmt.Fprint(w, "two")
		<-r.Context().Done()
	})
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://x/", nil)
	if err != nil {
		t.Fatal(err)
	}

	resp, err := Local(h).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	n, _ := resp.Body.Read(buf) // while the handler runs
	close(release)
	m, _ := resp.Body.Read(buf[n:])
	if string(buf[:n+m]) != "onetwo" {
		t.Errorf("read %q", buf[:n+m])
	}

	resp.Body.Close()
	select {
	case <-ended:
	default:
		t.Error("Close returned before the handler")
	}

	// A handler that says nothing, and a caller that goes before the answer.
	resp, err = Local(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("silent handler: %v", err)
	}
	resp.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	if _, err := Local(hangs).RoundTrip(req.WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("caller gone: %v", err)
	}
}

// A turn that runs already is followed from where it is to its end.
func TestFollowAnItem(t *testing.T) {
	begun, heard := make(chan struct{}), make(chan struct{}, 1)
	release := make(chan struct{})
	f := &fake{await: func(ctx context.Context, id, item string) (event.Outcome, error) {
		close(begun)
		select {
		case <-release:
			return event.Outcome{Agent: id, Item: item, Turn: "t1", Reason: "done", Text: "hello"}, nil
		case <-ctx.Done():
			return event.Outcome{}, ctx.Err()
		}
	}}
	c, s := serve(t, f)
	go func() {
		<-begun
		s.Emit(event.Event{Type: event.MessageDelta, Agent: alpha, Turn: "t1", Body: event.Delta{Text: "hel"}})
		s.Emit(event.Event{Type: event.MessageDelta, Agent: "other", Turn: "t9", Body: event.Delta{Text: "no"}})
		<-heard
		s.Emit(event.Event{Type: event.TurnFinished, Agent: alpha, Turn: "t1", Body: event.Finished{Reason: "from the broker"}})
		s.Emit(event.Event{Type: event.MessageDelta, Agent: alpha, Turn: "t2", Body: event.Delta{Text: "of a later turn"}})
		close(release)
	}()
	var got []string
	o, err := c.Follow(t.Context(), "alpha", "item1", func(e RawEvent) {
		if got = append(got, string(e.Type)+" "+e.Turn); e.Type == event.MessageDelta {
			heard <- struct{}{}
		}
	})
	want := []string{"item.queued ", "message.delta t1", "turn.finished t1"}
	if err != nil || o.Text != "hello" || o.Item != "item1" || !slices.Equal(got, want) {
		t.Errorf("%+v, %v\n%q\nwant %q", o, err, got, want)
	}
	if p, err := c.Item(t.Context(), "alpha", "item1"); err != nil || p.State != "taken" || p.Item != "item1" {
		t.Errorf("%+v, %v", p, err)
	}
}
