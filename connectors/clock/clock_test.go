package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/schedule"
)

// An engine is agents whose answers are given.
type engine struct {
	made    []string
	busy    bool
	refuse  []error // of the next deliveries
	got     []message.Incoming
	end     End
	noAgent bool
	noRoom  int // so many times no agent can be made
}

func (e *engine) Cron(_ context.Context, t Task) (string, error) {
	if e.noRoom > 0 {
		e.noRoom--
		return "", fmt.Errorf("make agent: %w", syscall.ENOSPC)
	}
	e.made = append(e.made, t.ID+" "+t.Name+" "+t.Model+" "+t.Dir)
	return t.ID, nil
}
func (e *engine) Heartbeat(context.Context) (string, error) { return "heart", nil }
func (e *engine) Find(ref string) (string, error) {
	if e.noAgent {
		return "", fmt.Errorf("%w: %s", message.ErrUnknownAgent, ref)
	}
	return "found-" + ref, nil
}
func (e *engine) Busy(string) bool           { return e.busy }
func (e *engine) Foreground() (string, bool) { return "me", !e.noAgent }

func (e *engine) deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	if len(e.refuse) > 0 {
		err := e.refuse[0]
		e.refuse = e.refuse[1:]
		return message.Receipt{}, err
	}
	e.got = append(e.got, in)
	return message.Receipt{Agent: in.Agent, Item: fmt.Sprintf("item%d", len(e.got))}, nil
}

func (e *engine) clock() *Clock {
	return New(e, e.deliver, func(_ context.Context, agent, item string) (End, error) { return e.end, nil }, slog.New(slog.DiscardHandler))
}

func firing() schedule.Firing {
	return schedule.Firing{Kind: schedule.Cron, Slug: "queue-watch", Name: "Queue watch", TaskID: "tz4a98xxat96iws9zmbrgj3a",
		Dir: "/w/.daycare/cron/queue-watch/files",
		Trigger: schedule.Trigger{Slot: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Zone: time.UTC,
			Dedupe: "cron:tz4a98xxat96iws9zmbrgj3a/2026-11-20T09:00:00Z"},
		Input: schedule.Input{Prompt: "Summarise the queue.", Memory: "yesterday: 3\n", Gate: "5 lines"}}
}

// A full disk makes a run late. It does not end it.
func TestTaskWaitsForRoomForItsAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{end: End{Reason: "done", Text: "five"}, noRoom: 2}
		began := time.Now()
		res, err := e.clock().Due(t.Context(), firing())
		if err != nil || res.Outcome != schedule.Ran || len(e.got) != 1 {
			t.Errorf("%+v, %v, %d messages; want one run", res, err, len(e.got))
		}
		if d := time.Since(began); d != 6*time.Second {
			t.Errorf("it waited %v, want 2s and 4s", d)
		}
	})
}

func TestTaskBecomesMessage(t *testing.T) {
	e := &engine{end: End{Reason: "done", Text: "five"}}
	res, err := e.clock().Due(t.Context(), firing())
	if err != nil {
		t.Fatal(err)
	}
	want := schedule.Result{Outcome: schedule.Ran, Item: "item1", Text: "five"}
	if d := cmp.Diff(want, res); d != "" {
		t.Error(d)
	}

	in := e.got[0]
	if in.Agent != "tz4a98xxat96iws9zmbrgj3a" || in.Kind != message.System || in.Origin != "cron" ||
		in.Dedupe != firing().Dedupe || in.Hops != 0 {
		t.Errorf("delivered %+v", in)
	}
	wantText := "Scheduled task \"Queue watch\" (queue-watch), due Friday 2026-11-20 09:00 UTC.\n\nSummarise the queue.\n\n" +
		"[Memory of this task]\nyesterday: 3\n\n[Gate output]\n5 lines\n\nYour answer here is kept, not sent: what the user shall know, " +
		"say with send_agent_message. What the next run shall know, write with cron_write_memory."
	if d := cmp.Diff(wantText, in.Text); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"tz4a98xxat96iws9zmbrgj3a Queue watch  /w/.daycare/cron/queue-watch/files"}, e.made); d != "" {
		t.Error(d)
	}
}

// A reminder for a chat speaks in that chat: its answer is the delivery.
func TestTaskOfAnotherAgent(t *testing.T) {
	e := &engine{end: End{Reason: "done"}}
	f := firing()
	f.Agent = "0/"
	if _, err := e.clock().Due(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if in := e.got[0]; in.Agent != "found-0/" || strings.Contains(in.Text, "send_agent_message") {
		t.Errorf("delivered to %s: %s", in.Agent, in.Text)
	}

	e.noAgent = true
	if _, err := e.clock().Due(t.Context(), f); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("an agent that is not there: %v", err)
	}
}

func TestHeartbeat(t *testing.T) {
	for answer, nothing := range map[string]bool{"HEARTBEAT_OK": true, " `HEARTBEAT_OK.` ": true, "NO_MESSAGE": true, "": false,
		"HEARTBEAT_OK but the disk is full": false} {
		e := &engine{end: End{Reason: "done", Text: answer}}
		f := schedule.Firing{Kind: schedule.Heartbeat,
			Trigger: schedule.Trigger{Slot: time.Unix(1700000000, 0), Dedupe: "heartbeat:x"},
			Input:   schedule.Input{Prompt: "## Disk\nIs it full?", Memory: "it was fine"}}
		res, err := e.clock().Due(t.Context(), f)
		if err != nil || res.Outcome != schedule.Ran || res.Nothing != nothing {
			t.Errorf("%q: %+v, %v; want nothing %v", answer, res, err, nothing)
		}
		if len(e.got) != 2 || e.got[0].Kind != message.Reset || e.got[0].Dedupe != "heartbeat:x/reset" ||
			e.got[1].Dedupe != "heartbeat:x" || e.got[1].Agent != "heart" {
			t.Errorf("delivered %+v", e.got)
		}
		if !strings.Contains(e.got[1].Text, "HEARTBEAT_OK") || !strings.Contains(e.got[1].Text, "[Your last answer]\nit was fine") {
			t.Errorf("the agent reads %q", e.got[1].Text)
		}
	}

	e := &engine{busy: true}
	res, err := e.clock().Due(t.Context(), schedule.Firing{Kind: schedule.Heartbeat})
	if err != nil || res.Outcome != schedule.Skipped || len(e.got) != 0 {
		t.Errorf("busy: %+v, %v, %d messages", res, err, len(e.got))
	}
}

func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		end  End
		want schedule.Outcome
	}{
		{End{Reason: "done"}, schedule.Ran}, {End{Reason: "waiting"}, schedule.Ran},
		{End{Reason: "error", Error: "no key\nat line"}, schedule.Failed},
		{End{Reason: "canceled"}, schedule.Failed}, {End{Reason: "poison"}, schedule.Failed}, {End{Reason: "limit"}, schedule.Failed},
		{End{Reason: "dropped"}, schedule.Skipped}, {End{}, schedule.Failed},
	} {
		if got := judge(tt.end); got.Outcome != tt.want {
			t.Errorf("%+v is %s, want %s", tt.end, got.Outcome, tt.want)
		}
	}
}

// A full inbox is waited for, with growing pauses; shutting down ends the wait.
func TestFullInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{refuse: []error{inbox.ErrFull, inbox.ErrFull, inbox.ErrFull}, end: End{Reason: "done"}}
		began := time.Now()
		if _, err := e.clock().Due(t.Context(), firing()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 14*time.Second {
			t.Errorf("it took %s, want 2 + 4 + 8 seconds", took)
		}

		e.refuse = make([]error, 100)
		for i := range e.refuse {
			e.refuse[i] = inbox.ErrFull
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := e.clock().Due(ctx, firing()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end of its context: %v", err)
		}
	})
}

func TestSay(t *testing.T) {
	e := &engine{}
	if err := e.clock().Say(t.Context(), "heartbeat:stopped/x", "It stopped."); err != nil {
		t.Fatal(err)
	}
	if in := e.got[0]; in.Agent != "me" || in.Dedupe != "heartbeat:stopped/x" || !strings.HasPrefix(in.Text, "It stopped.") {
		t.Errorf("said %+v", in)
	}
	e.noAgent = true
	if err := e.clock().Say(t.Context(), "k", "x"); err != nil {
		t.Errorf("with nobody to tell: %v", err)
	}
}
