package term

import (
	"fmt"
	"strings"
	"time"

	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// NobodyRuns is an error that says who holds the workspace.
func (c *App) NobodyRuns(at workspace.Place) error {
	if !disk.Held(at.Lock()) {
		return nil
	}
	if h, err := disk.ReadHolder(at.Lock()); err == nil && h.PID > 0 && !h.Alive() {
		return nil // it was killed a moment ago, and what it started is about to go as well
	}

	return AlreadyRunning(at)
}

// StartWait bounds how long a background start may take until its socket answers:
// recovery of a large workspace included.
const StartWait = 60 * time.Second

// AlreadyRunning is the error for a workspace that another daycare has.
func AlreadyRunning(at workspace.Place) error {
	holder, err := disk.ReadHolder(at.Lock())
	if err != nil || holder.PID == 0 {
		return &Problem{Code: fault.ExitFailure,
			Err: fmt.Errorf("another daycare is starting in %s", at.Dir),
			Do:  "check it with: daycare status"}
	}

	return &Problem{Code: fault.ExitFailure,
		Err: fmt.Errorf("daycare is already running in %s: pid %d, since %s (%s)", at.Dir, holder.PID,
			holder.StartedAt.Local().Format("2006-01-02 15:04:05"), Ago(holder.StartedAt.Time, time.Now())),
		Do: "stop it with: daycare stop"}
}

// Parens puts text in parentheses; "" stays empty.
func Parens(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// Join joins the parts that are not empty.
func Join(sep string, parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}

	return strings.Join(some, sep)
}
