package control

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

var (
	// ErrNotRunning: the operation needs the daemon, which is not running.
	ErrNotRunning = errors.New("the daemon is not running")
	// ErrNoAsk: no permission request has that token.
	ErrNoAsk = errors.New("no such permission request")
	// ErrBusy: the agent has work under way or waiting.
	ErrBusy = errors.New("the agent has work that is not finished")
	// ErrProtected: agents of this kind are not killed; reset or remove them.
	ErrProtected = errors.New("this agent cannot be killed")
	// ErrAgentLimit: there are as many agents as a setting allows. Nothing was made.
	ErrAgentLimit = errors.New("too many agents")
	// ErrNoFile: no kept file has that id.
	ErrNoFile = errors.New("no such file")
	// ErrFileTooLarge: the file is over MaxFileBytes.
	ErrFileTooLarge = errors.New("file is too large")
	// ErrCut: a stream ended before its turn did. What was accepted is safe.
	ErrCut = errors.New("the connection ended before the turn did")
)

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

// An Invalid request has a field that cannot be used. Backends return it too, for
// what only they can check.
type Invalid struct {
	Field  string // as in the JSON; "" is the request as a whole
	Reason string // what was found and what is allowed
	Hint   string
	Err    error // what it was made of; nil: of nothing
}

func (e *Invalid) Unwrap() error { return e.Err }

func (e *Invalid) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// malformed is a request that could not even be read.
type malformed struct{ Invalid }

// An APIError is an error as it travels. Unwrap gives the error it was made of,
// so that errors.Is and errors.As work the same on both sides.
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

// Unwrap gives the sentinel or typed error that the code stands for.
func (e *APIError) Unwrap() error {
	switch {
	case e.Decided != nil:
		return &Decided{Decision: e.Decided.Decision, By: e.Decided.By, At: e.Decided.At}
	case e.Code == codeAmbiguous:
		return &Ambiguous{Ref: e.Ref, Candidates: e.Candidates}
	case e.Conflict != nil:
		return e.Conflict
	case e.Code == codeUnfit:
		return &Unfit{e.Findings}
	case e.Code == codeInvalid:
		return &Invalid{Field: e.Field, Reason: strings.TrimPrefix(e.Message, e.Field+": "), Hint: e.Hint}
	}
	for _, s := range sentinels {
		if s.code == e.Code {
			return s.err
		}
	}
	return nil
}

// Codes that no sentinel stands for.
const (
	codeAmbiguous    = "ambiguous"
	codeDecided      = "decided"
	codeInvalid      = "invalid"
	codeMalformed    = "malformed"
	codeConfig       = "invalid_config"
	codeNoRoute      = "no_route"
	codeUnauthorized = "unauthorized"
	codeForbidden    = "forbidden"
	codeScope        = "scope"
	CodeInternal     = "internal" // nothing else is known of it
	codeConflict     = "file_changed"
	codeUnfit        = "invalid_file"
)

// sentinels is the table between errors and the wire, in the order in which they
// are looked for.
var sentinels = []struct {
	err    error
	status int
	code   string
	hint   string
}{
	{message.ErrUnknownAgent, http.StatusNotFound, "unknown_agent", "GET /v1/agents lists them"},
	{inbox.ErrUnknown, http.StatusNotFound, "unknown_item", "it may be done already; GET /v1/agents/{id}/inbox lists what waits"},
	{ErrNoAsk, http.StatusNotFound, "unknown_permission", "GET /v1/permissions lists what waits for an answer"},
	{ErrNoFile, http.StatusNotFound, "unknown_file", "send the file's path or its content instead"},
	{ErrNoRecord, http.StatusNotFound, "unknown_record", "GET /v1/agents/{id}/history shows them, each with its seq"},
	{ErrNoTrash, http.StatusNotFound, "not_in_trash", "GET /v1/trash lists what is"},
	{ErrNoHandFile, http.StatusNotFound, "unknown_file_name", "descriptor.json, state.json and history.jsonl are edited"},
	{ErrNoTask, http.StatusNotFound, "unknown_task", "GET /v1/cron and /v1/heartbeats list them"},
	{ErrTaken, http.StatusConflict, "taken", "remove or rename the other one first"},
	{inbox.ErrTaken, http.StatusConflict, "item_taken", "POST /v1/agents/{id}/stop cancels the turn"},
	{ErrBusy, http.StatusConflict, "busy", "wait until it is idle, or use force"},
	{ErrTaskBusy, http.StatusConflict, "task_busy", "wait until the run has ended"},
	{ErrAgentLimit, http.StatusConflict, "agent_limit", "end or remove one, or raise the setting that the message names"},
	{ErrProtected, http.StatusConflict, "protected", "reset or remove it instead"},
	{inbox.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large", "send long texts as a file"},
	{ErrFileTooLarge, http.StatusRequestEntityTooLarge, "file_too_large", "put it into the workspace and name its path in the text"},
	{inbox.ErrFull, http.StatusTooManyRequests, "inbox_full", "nothing was accepted; offer it again later"},
	{disk.ErrFull, http.StatusServiceUnavailable, "disk_full", "make room on the disk that holds .daycare, then try again"},
	{disk.ErrFailed, http.StatusServiceUnavailable, "disk_failed",
		"check the disk, then start daycare again; what was acknowledged is safe"},
	{ErrNotRunning, http.StatusServiceUnavailable, "not_running", "start it with: daycare start"},
	{ErrCut, http.StatusServiceUnavailable, "cut", "post it again with the same dedupe key to get the rest"},
	{inbox.ErrClosed, http.StatusServiceUnavailable, "shutting_down", "offer it again when daycare is back"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", ""},
	{context.Canceled, http.StatusServiceUnavailable, "canceled", ""},
}

// Describe is the one function from errors to what is sent, and to what --json prints.
func Describe(err error) *APIError {
	var (
		api       *APIError
		bad       *malformed
		invalid   *Invalid
		ambiguous *Ambiguous
		decided   *Decided
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &bad):
		return &APIError{Status: http.StatusBadRequest, Code: codeMalformed, Message: bad.Error(), Hint: bad.Hint, Field: bad.Field}
	case errors.As(err, &invalid):
		return &APIError{Status: http.StatusUnprocessableEntity, Code: codeInvalid, Message: err.Error(),
			Hint: invalid.Hint, Field: invalid.Field}
	case errors.As(err, &ambiguous):
		return &APIError{Status: http.StatusConflict, Code: codeAmbiguous, Message: err.Error(),
			Hint: "say which one by handle or id", Ref: ambiguous.Ref, Candidates: ambiguous.Candidates}
	case errors.As(err, &decided):
		return &APIError{Status: http.StatusConflict, Code: codeDecided, Message: err.Error(), Hint: "the first answer counts",
			Decided: &DecidedBody{Decision: decided.Decision, By: decided.By, At: decided.At}}
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return &APIError{Status: s.status, Code: s.code, Message: err.Error(), Hint: s.hint}
		}
	}
	return &APIError{Status: http.StatusInternalServerError, Code: CodeInternal, Message: err.Error(),
		Hint: "the log has more: daycare logs"}
}
