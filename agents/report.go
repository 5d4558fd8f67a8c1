package agents

import (
	"slices"

	"daycare/engine/crash"
	"daycare/engine/message"
	"daycare/engine/record"
)

// report is the promise to tell the parent of a turn's end, nil if it need not be
// told. An answer that goes to a chat already, because a user wrote to this agent from
// there, is no report too. It stands in the record of the turn's last answer, so it is decided and
// durable together with the turn's end: a crash before leaves the turn open, and
// it is decided again after the calls that the crash cut have been run again; a
// crash after finds the promise, like any promise to a chat.
func (rs *replies) report(t *turn, reason string, as *record.Assistant) *record.Out {
	r := rs.reports
	if crash.Bug("noreport") {
		return nil
	}
	paused := reason == record.ReasonWaiting || reason == record.ReasonBudget && t.waiting
	if r.To == "" || paused || slices.Contains(t.items, r.Awaited) || r.Waits() {
		return nil
	}
	if !r.Always && !failed(as) {
		if nothing(as.Text) || rs.told(r) {
			return nil
		}
	}

	return &record.Out{ID: "report:" + rs.journal.id + ":" + t.id, Hops: t.hops + 1,
		To: message.Address{Connector: message.ToAgent, ChannelID: r.To}}
}

// told reports whether the open turn told the parent something.
func (rs *replies) told(r Reports) bool {
	open := rs.journal.history.Obligations().Turn
	return open != nil && slices.ContainsFunc(open.Worked, r.Told)
}

// failed reports whether the last answer of a turn is not an answer of the model
// but the reason why there is none.
func failed(as *record.Assistant) bool {
	return as.Finish == record.FinishError || as.Finish == record.FinishCanceled
}

// asReport is a promise to the parent as the outbox takes it; nil: the promise is
// to a chat.
func asReport(agent string, out record.Out, as *record.Assistant) *message.Report {
	if out.To.Connector != message.ToAgent {
		return nil
	}
	return &message.Report{From: agent, Failed: failed(as), Hops: out.Hops}
}
