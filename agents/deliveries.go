package agents

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/message"
	"daycare/engine/record"
)

// deliveries are the answers that were given to the outbox and have no recorded
// result yet.
type deliveries struct {
	pending map[string]bool // by out id
	results *results
}

func newDeliveries() deliveries {
	return deliveries{pending: map[string]bool{}, results: &results{arrived: make(chan struct{}, 1)}}
}

// results is where senders, each on its own goroutine, leave delivery results for
// the agent's goroutine.
type results struct {
	arrived chan struct{} // capacity 1: there is something to take
	mu      sync.Mutex
	list    []message.Fate
}

func (r *results) put(result message.Fate) {
	r.mu.Lock()
	r.list = append(r.list, result)
	r.mu.Unlock()
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

func (r *results) take() []message.Fate {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// giveBack returns results that could not be recorded, for the next try.
func (r *results) giveBack(list []message.Fate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(slices.Clip(list), r.list...)
}

// send gives a promised answer to the outbox; parts that arrived before are not
// sent again.
func (a *agent) send(out record.Out, e *record.Entry, delivered map[int]bool, retry bool) {
	as, ok := e.Rec.(*record.Assistant)
	if !ok {
		return
	}
	text := as.Text
	if crash.Bug("cutanswer") {
		text = text[:len(text)/2]
	}
	if crash.Bug("wrongchat") {
		out.To = crash.Swap("chat", out.To).(message.Address)
	}
	a.deliveries.pending[out.ID] = true
	a.Outbox.Send(message.Promise{
		Agent:    a.Meta.ID,
		Outgoing: message.Outgoing{ID: out.ID, To: out.To, ReplyTo: out.ReplyTo, Text: text, Retry: retry, Report: a.reported(out, as)},
		Since:    e.At, Done: delivered, Report: a.deliveries.results.put,
	})
}

// settle records the delivery results that came since it was last called. With an
// error they are kept for the next call.
func (a *agent) settle() error {
	var recs []record.Record
	list := a.deliveries.results.take()
	for _, f := range list {
		if crash.Bug("nodelivery") && crash.Once("delivery") {
			continue
		}
		if f.Kept {
			delete(a.deliveries.pending, f.Out)
			continue
		}
		if !f.Delivered() && !f.Final {
			continue // the sender tries again, and has reported it to whoever watches
		}
		recs = append(recs, &record.Delivery{Out: f.Out, Part: f.Part, Parts: f.Parts, RemoteID: f.RemoteID,
			Error: f.Error, Retry: f.Retry, Final: f.Final})
	}
	if len(recs) == 0 {
		return nil
	}
	if _, err := a.append(recs...); err != nil {
		a.deliveries.results.giveBack(list)
		return err
	}
	open := map[string]bool{}
	for _, o := range a.history.Obligations().Outs {
		open[o.ID] = true
	}
	for out := range a.deliveries.pending {
		if !open[out] {
			delete(a.deliveries.pending, out)
		}
	}
	// Beside the next turn, not before it.
	a.syncs.Go(func() {
		if err := a.history.Barrier(); err != nil {
			a.log.Error("delivery not synced", "err", err)
		}
	})
	return nil
}

// meanwhile runs work, which may take long, on its own goroutine, and records delivery
// results until it returns: a death in the middle of it must not send again what a chat
// has had for minutes. The agent's files stay with the agent's goroutine: work touches
// the agent only in functions that it hands to do, which runs them there.
func (a *agent) meanwhile(work func(do func(f func()))) {
	asked, done, over := make(chan func()), make(chan string, 1), make(chan struct{})
	defer close(over)
	go func() {
		defer func() {
			crashed := ""
			if v := recover(); v != nil {
				crashed = fmt.Sprintf("%v\n%s", v, debug.Stack())
			}
			done <- crashed
		}()
		work(func(f func()) {
			ran := make(chan struct{})
			select {
			case asked <- func() { defer close(ran); f() }:
				<-ran
			case <-over:
			}
		})
	}()
	for {
		select {
		case f := <-asked:
			f()
		case <-a.deliveries.results.arrived:
			if crash.Bug("deliverylate") {
				continue
			}
			if err := a.settle(); err != nil { // the next write to history meets it, too
				a.log.Warn("delivery not recorded yet", "err", err)
			}
		case crashed := <-done:
			if crashed != "" {
				panic(crashed)
			}
			return
		}
	}
}

// model is the model that the agent uses now. Its calls run meanwhile.
func (a *agent) model() Model { return besideModel{a, a.Model(a.state.Provider)} }

type besideModel struct {
	agent *agent
	model Model
}

func (m besideModel) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (answer *providers.Response, err error) {
	m.agent.meanwhile(func(do func(func())) {
		there := watch
		if watch != nil {
			there = func(ev providers.Event) { do(func() { watch(ev) }) }
		}
		answer, err = m.model.Call(ctx, req, there)
	})
	return answer, err
}
