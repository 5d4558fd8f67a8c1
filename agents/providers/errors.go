package providers

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Kind says what a failed call means for the next step.
type Kind string

const (
	Busy     Kind = "busy"     // 429, 503, 529: try again later
	Broken   Kind = "broken"   // no connection, reset, a stream that broke or ended early: try again
	Overflow Kind = "overflow" // the context does not fit the model's window
	Down     Kind = "down"     // nothing listens at an address of this machine: try once more
	NoKey    Kind = "no-key"   // nothing was sent: there is no key
	Auth     Kind = "auth"     // the key is wrong or has no credit
	Rejected Kind = "rejected" // any other answer that says no; trying again is no use
	Budget   Kind = "budget"   // nothing was sent: what may be spent is used up
)

// ErrEmpty is the cause of the Failure after a model answered again and again
// with neither text nor calls.
var ErrEmpty = errors.New("the model's answer is empty")

// A Failure is every error of a Provider.
type Failure struct {
	Kind       Kind
	Provider   string        // id of the provider
	Status     int           // HTTP status; 0: there was none
	RetryAfter time.Duration // what the service asked for; 0: nothing
	Message    string        // of the service, shortened, secrets redacted
	RequestID  string        // the vendor's id of the request, for its support; may be empty
	Err        error         // cause, or nil
}

// Error is one line, for the log and for users.
func (f *Failure) Error() string {
	if f.Kind == NoKey && f.Message != "" {
		return f.Message // it names the provider
	}
	var b strings.Builder
	b.WriteString(f.Provider + ": ")
	if f.Status != 0 {
		fmt.Fprintf(&b, "HTTP %d: ", f.Status)
	}

	switch {
	case f.Message != "":
		b.WriteString(f.Message)
	case f.Err != nil:
		b.WriteString(f.Err.Error())
	default:
		b.WriteString(string(f.Kind))
	}

	if f.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", f.RequestID)
	}

	return b.String()
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Retryable reports whether the same call may succeed later.
func (f *Failure) Retryable() bool { return f.Kind == Busy || f.Kind == Broken || f.Kind == Down }

// Classify makes any error a Failure; one that is none yet is taken as a broken
// connection. The end of a context is not a failure: look for it before.
func Classify(provider string, err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}

	return &Failure{Kind: Broken, Provider: provider, Err: err}
}
