package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// A run is one slot on its way, and the lines of the ledger that it wrote.
type run struct {
	s *Scheduler
	Task
	path  string
	lines []line
}

// write adds to the ledger.
func (r *run) write(l line) error {
	if err := write(r.s.Volume, r.path, l); err != nil {
		return err
	}
	r.lines = append(r.lines, l)
	return nil
}

// do brings one slot of a task to its end: what is watched is looked at, the gate
// is asked, the firing is written down and handed over, and its end becomes the
// slot's line. Only trouble with the ledger, an agent that is away, or ctx's end, is an
// error; the slot then comes again.
func (r *run) do(ctx context.Context, l line, hash string, resumed bool) error {
	s := r.s
	r.path = s.files().cron(r.Slug, runsFile)
	if fresh, found, err := s.load(r.Slug); err == nil && fresh.ID == r.ID && finding.Join(found) == nil {
		r.Task = fresh // what the file says at this moment is what runs
	}
	t := r.Task
	began := s.Now()
	f := s.firing(t, l)
	f.Gate, f.Resumed = l.Extra, resumed
	end := line{Slot: l.Firing, Via: l.Via, Why: l.Why, Spec: l.Spec, Top: l.Top, At: began}
	agent, err := s.o.Target(ctx, f)
	if err != nil && l.Via == ViaWatch {
		return err // it is looked at again soon; a line for each try helps nobody
	}
	if err != nil {
		return r.failed(ctx, f, end, err)
	}
	if !resumed {
		skip, err := s.gates.check(ctx, t, agent, hash, &f, &l)
		switch {
		case l.Via == ViaWatch && !t.When.timing.Empty() && skip != unchanged:
			return nil // the watch begins with the first slot that can look
		case err != nil:
			return r.failed(ctx, f, end, err)
		case skip == unchanged && l.Via == ViaWatch:
			return r.watched(began, l.Hash, hash)
		case skip != "":
			// Only what ran has seen a change: behind a closed gate it is still one.
			if end.Outcome, end.Reason = Skipped, skip; skip == unchanged {
				end.Hash = l.Hash
			}
			return r.close(f, end)
		}

		l.At, l.Why = began, f.Why
		crash.Point("task.due")
		if err := r.write(l); err != nil {
			return err
		}
		crash.Point("task.fired")
	}
	if f.Memory, err = s.Memory(t.Slug); err != nil {
		s.o.Log.Warn("cannot read the task's notes", "task", t.Slug, "err", err)
	}

	f.Source = cmp.Or(f.Source, message.SourceOf(f.Memory))
	s.o.OnRun(f, runOf(line{Slot: l.Firing, At: began, Via: l.Via, Why: f.Why}))
	end.Why, end.Hash = f.Why, l.Hash
	res, err := Result{Outcome: Ran}, error(nil)
	if !crash.Bug("taskskipped") {
		res, err = s.o.Due(ctx, f)
	}

	crash.Point("task.ended")
	if err != nil {
		return r.failed(ctx, f, end, err)
	}
	return r.ended(f, end, res)
}

// ended writes how a firing ended, and removes a task that was to run once.
func (r *run) ended(f Firing, end line, res Result) error {
	end.Outcome, end.Reason, end.Item = res.Outcome, res.Reason, res.Item
	end.Remove = r.DeleteAfterRun && res.Outcome == Ran && !r.comes(end)
	end.MS = max(r.s.Now().Sub(end.At).Milliseconds(), 0)
	if err := r.close(f, end); err != nil {
		return err
	}
	if !end.Remove {
		return nil
	}
	if _, err := r.s.Remove(r.Slug); err != nil && !errors.Is(err, ErrNotFound) {
		r.s.o.Log.Warn("cannot remove task after its run", "task", r.Slug, "err", err)
	}

	return nil
}

// comes reports whether a task is to run again after a run that would be its last: its file was given another time since
// that run was fired, or says no more that it goes, or it ran by hand, which is in addition to its schedule.
func (r *run) comes(end line) bool {
	fresh, found, err := r.s.load(r.Slug)
	if err == nil && finding.Join(found) == nil &&
		(fresh.ID != r.ID || !fresh.DeleteAfterRun || specHash(fresh.spec()) != end.Spec) {
		return true
	}
	if end.Via != ViaHand {
		return false
	}
	_, more := r.When.Next(r.s.Now(), r.s.Now())

	return more || r.watches()
}

// failed writes down that a firing came to nothing. The end of ctx is not a failure, and a slot whose agent is away comes again.
func (r *run) failed(ctx context.Context, f Firing, end line, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	end.Outcome, end.Reason = Failed, oneLine(err.Error())
	if away(err) {
		if end.Via != ViaHand || f.Resumed || len(r.lines) > 0 {
			return err
		}
		end.Outcome = Skipped // who ran it by hand sees that, and can again
	}

	return r.close(f, end)
}

// away reports whether an error says that the machine which has the agent does not answer at this moment: what the agent may
// do is not known, and nothing is accepted for it.
func away(err error) bool {
	return errors.Is(err, disk.ErrAway) || errors.Is(err, disk.ErrFenced) || errors.As(err, new(*message.Elsewhere))
}

// close writes the line of a slot.
func (r *run) close(f Firing, end line) error {
	if err := r.write(end); err != nil {
		return err
	}
	r.s.o.OnRun(f, runOf(end))
	return nil
}

const unchanged = "unchanged: no watched file or output has changed"

// gates runs what decides whether a task has something to do.
type gates struct {
	run       GateFunc // nil: no gate opens
	workspace string   // the folder that watch patterns are relative to
}

// check decides whether a slot runs. skip says why not. It completes the firing
// and its line.
func (gs gates) check(ctx context.Context, t Task, agent, hash string, f *Firing, l *line) (skip string, err error) {
	if t.watches() {
		d := newDigest()
		if skip, err := gs.inputs(ctx, agent, f.Dir, t.Watch, t.WatchCommand, d); skip != "" || err != nil {
			return skip, err
		}
		l.Hash = d.sum()
		first := hash == "" // what it looks like when the watch begins is not a change
		if (l.Hash == hash || first) && l.Via != ViaHand {
			return unchanged, nil
		}
		if l.Via != ViaHand {
			f.Why = strings.TrimPrefix(f.Why+"; changed: "+watchWords(t), "; ")
		}
	}
	if t.Gate == nil {
		return "", nil
	}

	g := *t.Gate
	g.ByHand = l.Via == ViaHand
	out, skip, err := gs.ask(ctx, agent, f.Dir, g)
	f.Gate, l.Extra = out, out
	return skip, err
}

func watchWords(t Task) string {
	all := t.Watch
	if t.WatchCommand != "" {
		all = append(all[:len(all):len(all)], "the output of "+oneLine(t.WatchCommand))
	}

	return strings.Join(all, ", ")
}

// watched remembers what a watch saw when it began.
func (r *run) watched(at time.Time, hash, before string) error {
	if before != "" {
		return nil
	}
	return r.write(line{At: at, Reason: "started watching", Hash: hash})
}

// inputs adds what files and a command say to a digest.
func (gs gates) inputs(ctx context.Context, agent, dir string, patterns []string, command string, d digest) (skip string, err error) {
	if len(patterns) > 0 {
		d.files(gs.workspace, patterns)
	}
	if command == "" {
		return "", nil
	}
	if gs.run == nil {
		return "commands cannot run here", nil
	}

	out, err := gs.run(ctx, agent, dir, Gate{Command: command, Timeout: gateTimeout})
	if err != nil || out.Refused != "" {
		return out.Refused, err
	}
	d.text("command", fmt.Sprintf("%d %s", out.Code, out.Text))

	return "", nil
}

// maxExtra limits the output of a gate that the task gets, in bytes: it is in the ledger
// until the run has ended.
const maxExtra = 16 << 10

// ask asks a gate. Exit 0 opens it.
func (gs gates) ask(ctx context.Context, agent, dir string, g Gate) (text, skip string, err error) {
	if gs.run == nil {
		return "", "gate: commands cannot run here", nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	out, err := gs.run(ctx, agent, dir, g)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && !away(err):
		return "", fmt.Sprintf("gate: took longer than %s", g.Timeout), nil
	case err != nil:
		return "", "", fmt.Errorf("run gate: %w", err)
	case out.Refused != "":
		return "", "gate: " + out.Refused, nil
	case out.Code != 0:
		return "", strings.TrimSpace(fmt.Sprintf("gate: exit code %d %s", out.Code, oneLine(out.Text))), nil
	}

	if text = strings.ToValidUTF8(out.Text, "\ufffd"); len(text) > maxExtra {
		text = strings.ToValidUTF8(text[:maxExtra], "") + "\n[cut]"
	}

	return strings.TrimSpace(text), "", nil
}

// firing is a slot of a task as the outside sees it.
func (k *known) firing(t Task, l line) Firing {
	slot := l.slot().UTC()
	f := Firing{Kind: Cron, Slug: t.Slug, Name: t.Name, TaskID: t.ID, Agent: t.Agent, Maker: t.CreatedBy,
		Source: t.Source, Model: t.Model, Input: Input{Prompt: t.Prompt},
		Trigger: Trigger{Slot: slot, Via: l.Via, Why: l.Why, Zone: t.When.zone,
			Dedupe: "cron:" + t.ID + "/" + slot.Format(time.RFC3339)}}
	if !l.Via.nominal() {
		f.Dedupe += "-" + string(l.Via)
	}
	if f.Via == ViaHand {
		f.Dedupe = "cron:" + t.ID + "/" + slot.Format("2006-01-02T15:04:05.000Z") + "-hand"
	}
	if t.Agent != "" {
		return f
	}

	f.Dir = k.files().cron(t.Slug, filesDir)
	if isDir(filepath.Dir(f.Dir)) {
		if err := k.Volume.MkdirAll(f.Dir); err != nil {
			k.o.Log.Warn("cannot create the task's folder", "dir", f.Dir, "err", err)
		}
	}

	return f
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// oneLine is the beginning of a text on one line.
func oneLine(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}

	return text
}
