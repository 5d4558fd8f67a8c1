package shell

import (
	"context"
	"fmt"
	"time"

	"daycare/tools"
)

const (
	// yieldAfter is how long a turn waits for a command; what runs longer continues
	// in the background.
	yieldAfter = time.Minute
	// MaxBackground bounds a background process that names no timeout.
	MaxBackground = 24 * time.Hour
	// settleFor is how long the start of a background process is watched: what
	// fails at once is reported at once.
	settleFor = 500 * time.Millisecond
)

// inBackground starts the command as a background process.
func (e *Exec) inBackground(ctx context.Context, call tools.Call, p process, timeout time.Duration) tools.Result {
	if e.options.Jobs == nil {
		return tools.Errorf("exec: there are no background processes here")
	}
	p.keepOpen = p.stdin == ""
	j, err := e.jobs.start(call.Agent, p, nil)
	if err != nil {
		return tools.Errorf("exec: %v", err)
	}

	e.jobs.adopt(j, timeout)
	select {
	case <-j.run.done:
	case <-ctx.Done():
	case <-time.After(settleFor):
	}

	return tools.Result{Text: fmt.Sprintf("Process %s %s\n%s", j.info.ID, j.state(), j.recent(2000))}
}

// yielding runs the command in the foreground first. Its output goes to the place
// of a background process from the beginning, so that none is lost when it becomes
// one.
func (e *Exec) yielding(ctx context.Context, call tools.Call, p process, timeout time.Duration, out *capture) tools.Result {
	j, err := e.jobs.start(call.Agent, p, out)
	if err != nil {
		out.discard()
		return tools.Errorf("exec: %v", err)
	}

	timer := time.NewTimer(e.jobs.yieldAfter)
	defer timer.Stop()

	select {
	case <-j.run.done:
	case <-ctx.Done():
		j.run.terminate()
		<-j.run.done
	case <-timer.C:
		text, whole := j.detach() // from here on only the process's own output grows
		e.jobs.adopt(j, timeout-e.jobs.yieldAfter)
		return tools.Result{Whole: whole,
			Text: fmt.Sprintf("%s\n[still running after %v: it continues in the background as process %s, for at most %v; see process]",
				text, e.jobs.yieldAfter, j.info.ID, timeout)}
	}

	e.jobs.forget(j)
	out.finish()
	return p.explained(result(ctx, j.run.end, timeout, out))
}
