package agents

import (
	"context"
	"fmt"
	"runtime/debug"

	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/message"
	"daycare/engine/record"
)

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
	a.pending[out.ID] = true
	a.Outbox.Send(message.Promise{
		Agent:    a.ID,
		Outgoing: message.Outgoing{ID: out.ID, To: out.To, ReplyTo: out.ReplyTo, Text: text, Retry: retry, Report: a.reported(out, as)},
		Since:    e.At, Done: delivered, Report: a.Fates.Put,
	})
}

// settle records the delivery results that came since it was last called. With an
// error they are kept for the next call.
func (a *agent) settle() error {
	var recs []record.Record
	list := a.Fates.Take()
	for _, f := range list {
		if crash.Bug("nodelivery") && crash.Once("delivery") {
			continue
		}
		if f.Kept {
			delete(a.pending, f.Out)
		}
		if d := record.DeliveryOf(f); d != nil {
			recs = append(recs, d)
		}
	}
	if len(recs) == 0 {
		return nil
	}
	if _, err := a.append(recs...); err != nil {
		a.Fates.Return(list)
		return err
	}
	open := map[string]bool{}
	for _, o := range a.history.Obligations().Outs {
		open[o.ID] = true
	}
	for out := range a.pending {
		if !open[out] {
			delete(a.pending, out)
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
		case <-a.Fates.Arrived():
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
func (a *agent) model() Model { return besideModel{a, a.Models.Model(a.state.Provider)} }

type besideModel struct {
	agent *agent
	model Model
}

func (m besideModel) Call(ctx context.Context, req *providers.Request,
	watch func(providers.Event)) (answer *providers.Response, err error) {
	m.agent.meanwhile(func(do func(func())) {
		there := watch
		if watch != nil {
			there = func(ev providers.Event) { do(func() { watch(ev) }) }
		}
		answer, err = m.model.Call(ctx, req, there)
	})
	return answer, err
}
