package agents

import (
	"errors"
	"strings"

	"daycare/agents/providers"
)

// Causes of a turn's end that do not come from outside.
var (
	errInterrupt = errors.New("a new message arrived")
	errStuck     = errors.New("no progress")
)

// budgetOf is the failure of a request that a budget refused, nil for any other error.
func budgetOf(err error) *providers.Failure {
	var f *providers.Failure
	if errors.As(err, &f) && f.Kind == providers.Budget {
		return f
	}

	return nil
}

// A callError is what a model call failed with.
type callError struct{ error }

func (e callError) Unwrap() error { return e.error }

// overflowed reports that a request was refused because it is too long.
func overflowed(err error) bool {
	var f *providers.Failure
	return errors.As(err, &f) && f.Kind == providers.Overflow
}

// short says in one or two sentences what went wrong and what to do.
func short(err error) string {
	var f *providers.Failure
	if !errors.As(err, &f) {
		return "I could not answer: " + firstLine(err.Error()) + ". Please try again."
	}
	what := firstLine(f.Error())
	switch f.Kind {
	case providers.NoKey:
		return what
	case providers.Down:
		return "The model service on this machine does not answer (" + what +
			"). Is the server running? Test it with: daycare providers test"
	case providers.Auth:
		return "The model service did not accept the key (" + what + "). Check the key, then ask again."
	case providers.Busy, providers.Broken:
		return "The model service could not be reached or is too busy (" + what + "). Please ask again in a while."
	default:
		return "The model service refused the request (" + what + ")."
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}

	return s
}
