package agents

import (
	"fmt"
	"runtime/debug"
	"sync"

	"daycare/engine/crash"
	"daycare/engine/message"
	"daycare/engine/record"
)

// deliveries give answers to the outbox and record their delivery results.
type deliveries struct {
	journal *journal
	outbox  Outbox
	results *message.Results
	pending map[string]bool // ids of the answers that were given to the outbox and have no recorded result yet
	syncs   sync.WaitGroup  // barriers that run beside the work
}

// send gives a promised answer to the outbox; parts that arrived before are not
// sent again.
func (d *deliveries) send(out record.Out, e *record.Entry, delivered map[int]bool, retry bool) {
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

	d.pending[out.ID] = true
	d.outbox.Send(message.Promise{
		Agent: d.journal.id,
		Outgoing: message.Outgoing{ID: out.ID, To: out.To, ReplyTo: out.ReplyTo, Text: text, Retry: retry,
			Report: asReport(d.journal.id, out, as)},
		Since: e.At, Done: delivered, Report: d.results.Put,
	})
}

// settle records the delivery results that came since it was last called. With an
// error they are kept for the next call.
func (d *deliveries) settle() error {
	var recs []record.Record
	list := d.results.Take()
	for _, f := range list {
		if crash.Bug("nodelivery") && crash.Once("delivery") {
			continue
		}
		if f.Kept {
			delete(d.pending, f.Out)
		}
		if d := record.DeliveryOf(f); d != nil {
			recs = append(recs, d)
		}
	}

	if len(recs) == 0 {
		return nil
	}
	if _, err := d.journal.append(recs...); err != nil {
		d.results.Return(list)
		return err
	}

	open := map[string]bool{}
	for _, o := range d.journal.history.Obligations().Outs {
		open[o.ID] = true
	}

	for out := range d.pending {
		if !open[out] {
			delete(d.pending, out)
		}
	}

	d.syncBeside(d.journal.history.Barrier) // the next turn, not before it
	return nil
}

// syncBeside makes what is recorded durable with sync while the work goes on. wait returns when it is.
func (d *deliveries) syncBeside(sync func() error) (wait func() error) {
	done := make(chan error, 1)
	d.syncs.Go(func() {
		err := sync()
		if err != nil {
			d.journal.log.Error("history not synced", "err", err)
		}
		done <- err
	})

	return func() error { return <-done }
}

// meanwhile runs work, which may take long, on its own goroutine, and records delivery
// results until it returns: a crash in the middle of it must not send again what a chat
// has had for minutes. The agent's files stay with the agent's goroutine: work touches
// the agent only in functions that it hands to do, which runs them there.
func (d *deliveries) meanwhile(work func(do func(f func()))) {
	asked, done, over := make(chan errand), make(chan string, 1), make(chan struct{})
	defer close(over)
	go func() {
		defer func() {
			crashed := ""
			if v := recover(); v != nil {
				crashed = fmt.Sprintf("%v\n%s", v, debug.Stack())
			}
			done <- crashed
		}()

		free := make(chan chan struct{}, 1) // a streaming answer has an errand for each piece
		work(func(f func()) {
			e := errand{f: f}
			select {
			case e.ran = <-free:
			default:
				e.ran = make(chan struct{}, 1)
			}

			select {
			case asked <- e:
				<-e.ran
			case <-over:
			}

			select {
			case free <- e.ran:
			default:
			}
		})
	}()

	for {
		select {
		case e := <-asked:
			e.run()
		case <-d.results.Arrived():
			if crash.Bug("deliverylate") {
				continue
			}
			if err := d.settle(); err != nil { // the next write to history meets it, too
				d.journal.log.Warn("delivery not recorded yet", "err", err)
			}
		case crashed := <-done:
			if crashed != "" {
				panic(crashed)
			}
			return
		}
	}
}

// An errand is a function that the agent's goroutine runs for another one, which waits for ran.
type errand struct {
	f   func()
	ran chan struct{} // capacity 1
}

func (e errand) run() {
	defer func() { e.ran <- struct{}{} }()
	e.f()
}

// wait waits until every answer in progress arrived, or is to be kept for the next start.
func (d *deliveries) wait() error {
	for len(d.pending) > 0 {
		<-d.results.Arrived()
		if err := d.settle(); err != nil {
			return err
		}
	}

	return nil
}
