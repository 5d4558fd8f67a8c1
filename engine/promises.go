package engine

import (
	"fmt"

	"daycare/engine/disk"
	"daycare/engine/message"
	"daycare/engine/record"
)

// abandon records that the promises of an agent that has ended are not kept, so that
// nothing waits for them. The agent's goroutine is gone. A history that cannot be
// written is no reason to keep the agent.
func (a *actors) abandon(id, reason string) {
	dir, late := a.folder(id), a.senders.end(id)
	if settled, err := record.Settled(dir); err == nil && settled || !disk.Exists(dir) {
		return
	}
	err := record.AppendApart(a.vol, dir, a.log, func(*record.Obligations) []record.Record { return deliveries(late) })
	if err == nil {
		err = record.AppendApart(a.vol, dir, a.log, func(o *record.Obligations) []record.Record {
			return o.GiveUp(fmt.Sprintf("not sent: the agent has ended (%s)", reason))
		})
	}
	if err != nil {
		a.log.Warn("abandoned answers not recorded", "agent", id, "err", err)
	}
}

// recordLate records results that came in when their agents slept and could not be
// woken any more, because everything stops.
func (a *actors) recordLate() {
	for id, results := range a.senders.unrecorded() {
		if len(deliveries(results)) == 0 {
			continue
		}
		release, err := a.hold(id)
		if err == nil {
			err = record.AppendApart(a.vol, a.folder(id), a.log, func(*record.Obligations) []record.Record {
				return deliveries(results)
			})
			release()
		}
		if err != nil {
			a.log.Error("delivery not recorded: the answer may be sent again at the next start", "agent", id, "err", err)
		}
	}
}

func deliveries(results []message.Result) (recs []record.Record) {
	for _, f := range results {
		if d := record.DeliveryOf(f); d != nil {
			recs = append(recs, d)
		}
	}

	return recs
}
