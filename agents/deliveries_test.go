package agents

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools"
)

// A slowChat takes answers and says later how each went.
type slowChat struct {
	*bench
	promised chan message.Promise
}

func (c slowChat) Send(p message.Promise) { c.promised <- p }

// A heldModel answers its first call, and no other.
type heldModel struct {
	*recording
	asked chan struct{}
}

func (m heldModel) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	if m.calls() > 0 {
		m.asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.recording.Call(ctx, req, watch)
}

// within waits until cond holds. How long it takes is the machine's affair.
func within(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 30 s: %s", what)
		}
	}
}

// What a chat took is recorded while the agent waits for a model or a tool, and an agent
// that is killed there does not send it again.
func TestDeliveryIsRecordedDuringAModelCallAndATool(t *testing.T) {
	for _, busy := range []string{"model", "tool"} {
		t.Run(busy, func(t *testing.T) {
			h := newHold("hold", tools.Once)
			b := newBench(t, callHold, h)
			chat := slowChat{b, make(chan message.Promise, 2)}
			b.opts.Outbox = chat
			if busy == "model" {
				m := heldModel{b.model, make(chan struct{})}
				b.opts.Model = func(record.Model) Model { return m }
				b.run()
				b.wait(b.say("hello"))
				b.say("more")
				<-m.asked
			} else {
				b.run()
				b.wait(b.say("hello"))
				b.say("go")
				<-h.running
			}

			p := <-chat.promised
			p.Report(message.Result{Out: p.ID, Parts: 1, RemoteID: "r1"})
			within(t, "the delivery is in history although the agent waits for the "+busy, func() bool { return b.count("delivery") == 1 })
			if n := b.count("turn_end"); n != 1 {
				t.Fatalf("%d turns ended, want that the second one is under way", n)
			}
			if again := b.killed().sent; len(again) != 0 {
				t.Errorf("after a kill it was sent again: %+v", again)
			}
		})
	}
}

// killed runs an agent over a copy of the files as a kill at this moment leaves them,
// until it has sent what it owes.
func (b *bench) killed() *bench {
	b.t.Helper()
	c := newBench(b.t, `rules: [ { reply: [ { text: NO_MESSAGE } ] } ]`)
	c.box.Close()
	if err := os.RemoveAll(c.dir); err != nil {
		b.t.Fatal(err)
	}
	if err := os.CopyFS(c.dir, os.DirFS(b.dir)); err != nil {
		b.t.Fatal(err)
	}

	c.openBox()
	items := c.box.Open()
	c.run()
	for _, it := range items {
		c.wait(it.ID)
	}

	c.halt()
	return c
}

// What breaks in a model breaks the agent, not the process.
func TestPanicOfAModelIsTheAgentsError(t *testing.T) {
	d := &deliveries{results: message.NewResults()}
	defer func() {
		if v, ok := recover().(string); !ok || !strings.Contains(v, "odd answer") || !strings.Contains(v, "deliveries_test.go") {
			t.Errorf("recovered %v, want the panic and where it was", v)
		}
	}()
	_, _ = apart(func() (bool, error) {
		d.meanwhile(func(sync.Locker) { panic("odd answer") })
		return false, nil
	})
}

// What breaks while a delivery is recorded beside a model breaks the agent, too.
func TestPanicOfARecordingIsTheAgentsError(t *testing.T) {
	d := &deliveries{results: message.NewResults()} // without a journal
	d.results.Put(message.Result{Out: "1", Parts: 1, RemoteID: "r1"})
	defer func() {
		if v, ok := recover().(string); !ok || !strings.Contains(v, "nil pointer") || !strings.Contains(v, "settle") {
			t.Errorf("recovered %v, want the panic and where it was", v)
		}
	}()
	d.meanwhile(func(sync.Locker) {
		within(t, "the delivery is being recorded", func() bool { return d.results.Len() == 0 })
	})
}
