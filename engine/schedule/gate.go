package schedule

import (
	"context"
	"time"
)

// A Gate is a command that decides whether a task runs: exit code 0 runs it and adds the output to
// the prompt.
type Gate struct {
	Command        string
	Timeout        time.Duration
	Permissions    []string // tags that the command needs
	AllowedDomains []string
	// ByHand: a user runs the task now, so requests that they denied before can be made again.
	ByHand bool
}

// An Output is the result of a gate.
type Output struct {
	Code int    // exit code
	Text string // standard output and error, limited by the runner
	// Refused says why the command was not run: a permission is missing and was
	// requested.
	Refused string
}

// A GateFunc runs a gate with the permissions of an agent, in the folder dir (absolute).
type GateFunc func(ctx context.Context, agentID, dir string, g Gate) (Output, error)

// gateTimeout is how long a gate may take that does not say.
const gateTimeout = 30 * time.Second
