package record

import (
	"fmt"
	"log/slog"
	"time"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// AppendApart appends records to the history of an agent that does not run and will not, and syncs
// them. build gets what the agent owes; if it returns nothing, nothing is written.
func AppendApart(vol *disk.Volume, dir string, log *slog.Logger, build func(*Obligations) []Record) (err error) {
	h, _, err := Open(vol, dir, time.Now, log)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := h.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("close history: %w", cerr)
		}
	}()

	recs := build(h.Obligations())
	if len(recs) == 0 {
		return nil
	}
	if _, err := h.Append(recs...); err != nil {
		return err
	}

	return h.Barrier()
}

// GiveUp returns the records that close all promised answers of an agent that cannot deliver them.
func (o *Obligations) GiveUp(why string) (recs []Record) {
	for _, out := range o.Outs {
		recs = append(recs, &Delivery{Out: out.ID, Parts: max(out.Parts, 1), Error: why, Final: true})
	}
	return recs
}

// DeliveryOf returns the record of a sender's result; nil if there is nothing to record because the
// delivery continues or is tried again.
func DeliveryOf(f message.Result) *Delivery {
	if f.Kept || !f.Delivered() && !f.Final {
		return nil
	}
	return &Delivery{Out: f.Out, Part: f.Part, Parts: f.Parts, RemoteID: f.RemoteID, Error: f.Error, Retry: f.Retry, Final: f.Final}
}
