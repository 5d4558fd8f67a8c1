package fault

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
)

// A Fault is one way to fail. It is an error itself.
type Fault struct {
	Text   string // what happened
	Code   string // in the API and with --json; "" is a failure that the API has no code for
	Status int    // of HTTP; 0: 500
	Exit   int    // exit code of a command
	Hint   string // what to do, for who typed a command
	Route  string // what to do, for who called the API; "": Hint
	About  string // when it happens and what is sent along, for docs/api.md; "": Text

	err error // the error of the standard library that this one stands for
}

// Internal is the code of an error that is not on the list.
const Internal = "internal"

// Error says what happened.
func (f *Fault) Error() string { return f.Text }

// Fault makes a Fault known to Find.
func (f *Fault) Fault() *Fault { return f }

// Says returns an error that is f and has another text.
func (f *Fault) Says(format string, args ...any) error {
	return &said{f, fmt.Sprintf(format, args...)}
}

type said struct {
	*Fault

	text string
}

func (s *said) Error() string { return s.text }
func (s *said) Unwrap() error { return s.Fault }

// Advises returns a copy of f with another hint, for both kinds of callers.
func (f *Fault) Advises(hint string) *Fault {
	other := *f
	other.Hint, other.Route = hint, hint
	return &other
}

// Known is an error that knows its fault.
type Known interface {
	error
	Fault() *Fault
}

// Find returns the fault of an error, never nil: an error that is not on the list is an
// internal one.
func Find(err error) *Fault {
	if known, ok := errors.AsType[Known](err); ok {
		return known.Fault()
	}
	for _, f := range All {
		if f.err != nil && errors.Is(err, f.err) {
			return f
		}
	}

	return unlisted
}

// ByCode returns the fault of a code, or nil.
func ByCode(code string) *Fault {
	for _, f := range All {
		if f.Code == code && f != unlisted {
			return f
		}
	}

	return nil
}

// Wire returns the code and the HTTP status that a failure has in the API.
func (f *Fault) Wire() (code string, status int) {
	return cmp.Or(f.Code, Internal), cmp.Or(f.Status, http.StatusInternalServerError)
}

// Sentinel returns the error that errors.Is looks for: the fault, or what it stands for.
func (f *Fault) Sentinel() error {
	if f.err != nil {
		return f.err
	}
	return f
}
