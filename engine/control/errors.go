package control

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// Failures of the API, under the names of this package.
var (
	// ErrNotRunning: the operation needs the daemon, which is not running.
	ErrNotRunning = fault.NotRunning
	// ErrNoAsk: no permission request has that token.
	ErrNoAsk = fault.NoAsk
	// ErrBusy: the agent is working or has queued items.
	ErrBusy = fault.Busy
	// ErrProtected: agents of this type cannot be killed; reset or remove them.
	ErrProtected = fault.Protected
	// ErrAgentLimit: there are as many agents as a setting allows. None was created.
	ErrAgentLimit = fault.AgentLimit
	// ErrNoFile: no stored file has that id.
	ErrNoFile = fault.NoFile
	// ErrFileTooLarge: the file is larger than MaxFileBytes.
	ErrFileTooLarge = fault.FileTooLarge
	// ErrCut: a stream ended before its turn did. What was accepted is safe.
	ErrCut = fault.Cut
)

// An Ambiguous ref matches several agents.
type Ambiguous = address.Ambiguous

// Decided says who answered a request first.
type Decided struct {
	Decision, By string
	At           time.Time
}

func (e *Decided) Error() string {
	return "already answered: " + e.Decision + " by " + e.By
}

// Unwrap returns the fault.
func (e *Decided) Unwrap() error { return fault.Decided }

// An Invalid request has a field that cannot be used. Backends return it, too, for what only they
// can check.
type Invalid struct {
	Field  string // as in the JSON; "" is the request as a whole
	Reason string // what was found and what is allowed
	Hint   string
	Err    error // its cause; nil: none
}

// Unwrap returns the fault and the error that it was made from.
func (e *Invalid) Unwrap() []error {
	if e.Err == nil {
		return []error{fault.Invalid}
	}
	return []error{fault.Invalid, e.Err}
}

// Fault returns the fault with the hint of this request. Without a field, the problem is not what
// the user typed.
func (e *Invalid) Fault() *fault.Fault {
	f := fault.Invalid.Advises(e.Hint)
	if e.Field == "" {
		f.Exit = fault.ExitFailure
	}

	return f
}

func (e *Invalid) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// malformed is a request that could not even be read.
type malformed struct{ Invalid }

// Unwrap returns the fault.
func (e *malformed) Unwrap() error { return fault.Malformed }

// Fault returns the fault with the hint of this request.
func (e *malformed) Fault() *fault.Fault { return fault.Malformed.Advises(e.Hint) }

// An APIError is an error as it is sent. Unwrap returns the error that it was made from, so that
// errors.Is and errors.As work the same on both sides.
type APIError struct {
	Status  int    `json:"-"` // of HTTP
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to do

	Field      string            `json:"field,omitempty"`      // invalid
	Scope      apitoken.Scope    `json:"scope,omitempty"`      // scope: the one that is needed
	Ref        string            `json:"ref,omitempty"`        // ambiguous
	Candidates []string          `json:"candidates,omitempty"` // ambiguous
	Decided    *DecidedBody      `json:"decided,omitempty"`
	Findings   []finding.Finding `json:"findings,omitempty"` // invalid_config, invalid_file
	Conflict   *Conflict         `json:"conflict,omitempty"` // file_changed
}

// DecidedBody is Decided in JSON.
type DecidedBody struct {
	Decision string    `json:"decision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
}

func (e *APIError) Error() string { return e.Message }

// Unwrap returns the sentinel or typed error of the code.
func (e *APIError) Unwrap() error {
	f := fault.ByCode(e.Code)
	switch {
	case f == nil:
		return nil
	case e.Decided != nil:
		return &Decided{Decision: e.Decided.Decision, By: e.Decided.By, At: e.Decided.At}
	case f == fault.Ambiguous:
		return &Ambiguous{Ref: e.Ref, Candidates: e.Candidates}
	case e.Conflict != nil:
		return e.Conflict
	case f == fault.InvalidFile:
		return &Unfit{e.Findings}
	case f == fault.Invalid:
		return &Invalid{Field: e.Field, Reason: strings.TrimPrefix(e.Message, e.Field+": "), Hint: e.Hint}
	}

	return f.Sentinel()
}

// Fault returns the fault of the code, with the hint of the answer if the fault has none.
func (e *APIError) Fault() *fault.Fault {
	f := fault.Find(e.Unwrap())
	if f.Hint == "" {
		f = f.Advises(e.Hint)
	}

	return f
}

// refuse makes an error of a fault with another message; hint "" is the one of the fault.
func refuse(f *fault.Fault, hint, format string, args ...any) *APIError {
	code, status := f.Wire()
	return &APIError{Status: status, Code: code, Message: fmt.Sprintf(format, args...), Hint: cmp.Or(hint, f.Route, f.Hint)}
}

// Describe converts any error to what is sent, and to what --json prints.
func Describe(err error) *APIError {
	if api, ok := errors.AsType[*APIError](err); ok {
		return api
	}
	e := refuse(fault.Find(err), "", "%s", err)
	if bad, ok := errors.AsType[*malformed](err); ok {
		e.Field = bad.Field
	} else if invalid, ok := errors.AsType[*Invalid](err); ok {
		e.Field = invalid.Field
	} else if ambiguous, ok := errors.AsType[*Ambiguous](err); ok {
		e.Ref, e.Candidates = ambiguous.Ref, ambiguous.Candidates
	} else if decided, ok := errors.AsType[*Decided](err); ok {
		e.Decided = &DecidedBody{Decision: decided.Decision, By: decided.By, At: decided.At}
	} else if conflict, ok := errors.AsType[*Conflict](err); ok {
		e.Conflict = conflict
	} else if unfit, ok := errors.AsType[*Unfit](err); ok {
		e.Findings = unfit.Findings
	}

	return e
}
