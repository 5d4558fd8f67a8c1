package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"

	"github.com/spf13/cobra"
)

// Exit codes. Scripts rely on them; they are part of the contract.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitNotRunning  = 4
	exitDenied      = 5 // denied, or an approval is needed
	exitDisk        = 75
	exitTimeout     = 124
	exitInterrupted = 130
)

// exitCodes say what each means, for the manual.
var exitCodes = []struct {
	code  int
	means string
}{
	{exitOK, "it is done"},
	{exitFailure, "it failed; the message says why, and what to do"},
	{exitUsage, "the command line is wrong, or names more than one thing"},
	{exitNotFound, "there is no such agent, item, file or name"},
	{exitNotRunning, "the daemon is needed and does not run"},
	{exitDenied, "denied, or an approval is needed first"},
	{exitDisk, "durable storage failed: what was accepted is safe, and nothing more is accepted until daycare is started again"},
	{exitTimeout, "it took longer than allowed; what was sent goes on"},
	{exitInterrupted, "interrupted"},
}

// A problem is an error that knows its exit code and what to do about it.
type problem struct {
	code int
	err  error
	do   string
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

var (
	errInterrupted = errors.New("interrupted")
	// errSilent ends a command whose output said already what is wrong.
	errSilent = errors.New("")
)

// usage is a problem with what was typed.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return &problem{code: exitUsage, err: fmt.Errorf(format, args...),
		do: "usage: " + cmd.UseLine()}
}

// notFound is a problem with a name.
func notFound(do, format string, args ...any) error {
	return &problem{code: exitNotFound, err: fmt.Errorf(format, args...), do: do}
}

// explain is the one function from errors to exit codes, and to what a person
// can do.
func explain(err error) (code int, do string) {
	var p *problem
	var ambiguous *control.Ambiguous
	var decided *control.Decided
	var invalid *control.Invalid
	switch {
	case err == nil:
		return exitOK, ""
	case errors.As(err, &p):
		return p.code, p.do
	case errors.As(err, &ambiguous):
		return exitUsage, "say which one: " + firsts(ambiguous.Candidates)
	case errors.Is(err, message.ErrUnknownAgent):
		return exitNotFound, "list agents with: daycare agents ls"
	case errors.Is(err, control.ErrNoRecord):
		return exitNotFound, "see the records, each with its seq, with: daycare agents tail ID"
	case errors.Is(err, control.ErrNoHandFile):
		return exitNotFound, "descriptor.json, state.json and history.jsonl are edited"
	case errors.Is(err, control.ErrNoFile):
		return exitNotFound, "send the path of the file instead"
	case errors.Is(err, control.ErrNoTask):
		return exitNotFound, "list them with: daycare cron ls   or: daycare heartbeat ls"
	case errors.Is(err, config.ErrNoSecret):
		return exitNotFound, "list them with: daycare auth ls"
	case errors.Is(err, control.ErrNoTrash):
		return exitNotFound, "list what is there with: daycare agents trash"
	case errors.Is(err, control.ErrNoAsk):
		return exitNotFound, "list what waits for an answer with: daycare permissions ls"
	case errors.Is(err, inbox.ErrUnknown):
		return exitNotFound, "list what waits with: daycare inbox ls"
	case errors.Is(err, control.ErrCut):
		return exitNotRunning, "start it again, and it goes on: daycare start --background"
	case errors.Is(err, control.ErrNotRunning):
		return exitNotRunning, "start it with: daycare start --background"
	case errors.As(err, &invalid) && invalid.Field != "":
		return exitUsage, invalid.Hint
	case errors.As(err, &decided):
		return exitDenied, "see what waits with: daycare permissions ls"
	case errors.Is(err, disk.ErrFailed):
		return exitDisk, "check the disk that holds .daycare, then start daycare again; what was acknowledged is safe"
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout, ""
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted, ""
	}
	return exitFailure, remedy(err)
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

// report prints err for a person and returns the exit code.
func (c *cli) report(err error) int {
	code, do := explain(err)
	if err == nil || err.Error() == "" || errors.Is(err, errInterrupted) {
		return code
	}
	what := err.Error()
	if code == exitTimeout && errors.Is(err, context.DeadlineExceeded) {
		what = "it took longer than allowed; what was sent is on disk and goes on"
	}
	fmt.Fprintln(c.stderr, "daycare: "+clean(what))
	if do != "" {
		fmt.Fprintln(c.stderr, clean(do))
	}
	return code
}

// warn says something that does not stop the command.
func (c *cli) warn(format string, args ...any) {
	fmt.Fprintln(c.stderr, clean(fmt.Sprintf(format, args...)))
}

// note says something by the way; dim on a terminal.
func (c *cli) note(format string, args ...any) {
	fmt.Fprintln(c.stderr, c.talk().dim(clean(fmt.Sprintf(format, args...))))
}

// exists reports whether there is a file or folder.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
