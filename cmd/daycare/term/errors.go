package term

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Exit codes. Scripts rely on them; they are part of the contract.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitNotRunning  = 4
	ExitDenied      = 5 // denied, or an approval is needed
	ExitDisk        = 75
	ExitTimeout     = 124
	ExitInterrupted = 130
)

// ExitCodes say what each means, for the manual, and how an error with it is called in JSON
// if the API has no name for it.
var ExitCodes = []struct {
	Code  int
	Name  string
	Means string
}{
	{ExitOK, "", "it is done"},
	{ExitFailure, "failed", "it failed; the message says why, and what to do"},
	{ExitUsage, "usage", "the command line is wrong, or names more than one thing"},
	{ExitNotFound, "not_found", "there is no such agent, item, file or name"},
	{ExitNotRunning, "not_running", "the daemon is needed and does not run"},
	{ExitDenied, "denied", "denied, or an approval is needed first"},
	{ExitDisk, "disk_failed",
		"durable storage failed: what was accepted is safe, and nothing more is accepted until daycare is started again"},
	{ExitTimeout, "timeout", "it took longer than allowed; what was sent goes on"},
	{ExitInterrupted, "interrupted", "interrupted"},
}

// A Problem is an error that knows its exit code and what to do about it.
type Problem struct {
	Code int
	Err  error
	Do   string
}

// Error says what happened.
func (p *Problem) Error() string { return p.Err.Error() }

// Unwrap returns what it was made of.
func (p *Problem) Unwrap() error { return p.Err }

var (
	// ErrInterrupted ends a command that Ctrl-C stopped.
	ErrInterrupted = errors.New("interrupted")
	// errSilent ends a command whose output said already what is wrong.
	ErrSilent = errors.New("")
)

// Usage is a problem with what was typed.
func Usage(cmd *cobra.Command, format string, args ...any) error {
	return &Problem{Code: ExitUsage, Err: fmt.Errorf(format, args...),
		Do: "usage: " + cmd.UseLine()}
}

// NotFound is a problem with a name.
func NotFound(do, format string, args ...any) error {
	return &Problem{Code: ExitNotFound, Err: fmt.Errorf(format, args...), Do: do}
}

// Explain is the one function from errors to exit codes, and to what a person
// can do.
func Explain(err error) (code int, do string) {
	var p *Problem
	var ambiguous *control.Ambiguous
	var decided *control.Decided
	var invalid *control.Invalid
	switch {
	case err == nil:
		return ExitOK, ""
	case errors.As(err, &p):
		return p.Code, p.Do
	case errors.As(err, &ambiguous):
		return ExitUsage, "say which one: " + firsts(ambiguous.Candidates)
	case errors.Is(err, message.ErrUnknownAgent):
		return ExitNotFound, "list agents with: daycare agents ls"
	case errors.Is(err, control.ErrNoRecord):
		return ExitNotFound, "see the records, each with its seq, with: daycare agents tail ID"
	case errors.Is(err, control.ErrNoHandFile):
		return ExitNotFound, "descriptor.json, state.json and history.jsonl are edited"
	case errors.Is(err, control.ErrNoFile):
		return ExitNotFound, "send the path of the file instead"
	case errors.Is(err, control.ErrNoTask):
		return ExitNotFound, "list them with: daycare cron ls   or: daycare heartbeat ls"
	case errors.Is(err, config.ErrNoSecret):
		return ExitNotFound, "list them with: daycare auth ls"
	case errors.Is(err, control.ErrNoTrash):
		return ExitNotFound, "list what is there with: daycare agents trash"
	case errors.Is(err, control.ErrNoAsk):
		return ExitNotFound, "list what waits for an answer with: daycare permissions ls"
	case errors.Is(err, inbox.ErrUnknown):
		return ExitNotFound, "list what waits with: daycare inbox ls"
	case errors.Is(err, control.ErrCut):
		return ExitNotRunning, "start it again, and it goes on: daycare start --background"
	case errors.Is(err, control.ErrNotRunning):
		return ExitNotRunning, "start it with: daycare start --background"
	case errors.As(err, &invalid) && invalid.Field != "":
		return ExitUsage, invalid.Hint
	case errors.As(err, &decided):
		return ExitDenied, "see what waits with: daycare permissions ls"
	case errors.Is(err, disk.ErrFailed):
		return ExitDisk, "check the disk that holds .daycare, then start daycare again; what was acknowledged is safe"
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout, ""
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return ExitInterrupted, ""
	}
	return ExitFailure, remedy(err)
}

// firsts are the first words of candidates: what each is known by.
func firsts(candidates []string) string {
	words := make([]string, len(candidates))
	for i, one := range candidates {
		words[i], _, _ = strings.Cut(one, " ")
	}
	return strings.Join(words, ", ")
}

// remedy is what to do about a failure that has no exit code of its own.
func remedy(err error) string {
	var api *control.APIError
	switch {
	case errors.Is(err, control.ErrBusy):
		return "wait until it is idle, or say --force"
	case errors.Is(err, control.ErrAgentLimit):
		return "end one with daycare agents kill or rm, or raise the setting that is named"
	case errors.Is(err, control.ErrTaken):
		return "see who has it with: daycare agents ls"
	case errors.Is(err, control.ErrProtected):
		return "use daycare agents reset or daycare agents rm instead"
	case errors.Is(err, inbox.ErrTaken):
		return "stop the turn that works on it with: daycare agents stop ID"
	case errors.Is(err, control.ErrTaskBusy):
		return "it is at work already; see: daycare cron runs NAME"
	case errors.Is(err, control.ErrFileTooLarge):
		return "say where the file is instead of sending it: the agent can read it there"
	case errors.Is(err, inbox.ErrFull):
		return "let the agent work off its inbox, then try again"
	case errors.Is(err, disk.ErrFull):
		return "make room on the disk that holds .daycare, then try again"
	case errors.Is(err, inbox.ErrTooLarge):
		return "put the text into a file and send its path"
	case errors.Is(err, fs.ErrPermission):
		return "check who owns the file and its mode"
	case errors.As(err, &api):
		return api.Hint
	}
	return ""
}

// Report prints err, for a person or with --json as one object, and returns the exit code.
func (c *App) Report(err error) int {
	code, do := Explain(err)
	if err == nil || err.Error() == "" || errors.Is(err, ErrInterrupted) {
		return code
	}
	what := err.Error()
	if code == ExitTimeout && errors.Is(err, context.DeadlineExceeded) {
		what = "it took longer than allowed; what was sent is on disk and goes on"
	}
	if c.JSON {
		c.reportJSON(err, what, do, code)
		return code
	}
	fmt.Fprintln(c.Err, "daycare: "+Clean(what))
	if do != "" {
		fmt.Fprintln(c.Err, Clean(do))
	}
	return code
}

// reportJSON prints {"error":{"code":…,"message":…,"hint":…,"exit":…}}, with what the API
// says of the error beside these. It goes where errors go: stdout has data alone.
func (c *App) reportJSON(err error, what, do string, exit int) {
	body := *control.Describe(err)
	body.Message, body.Hint = what, do
	for _, e := range ExitCodes {
		if e.Code == exit && body.Code == control.CodeInternal {
			body.Code = e.Name
		}
	}
	_ = printJSON(c.Err, map[string]any{"error": struct { // there is nowhere left to say that this failed
		control.APIError
		Exit int `json:"exit"`
	}{body, exit}})
}

// Warn says something that does not stop the command.
func (c *App) Warn(format string, args ...any) {
	fmt.Fprintln(c.Err, Clean(fmt.Sprintf(format, args...)))
}

// Note says something by the way; dim on a terminal.
func (c *App) Note(format string, args ...any) {
	fmt.Fprintln(c.Err, c.ErrStyle().Dim(Clean(fmt.Sprintf(format, args...))))
}

// Exists reports whether there is a file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
