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

// meanwhile runs work, which may take long, and records delivery results beside it: a crash in
// the middle of it must not send again what a chat has had for minutes. The agent's files are
// those of one goroutine at a time: work touches the agent only while it holds files.
func (d *deliveries) meanwhile(work func(files sync.Locker)) {
	var files sync.Mutex
	over, ended := make(chan struct{}), make(chan string, 1)
	go func() { ended <- d.settleUntil(over, &files) }()
	defer func() {
		close(over)
		if crashed := <-ended; crashed != "" {
			panic(crashed)
		}
	}()

	work(&files)
}

// settleUntil records delivery results as they come until over is closed. It returns the panic that ended it before.
func (d *deliveries) settleUntil(over <-chan struct{}, files sync.Locker) (crashed string) {
	defer func() {
		if v := recover(); v != nil {
			crashed = fmt.Sprintf("%v\n%s", v, debug.Stack())
		}
	}()

	for {
		select {
		case <-over:
			return ""
		case <-d.results.Arrived():
		}
		if crash.Bug("deliverylate") {
			continue
		}
		if err := d.settleAlone(files); err != nil { // the next write to history meets it, too
			d.journal.log.Warn("delivery not recorded yet", "err", err)
		}
	}
}

// settleAlone is settle when nothing else touches the agent's files.
func (d *deliveries) settleAlone(files sync.Locker) error {
	files.Lock()
	defer files.Unlock()
	return d.settle()
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
