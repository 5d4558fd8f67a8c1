package schedule

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"daycare/engine/fault"
	"daycare/engine/finding"
)

// grace is how late a slot may be and still count as on time: twice what the loop
// may sleep.
const grace = 2 * longest

// A job is a task as the loop knows it.
type job struct {
	task Task
	file os.FileInfo
	track
	looked time.Time // when what it watches was looked at
	first  bool      // the current run only remembers what is watched
	hand   time.Time // when a user asked for a run
	begun  bool      // the ledger says since when its schedule counts
	bad    time.Time // since when its file has been broken; zero: it is not
	found  []finding.Finding
}

// advance brings a task up to now: what is due is fired or noted. It returns when
// to look again; zero: something else will say.
func (s *Scheduler) advance(ctx context.Context, j *job, now time.Time) (time.Time, error) {
	if now.Before(j.retry) {
		return j.retry, nil
	}
	path := s.files().cron(j.task.Slug, runsFile)
	if j.running {
		return s.overlap(j, path, now)
	}
	if err := j.refold(path, now); err != nil {
		return time.Time{}, err
	}
	if !j.begun || j.st.spec != specHash(j.task.spec()) {
		if err := s.begin(j, path, now); err != nil {
			return time.Time{}, err
		}
	}

	switch {
	case j.st.open != nil:
		s.resume(ctx, j)
		return time.Time{}, nil
	case j.task.DeleteAfterRun && j.st.last != nil && j.st.last.Remove:
		// The process died between the line and the removal.
		delete(s.jobs, j.task.Slug)
		s.show()
		_, err := s.files().trash(s.files().cron(j.task.Slug), j.task.Slug)
		return time.Time{}, err
	case !j.hand.IsZero():
		slot := j.hand
		j.hand = time.Time{}
		s.start(ctx, j, line{Firing: &slot, Via: ViaHand, Why: "run by hand", Spec: j.st.spec}, false)
		return time.Time{}, nil
	case !j.task.Enabled:
		return time.Time{}, nil
	case j.task.When.timing.Empty():
		return s.lookOut(ctx, j, now), nil
	case j.task.watches() && j.st.hash == "" && j.looked.IsZero():
		s.lookOut(ctx, j, now)
		j.first = true
		return time.Time{}, nil
	}

	return s.due(ctx, j, path, now)
}

// due fires the slot that is due, and notes those that are missed.
func (s *Scheduler) due(ctx context.Context, j *job, path string, now time.Time) (time.Time, error) {
	b := j.st.backlog(j.task.When, now)
	if b.count == 0 {
		return j.coming(now), nil
	}
	l, missed := line{At: now, Outcome: Missed, Reason: cmp.Or(j.kept, "daycare was not running")}, b.count-1
	switch late := now.Sub(b.newest) > grace; {
	case j.task.CatchUp == CatchUpAll:
		l.Reason, missed = fmt.Sprintf("too many missed runs: only %d are caught up", maxCatchUp), max(b.count-maxCatchUp, 0)
	case j.task.CatchUp == CatchUpNone && late:
		missed = b.count
	}

	if err := s.note(j, path, now, b.lines(l, missed)...); err != nil {
		return time.Time{}, err
	}
	slot, ok := j.st.next(j.task.When, j.st.cursor)
	if ok && !slot.After(now) {
		s.fire(ctx, j, slot, now)
		return time.Time{}, nil
	}

	return j.coming(now), nil
}

// coming is the next slot.
func (j *job) coming(now time.Time) time.Time {
	slot, _ := j.st.next(j.task.When, now)
	return slot
}

// overlap is advance while a run is in progress. A slot that comes meanwhile is
// skipped, unless all slots are to run: then it waits.
func (s *Scheduler) overlap(j *job, path string, now time.Time) (time.Time, error) {
	if !j.begun || j.first || !j.task.Enabled || j.task.CatchUp == CatchUpAll || j.task.When.timing.Empty() || j.st.cursor.After(now) {
		return time.Time{}, nil
	}
	b := j.st.backlog(j.task.When, now)
	if b.count == 0 {
		return j.coming(now), nil
	}
	if now.Sub(b.newest) > grace {
		return time.Time{}, nil // it is caught up with when the run has ended
	}

	lines := b.lines(line{At: now, Outcome: Missed, Reason: "daycare was not running"}, b.count-1)
	lines = append(lines, line{Slot: &b.newest, At: now, Outcome: Skipped, Reason: "busy: the previous run had not ended"})
	return j.coming(now), s.note(j, path, now, lines...)
}

// note writes lines for slots that are not fired.
func (k *known) note(j *job, path string, now time.Time, lines ...line) error {
	if len(lines) == 0 {
		return nil
	}
	for i := range lines {
		lines[i].Spec, lines[i].Top = j.st.spec, j.st.ahead(now)
	}

	if err := write(k.Volume, path, lines...); err != nil {
		return err
	}
	for _, l := range lines {
		open := j.st.open
		j.st.end(l, now)
		j.st.open = open
		k.o.OnRun(k.firing(j.task, l), runOf(l))
	}

	return nil
}

// firstSight is how far back a task that was never seen before counts: from when
// its file was last saved, at most this long ago.
const firstSight = 24 * time.Hour

// begin writes down since when a schedule counts: it is new, or it was changed.
func (k *known) begin(j *job, path string, now time.Time) error {
	spec := j.task.spec()
	if j.st.spec == specHash(spec) {
		j.begun = true
		return nil
	}

	from := now
	if j.file != nil {
		from = j.file.ModTime()
	}

	from = later(later(from, now.Add(-firstSight)), j.st.cursor)
	if from.After(now) {
		from = now
	}
	var lines []line
	if j.st.set == spec+disabledMark {
		// What came while it was switched off is accounted for.
		b := j.st.backlog(j.task.When, now)
		lines = b.lines(line{At: now, Outcome: Skipped, Reason: "disabled", Spec: j.st.spec}, b.count)
		from = now
	}

	from = from.UTC().Truncate(time.Second)
	lines = append(lines, line{At: now, From: &from, Set: spec})
	if at := j.task.When.at; !at.IsZero() && !at.After(from) && j.st.spec == "" {
		lines = append(lines, line{Slot: &at, At: now, Outcome: Missed,
			Reason: "the time had passed when the task was first read", Spec: specHash(spec)})
	}
	if err := write(k.Volume, path, lines...); err != nil {
		return err
	}

	for _, l := range lines {
		if l.Outcome != "" {
			k.o.OnRun(k.firing(j.task, l), runOf(l))
		}
	}

	j.read, j.looked = false, time.Time{}
	if err := j.refold(path, now); err != nil {
		return err
	}

	j.begun = true
	return nil
}

// fire starts the run of a slot of the schedule.
func (s *Scheduler) fire(ctx context.Context, j *job, slot, now time.Time) {
	l := line{Firing: &slot, Spec: j.st.spec, Top: j.st.ahead(now)}
	if late := now.Sub(slot); late > grace {
		l.Via, l.Why = ViaCatchUp, "late by "+span(late.Truncate(time.Minute))
	}
	j.st.mark(l, now)
	s.start(ctx, j, l, false)
}

// resume hands a firing over again whose end is not known.
func (s *Scheduler) resume(ctx context.Context, j *job) { s.start(ctx, j, *j.st.open, true) }

// lookOut starts a look at what a task watches: one without a schedule, or before the
// first slot of one that has both.
func (s *Scheduler) lookOut(ctx context.Context, j *job, now time.Time) time.Time {
	if next := j.looked.Add(longest); !j.looked.After(now) && now.Before(next) {
		return next
	}
	j.looked = now
	slot := now.UTC().Truncate(time.Second)
	s.start(ctx, j, line{Firing: &slot, Via: ViaWatch, Spec: j.st.spec}, false)

	return now.Add(longest)
}

func (s *Scheduler) start(ctx context.Context, j *job, l line, resumed bool) {
	j.running, j.first = true, false
	t, hash := j.task, j.st.hash
	s.spawn(func() {
		r := &run{s: s, Task: t}
		err := r.do(ctx, l, hash, resumed)
		s.finish(ctx, &j.track, t.Slug, r.lines, err)
	})
}

// ErrBusy: a run of the task is in progress.
var ErrBusy = fault.TaskBusy

// RunNow runs a task once, whatever its schedule says, and returns its slot.
func (s *Scheduler) RunNow(slug string) (time.Time, error) {
	t, found, err := s.load(slug)
	if err != nil {
		return time.Time{}, err
	}
	if err := finding.Join(found); err != nil {
		return time.Time{}, err
	}

	if !s.o.Leads() {
		return s.o.Elsewhere(slug)
	}

	s.loop.Lock()
	defer s.loop.Unlock()
	now := s.Now()
	s.look(now)
	j := s.jobs[slug]
	switch {
	case j == nil:
		return time.Time{}, fmt.Errorf("%w: %s", ErrNotFound, slug)
	case j.running, !j.hand.IsZero():
		return time.Time{}, ErrBusy
	}

	t.ID = j.task.ID
	j.task, j.hand, j.reckoned = t, now.UTC().Truncate(time.Millisecond), false
	s.wake.ring()
	return j.hand, nil
}
