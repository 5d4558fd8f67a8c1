package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"daycare/engine/control"
)

// endless is a model that does not stop talking, and counts what it could say.
type endless struct {
	*httptest.Server
	said atomic.Int64
}

func endlessModel() *endless {
	e := &endless{}
	piece := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("word ", 2000) + `"}}]}` + "\n\n"
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			n, err := fmt.Fprint(w, piece)
			if e.said.Add(int64(n)); err != nil {
				return
			}
		}
	}))

	return e
}

// tool: a call that prints without end, as far as anybody is concerned.
func (f Flood) tool(ctx context.Context, d *child) ([]Row, error) {
	f.Progress(fmt.Sprintf("a tool that prints %.1f GB", float64(f.ToolBytes)/1e9))
	reason, text, u, took, err := d.turn(ctx, "tool", "print too much", "")
	row := Row{Name: fmt.Sprintf("tool that prints %.1f GB: the turn", float64(f.ToolBytes)/1e9), Value: took.Seconds(), Unit: "s",
		Note: fmt.Sprintf("%s; resident at most %.0f MiB", reason, mib(u.Peak))}
	if err == nil && (reason != "done" || !strings.Contains(text, "printed")) {
		err = fmt.Errorf("the turn of the tool ended as %s: %s", reason, text)
	}

	return []Row{row}, err
}

// endless: a model that streams without end.
func (f Flood) endless(ctx context.Context, d *child) ([]Row, error) {
	f.Progress("a model that streams for ever")
	reason, text, u, took, err := d.turn(ctx, "endless", "hello", "endless")
	row := Row{Name: "model that streams for ever: the turn", Value: took.Seconds(), Unit: "s",
		Note: fmt.Sprintf("%s; resident at most %.0f MiB", reason, mib(u.Peak))}
	if err == nil && !strings.Contains(text, "did not end") {
		err = fmt.Errorf("the turn of the endless model ended as %s: %.200s", reason, text)
	}

	return []Row{row}, err
}

// turn makes an agent, gives it a model if one is named, and waits for one turn.
func (d *child) turn(ctx context.Context, name, text, model string) (reason, said string, u Usage, took time.Duration, err error) {
	a, err := d.client.Create(ctx, control.NewAgent{Name: name})
	if err != nil {
		return "", "", u, 0, fmt.Errorf("make agent: %w", err)
	}
	if model != "" {
		if _, err := d.client.Folders().Switch(ctx, a.ID, model); err != nil {
			return "", "", u, 0, fmt.Errorf("switch its model: %w", err)
		}
	}

	begin := time.Now()
	o, err := d.client.Stream(ctx, a.ID, control.Message{Text: text}, func(control.RawEvent) {})
	if err != nil {
		return "", "", u, 0, fmt.Errorf("turn of %s: %w", name, err)
	}

	took = time.Since(begin)
	u, err = d.usage(ctx)

	return string(o.Reason), o.Text + o.Error, u, took, err
}

// leaks compares what the daemon holds with what it held at first, once the agents
// of the flood have left memory, which takes them a minute without work.
func (f Flood) leaks(ctx context.Context, d *child, before Usage, rows []Row) ([]Row, error) {
	f.Progress("what is still held when all is quiet")
	after, err := d.quiet(ctx, before)
	rows = append(rows,
		Row{Name: "daemon after it, resident", Value: mib(after.RSS), Unit: "MiB", Note: after.held()})
	if err == nil && after.leaks(before) {
		err = fmt.Errorf("descriptors or goroutines are left over: %s; at first %s", after.held(), before.held())
	}

	return rows, err
}

// slack is how many descriptors and goroutines may be more than before: idle
// connections, and what the first message started permanently.
const slack = 25

func (u Usage) leaks(before Usage) bool {
	return u.FDs > before.FDs+slack || u.Goroutines > before.Goroutines+slack
}

// quiet waits until the daemon has let go of what it took, at most three minutes.
func (d *child) quiet(ctx context.Context, before Usage) (u Usage, err error) {
	for end := time.Now().Add(3 * time.Minute); ; {
		d.http.CloseIdleConnections()
		if u, err = d.usage(ctx); err != nil || !u.leaks(before) || time.Now().After(end) {
			return u, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return u, ctx.Err()
		}
	}
}
