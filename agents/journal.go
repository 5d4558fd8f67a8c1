package agents

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
)

// A journal writes the agent's history and emits its events. Every record of the history
// passes through it.
type journal struct {
	id       string
	volume   *disk.Volume
	dir      string // the agent's folder
	history  *record.History
	redact   *redact.Redactor
	events   *event.Stream
	show     func(state event.State, detail string) // what the agent is doing
	problems *finding.Problems
	over     <-chan struct{} // closed when the agent must stop
	log      *slog.Logger
	drafted  bool      // there may be a draft on disk
	hooked   time.Time // when a hook last ended, which may have edited the history
}

// path returns the path of a file in the agent's folder.
func (j *journal) path(elem ...string) string {
	return filepath.Join(append([]string{j.dir}, elem...)...)
}

// begin prepares the history for the next records, and creates it if it is missing.
func (j *journal) begin() error {
	if j.history.Begun() {
		return nil
	}
	if err := j.history.Begin(cuid.Unique()); err != nil {
		return fmt.Errorf("begin history: %w", err)
	}

	return nil
}

// append writes records. They describe what has already happened, so it waits while the disk is full.
func (j *journal) append(recs ...record.Record) (entries []*record.Entry, err error) {
	for _, rec := range recs {
		j.hide(rec)
	}
	entries, err = j.history.Append(recs...)
	if errors.Is(err, disk.ErrFull) {
		entries, err = j.appendLater(recs)
	}
	if err != nil {
		return entries, fmt.Errorf("write history: %w", err)
	}

	return entries, nil
}

// appendLater appends once there is room.
func (j *journal) appendLater(recs []record.Record) (entries []*record.Entry, err error) {
	err = j.untilRoom(func() (err error) {
		entries, err = j.history.Append(recs...)
		return err
	})

	return entries, err
}

// untilRoom calls write again, with a growing pause, while the disk is full and the
// agent does not have to stop. Giving up would forget a call that had its effect, an
// answer that was paid for, or a delivery.
func (j *journal) untilRoom(write func() error) error {
	for pause := roomFirst; ; pause = min(2*pause, roomLast) {
		err := write()
		if !errors.Is(err, disk.ErrFull) {
			return err
		}
		j.log.Warn("disk full, waiting", "again", pause, "err", err)
		j.show(event.Failing, err.Error())

		select {
		case <-time.After(pause):
		case <-j.over:
			return err
		}
	}
}

// barrier waits until all records are durable.
func (j *journal) barrier() error {
	if err := j.history.Barrier(); err != nil {
		return fmt.Errorf("sync history: %w", err)
	}
	return nil
}

// Pauses between tries to write to a full disk.
const (
	roomFirst = 100 * time.Millisecond
	roomLast  = 10 * time.Second
)

// emit publishes an event of this agent.
func (j *journal) emit(t event.Type, turn string, body event.Body) {
	j.events.Emit(event.Event{Type: t, Agent: j.id, Turn: turn, Body: body})
}

// report reports what was found in the history. Unreadable lines stay problems until
// they are fixed.
func (j *journal) report(found findings) {
	for _, f := range found {
		if record.Unreadable(f) {
			j.problems.Add(j.id, f)
		} else {
			j.problems.Report(j.id, f)
		}
	}
}

// checkHistory checks whether unreadable lines were fixed.
func (j *journal) checkHistory() {
	path := j.path("history.jsonl")
	if !j.problems.Has(path) {
		return
	}
	content, err := beneath.Whole(path)
	if err != nil {
		j.log.Warn("history not checked", "err", err)
		return
	}

	j.problems.Set(j.id, path, slices.DeleteFunc(record.CheckHistory(path, content),
		func(f finding.Finding) bool { return !record.Unreadable(f) }))
}

// refresh reads a history that a user edited.
func (j *journal) refresh(turn string) error {
	return j.refreshSince(turn, time.Now())
}

// refreshSince is refresh without another look where a record was just written, after the time since.
func (j *journal) refreshSince(turn string, since time.Time) error {
	changed, found, err := j.history.RefreshSince(since)
	if err != nil {
		return err
	}
	if changed {
		j.checkHistory()
	}

	j.report(found)
	if changed {
		j.emit(event.FileEdited, turn, event.File{File: "history.jsonl", Text: "edited by hand; the model sees the edited version"})
	}

	return nil
}

// answered is how the same request was answered last, in one of those ways, if no user
// has spoken since: a model that continues asking is answered without them.
func (j *journal) answered(sha string, ways ...permission.Decision) *record.Permission {
	c, err := j.history.Context()
	if err != nil {
		j.log.Warn("cannot read earlier answers", "err", err)
		return nil
	}

	for _, e := range slices.Backward(c.Entries) {
		switch r := e.Rec.(type) {
		case *record.User:
			if r.Origin == "" {
				return nil
			}
		case *record.Permission:
			if r.SHA256 == sha && slices.Contains(ways, permission.Decision(r.Event)) {
				return r
			}
		}
	}

	return nil
}

// lastRoute is the route of the newest message of a user, if it had one.
func (j *journal) lastRoute() *message.Address {
	c, err := j.history.Context()
	if err != nil {
		return nil
	}

	for i := len(c.Entries) - 1; i >= 0; i-- {
		if u, ok := c.Entries[i].Rec.(*record.User); ok && u.Origin == "" {
			return u.Route
		}
	}

	return nil
}

// removeDraft removes the draft of an answer, if there may be one.
func (j *journal) removeDraft() {
	if j.drafted && record.RemoveDraft(j.dir) == nil {
		j.drafted = false
	}
}

// suspend leaves the turn open for the next start, which is not another attempt.
func (j *journal) suspend(turn string) error {
	if _, err := j.append(&record.Note{Text: "daycare stopped in the middle of this turn; it resumes at the next start",
		Suspended: turn}); err != nil {
		return err
	}

	return j.barrier()
}
