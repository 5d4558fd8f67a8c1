package control

import (
	"errors"
	"strings"
	"time"
)

// ErrNotRunning: the operation needs the daemon, which is not running.
var ErrNotRunning = errors.New("the daemon is not running")

// ErrNoAsk: no permission request has that token.
var ErrNoAsk = errors.New("no such permission request")

// ErrBusy: the agent has work under way or waiting.
var ErrBusy = errors.New("the agent has work that is not finished")

// ErrProtected: agents of this kind are not killed; reset or remove them.
var ErrProtected = errors.New("this agent cannot be killed")

// An Ambiguous ref fits several agents.
type Ambiguous struct {
	Ref        string
	Candidates []string // handle and id of each
}

func (e *Ambiguous) Error() string {
	return "\"" + e.Ref + "\" fits several agents: " + strings.Join(e.Candidates, ", ")
}

// Decided says who answered a request first.
type Decided struct {
	Decision, By string
	At           time.Time
}

func (e *Decided) Error() string {
	return "already answered: " + e.Decision + " by " + e.By
}
