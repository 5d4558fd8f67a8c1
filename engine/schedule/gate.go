package schedule

import (
	"context"
	"time"
)

// A Gate is a command that decides whether a task runs: exit 0 runs it with the
// output appended.
type Gate struct {
	Command        string
	Timeout        time.Duration
	Permissions    []string // tags that the command needs
	AllowedDomains []string
	// ByHand: a person runs the task now, and may be asked what they said no to before.
	ByHand bool
}

// An Output is how a gate ended.
type Output struct {
	Code int    // exit code
	Text string // standard output and error, bounded by whoever ran it
	// Refused says why the command was not run: a permission is missing and was
	// asked for.
	Refused string
}

// A GateFunc runs a gate with the rights of an agent, in the folder dir.
type GateFunc func(ctx context.Context, agentID, dir string, g Gate) (Output, error)

// gateTimeout is how long a gate may take that does not say.
const gateTimeout = 30 * time.Second
