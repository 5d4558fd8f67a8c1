package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// diary is clocks with one task.
type diary struct{ got []TaskChange }

func (d *diary) Tasks(context.Context) ([]Task, error) { return []Task{{Slug: "t"}}, nil }
func (d *diary) Task(_ context.Context, slug string) (Task, error) {
	if slug != "t" {
		return Task{}, ErrNoTask
	}
	return Task{Slug: slug, Next: []time.Time{}}, nil
}
func (d *diary) AddTask(_ context.Context, c TaskChange) (Task, error) {
	d.got = append(d.got, c)
	return Task{Slug: "new"}, nil
}
func (d *diary) ChangeTask(_ context.Context, slug string, c TaskChange) (Task, error) {
	d.got = append(d.got, c)
	return Task{Slug: slug}, nil
}
func (d *diary) RemoveTask(context.Context, string) (string, error) { return "trash/t", nil }
func (d *diary) RunTask(context.Context, string) (time.Time, error) { return time.Time{}, ErrTaskBusy }
func (d *diary) TaskRuns(_ context.Context, _ string, n int) ([]TaskRun, error) {
	return make([]TaskRun, n), nil
}
func (d *diary) Heartbeat(context.Context) (Heartbeat, error) { return Heartbeat{Every: "30m0s"}, nil }
func (d *diary) AddPrompt(_ context.Context, p PromptChange) (Prompt, error) {
	return Prompt{Slug: p.Title}, nil
}
func (d *diary) RemovePrompt(context.Context, string) (string, error)  { return "", ErrNoTask }
func (d *diary) RunHeartbeat(context.Context) (time.Time, error)       { return time.Unix(1, 0).UTC(), nil }
func (d *diary) HeartbeatRuns(context.Context, int) ([]TaskRun, error) { return nil, nil }

func TestScheduleRoutes(t *testing.T) {
	d := &diary{}
	b := (&fake{}).backend()
	b.Schedules = d
	c := NewClient(Local(Handler(b, Options{})))
	ctx := t.Context()

	if list, err := c.Schedule().Tasks(ctx); err != nil || len(list) != 1 {
		t.Errorf("tasks: %v, %v", list, err)
	}
	if _, err := c.Schedule().Task(ctx, "../x"); !errors.Is(err, ErrNoTask) {
		t.Errorf("a task that is not there: %v", err)
	}

	prompt, when := "Do it.", "every day at 9"
	change := TaskChange{Prompt: &prompt, When: &when}
	if made, err := c.Schedule().AddTask(ctx, change); err != nil || made.Slug != "new" {
		t.Errorf("add: %+v, %v", made, err)
	}
	var invalid *Invalid
	if _, err := c.Schedule().AddTask(ctx, TaskChange{When: &when}); !errors.As(err, &invalid) || invalid.Field != "prompt" {
		t.Errorf("add without a prompt: %v", err)
	}
	if made, err := c.Schedule().ChangeTask(ctx, "t", TaskChange{When: &when}); err != nil || made.Slug != "t" {
		t.Errorf("change: %+v, %v", made, err)
	}
	if diff := cmp.Diff([]TaskChange{change, {When: &when}}, d.got); diff != "" {
		t.Errorf("what came over:\n%s", diff)
	}
	if trash, err := c.Schedule().RemoveTask(ctx, "t"); err != nil || trash != "trash/t" {
		t.Errorf("remove: %q, %v", trash, err)
	}
	if _, err := c.Schedule().RunTask(ctx, "t"); !errors.Is(err, ErrTaskBusy) {
		t.Errorf("a run beside a run: %v", err)
	}
	if runs, err := c.Schedule().TaskRuns(ctx, "t", 7); err != nil || len(runs) != 7 {
		t.Errorf("runs: %d, %v", len(runs), err)
	}
	if h, err := c.Schedule().Heartbeat(ctx); err != nil || h.Every != "30m0s" || h.Prompts == nil {
		t.Errorf("heartbeat: %+v, %v", h, err)
	}
	if p, err := c.Schedule().AddPrompt(ctx, PromptChange{Title: "disk", Prompt: "x"}); err != nil || p.Slug != "disk" {
		t.Errorf("add prompt: %+v, %v", p, err)
	}
	if _, err := c.Schedule().RemovePrompt(ctx, "none"); !errors.Is(err, ErrNoTask) {
		t.Errorf("remove prompt: %v", err)
	}
	if slot, err := c.Schedule().RunHeartbeat(ctx); err != nil || slot.Unix() != 1 {
		t.Errorf("run heartbeat: %v, %v", slot, err)
	}
	if runs, err := c.Schedule().HeartbeatRuns(ctx, 0); err != nil || runs == nil {
		t.Errorf("beats: %v, %v", runs, err)
	}
}

// ledgers are two tasks and a heartbeat with their runs, in hours of a day.
type ledgers struct {
	*diary
	runs   map[string][]int
	broken string // the ledger that cannot be read
}

func (l ledgers) Tasks(context.Context) ([]Task, error) {
	return []Task{{Slug: "a"}, {Slug: "b"}, {Slug: "gone"}}, nil
}

func (l ledgers) TaskRuns(_ context.Context, slug string, _ int) (list []TaskRun, err error) {
	if slug == "gone" {
		return nil, ErrNoTask
	}
	if slug == l.broken {
		return nil, errors.New("the ledger cannot be read")
	}
	for _, hour := range l.runs[slug] {
		at := time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC)
		list = append(list, TaskRun{Slot: at, At: at, Outcome: "ran"})
	}
	return list, nil
}

func (l ledgers) HeartbeatRuns(ctx context.Context, n int) ([]TaskRun, error) {
	return l.TaskRuns(ctx, "heartbeat", n)
}

func TestRunsOfAllTasks(t *testing.T) {
	b := (&fake{}).backend()
	b.Schedules = ledgers{&diary{}, map[string][]int{"a": {1, 5}, "b": {4}, "heartbeat": {3, 2}}, ""}
	for query, want := range map[string]string{"": "a5 b4 3 2 a1", "?since=2026-11-20T03:00:00Z": "a5 b4 3",
		"?since=2026-11-21T00:00:00Z": ""} {
		_, _, text := raw(t, Handler(b, Options{}), "GET", "/v1/runs"+query, "")
		var got allRunsBody
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		var runs []string
		for _, r := range got.Runs {
			runs = append(runs, fmt.Sprint(r.Slug, r.At.Hour()))
		}
		if strings.Join(runs, " ") != want {
			t.Errorf("%s: %v, want %s", query, runs, want)
		}
	}

	for _, broken := range []string{"b", "heartbeat"} {
		b.Schedules = ledgers{&diary{}, map[string][]int{"a": {1}}, broken}
		if status, _, text := raw(t, Handler(b, Options{}), "GET", "/v1/runs", ""); status != http.StatusInternalServerError {
			t.Errorf("without the ledger of %s: %d %s", broken, status, text)
		}
	}
}
