package schedule

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"daycare/engine/finding"
	"daycare/engine/message"
)

// maxFails is how many failures in a row stop the heartbeat.
const maxFails = 5

// heartbeat is the heartbeat as the loop knows it.
type heartbeat struct {
	track
	prompts int       // that take part
	saved   time.Time // when one of them was last saved
	hand    time.Time
}

// lookAtBeat reads the prompts.
func (k *known) lookAtBeat() []finding.Finding {
	b, found, err := k.Heartbeat()
	if err != nil {
		k.o.Log.Warn("cannot read heartbeat", "err", err)
		return nil
	}

	k.heartbeat.prompts, k.heartbeat.saved = 0, time.Time{}

	for _, p := range b.Prompts {
		found = append(found, p.Found...)
		if info, err := os.Stat(k.files().heart(p.Slug + ".md")); err == nil {
			k.heartbeat.saved = later(k.heartbeat.saved, info.ModTime())
		}
		if p.beats(p.Found) {
			k.heartbeat.prompts++
		}
	}

	return found
}

// pulse is advance for the heartbeat.
func (s *Scheduler) pulse(ctx context.Context, now time.Time) (time.Time, error) {
	b, every := &s.heartbeat, s.Every()
	switch {
	case b.running:
		return time.Time{}, nil
	case now.Before(b.retry):
		return b.retry, nil
	case b.prompts == 0 && b.hand.IsZero():
		return time.Time{}, nil
	}

	path := s.files().heart(runsFile)
	if err := b.refold(path, now); err != nil {
		return time.Time{}, err
	}
	if b.st.set == "" && b.st.last == nil {
		l := line{At: now, Set: "heartbeat"}
		if err := write(s.Volume, path, l); err != nil {
			return time.Time{}, err
		}
		b.st.begin(l, now)
	}
	if b.st.at.After(now) {
		b.st.at = now // the clock went back; count from here
	}

	switch stopped := b.st.fails >= maxFails; {
	case b.st.open != nil:
		s.beatOn(ctx, *b.st.open, true)
		return time.Time{}, nil
	case !b.hand.IsZero():
		slot := b.hand
		b.hand = time.Time{}
		s.beatOn(ctx, line{Firing: &slot, Via: ViaHand, Why: "run by hand"}, false)
		return time.Time{}, nil
	case every <= 0:
		return time.Time{}, nil
	case stopped && b.st.last.Outcome == Failed:
		s.sayStopped(ctx, now)
		return time.Time{}, nil
	case stopped && !b.saved.After(b.st.at):
		return time.Time{}, nil
	}

	due := beatDue(b.st, every, now)
	if due.After(now) {
		return due, nil
	}
	s.beatOn(ctx, line{Firing: &due}, false)

	return time.Time{}, nil
}

// beatOn starts one beat.
func (s *Scheduler) beatOn(ctx context.Context, l line, resumed bool) {
	st := s.heartbeat.st
	s.beatDo(ctx, func(r *run) error { return r.beat(ctx, l, st, resumed) })
}

func (s *Scheduler) beatDo(ctx context.Context, do func(*run) error) {
	s.heartbeat.running = true
	s.spawn(func() {
		r := &run{s: s, path: s.files().heart(runsFile)}
		err := do(r)
		s.finish(ctx, &s.heartbeat.track, "heartbeat", r.lines, err)
	})
}

// sayStopped tells the owner that the heartbeat has stopped. The line that says so
// comes after, so that a crash in between tells again under the same key.
func (s *Scheduler) sayStopped(ctx context.Context, now time.Time) {
	last, fails, slot := *s.heartbeat.st.last, s.heartbeat.st.fails, now.UTC().Truncate(time.Second)
	text := fmt.Sprintf("The heartbeat failed %d times in a row and has stopped. The last error: %s. It resumes when "+
		"you save one of its items, or with: daycare heartbeat run",
		fails, last.Reason)
	s.beatDo(ctx, func(r *run) error {
		if err := s.o.Say(ctx, "heartbeat:stopped/"+last.Slot.UTC().Format(time.RFC3339), text); err != nil {
			return err
		}
		return r.close(Firing{Kind: Heartbeat, Trigger: Trigger{Slot: slot}}, line{Slot: &slot, At: now, Outcome: Skipped,
			Reason: fmt.Sprintf("stopped after %d failures in a row", fails)})
	})
}

// BeatNow runs the heartbeat once, even if nothing changed, and returns its slot. Errors:
// ErrNotFound (no items), ErrBusy.
func (s *Scheduler) BeatNow() (time.Time, error) {
	if !s.o.Leads() {
		return s.o.Elsewhere("")
	}
	s.loop.Lock()
	defer s.loop.Unlock()
	s.look(s.Now())
	switch {
	case s.heartbeat.prompts == 0:
		return time.Time{}, fmt.Errorf("%w: the heartbeat has no items", ErrNotFound)
	case s.heartbeat.running, !s.heartbeat.hand.IsZero():
		return time.Time{}, ErrBusy
	}

	s.heartbeat.hand = s.Now().UTC().Truncate(time.Millisecond)
	s.wake.ring()

	return s.heartbeat.hand, nil
}

// heartbeat is do for the heartbeat: all prompts are one batch.
func (r *run) beat(ctx context.Context, l line, st state, resumed bool) error {
	s := r.s
	began, slot := s.Now(), l.Firing.UTC()
	f := Firing{Kind: Heartbeat, Name: "heartbeat", Input: Input{Prompt: l.Extra, Memory: st.text, Resumed: resumed},
		Trigger: Trigger{Slot: slot, Via: l.Via, Why: l.Why, Zone: s.Zone(),
			Dedupe: "heartbeat:" + slot.Format(time.RFC3339)}}
	if l.Via == ViaHand {
		f.Dedupe = "heartbeat:" + slot.Format("2006-01-02T15:04:05.000Z") + "-hand"
	}

	end := line{Slot: l.Firing, At: began, Via: l.Via, Why: l.Why}
	skip := func(reason string) error {
		end.Outcome, end.Reason = Skipped, reason
		return r.close(f, end)
	}
	if !s.Hours().Cover(began.In(s.Zone())) && l.Via != ViaHand && !resumed {
		return skip("outside active hours")
	}

	agent, err := s.o.Target(ctx, f)
	if err != nil {
		return r.failed(ctx, f, end, err)
	}
	if !resumed {
		text, hash, none, err := s.batch(ctx, agent, began, l.Via == ViaHand)
		switch {
		case err != nil:
			return r.failed(ctx, f, end, err)
		case none != "":
			return skip(none)
		case hash == st.okHash && l.Via != ViaHand:
			end.Hash = hash
			return skip("unchanged since the last report of nothing")
		}

		f.Prompt, l.Extra, l.Hash, l.At = text, text, hash, began
		if err := r.write(l); err != nil {
			return err
		}
	}

	f.Source = message.SourceOf(f.Prompt + f.Memory)
	s.o.OnRun(f, runOf(line{Slot: l.Firing, At: began, Via: l.Via, Why: l.Why}))
	res, err := s.o.Due(ctx, f)
	if err != nil {
		return r.failed(ctx, f, end, err)
	}

	end.Hash, end.OK, end.Text = l.Hash, res.Nothing, message.WithSource(beginning(res.Text), res.Source)
	return r.ended(f, end, res)
}

// beginning is how much of an answer the next run of the heartbeat gets.
func beginning(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}

	return strings.ToValidUTF8(text[:most], "") + "…"
}

// batch makes one text of all prompts that take part now, and the hash of all that
// they check. none says why there is no prompt.
func (s *Scheduler) batch(ctx context.Context, agent string, now time.Time, always bool) (text, hash, none string, err error) {
	prompts, err := s.prompts()
	if err != nil {
		return "", "", "", err
	}
	d := newDigest()
	var parts []string
	none = "there are no items"
	for _, p := range prompts {
		if !p.Hours.Cover(now.In(s.Zone())) && !always {
			none = "outside active hours"
			continue
		}
		item, gated := newDigest(), ""
		if p.Gate != nil {
			var skip string
			if gated, skip, err = s.gates.ask(ctx, agent, s.o.Workspace, *p.Gate); err != nil {
				return "", "", "", err
			}
			if skip != "" {
				none = skip
				continue
			}
			item.text("gate", gated)
		}

		item.text("prompt", p.Slug+"\n"+p.Title+"\n"+p.Text)
		patterns := p.Watch
		if len(patterns) == 0 && p.WatchCommand == "" && p.Gate == nil {
			patterns = []string{"**"} // it says not what it looks at: all that is here
		}
		skip, err := s.gates.inputs(ctx, agent, s.o.Workspace, patterns, p.WatchCommand, item)
		if err != nil {
			return "", "", "", err
		}
		if skip != "" {
			none = skip
			continue
		}
		d.text("item", item.sum())

		part := "## " + p.Title + "\n" + p.Text
		if gated != "" {
			part += "\n\n[Gate output]\n" + gated
		}
		parts = append(parts, part)
	}

	if len(parts) == 0 {
		return "", "", none, nil
	}

	return strings.Join(parts, "\n\n"), d.sum(), "", nil
}
