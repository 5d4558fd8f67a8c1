package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"daycare/engine/control"
	"daycare/engine/fault"
)

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

// Fault returns the fault that the problem was made of, with its own exit code and advice.
func (p *Problem) Fault() *fault.Fault {
	f := fault.Find(p.Err).Advises(p.Do)
	f.Exit = p.Code
	return f
}

var (
	// ErrInterrupted ends a command that Ctrl-C stopped.
	ErrInterrupted = fault.Interrupted
	// ErrSilent ends a command whose output said already what is wrong.
	ErrSilent = errors.New("")
)

// Usage is a problem with what was typed.
func Usage(cmd *cobra.Command, format string, args ...any) error {
	return &Problem{Code: fault.ExitUsage, Err: fmt.Errorf(format, args...),
		Do: "usage: " + cmd.UseLine()}
}

// Misused is a problem with flags that do not fit.
func Misused(do, format string, args ...any) error {
	return &Problem{Code: fault.ExitUsage, Err: fmt.Errorf(format, args...), Do: do}
}

// NotFound is a problem with a name.
func NotFound(do, format string, args ...any) error {
	return &Problem{Code: fault.ExitNotFound, Err: fmt.Errorf(format, args...), Do: do}
}

// Wrap says what was being done when err happened; nil stays nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// About says what was being done with a named thing when err happened, unless err names
// the thing itself: nothing is said twice.
func About(err error, doing, name string) error {
	if err == nil || strings.Contains(err.Error(), strconv.Quote(name)) {
		return err
	}
	return fmt.Errorf("%s %s: %w", doing, name, err)
}

// badFlag says what is wrong with a flag in words for users, not for programmers of Go.
func badFlag(cmd *cobra.Command, err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return Usage(cmd, "%s", err)
	}
	f := bad.GetFlag()
	want, known := map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, 0 or more",
		"float64": "a number", "bool": "true or false", "duration": "a duration, such as 90s, 5m or 2h"}[f.Value.Type()]
	if !known {
		return Usage(cmd, "%s", err)
	}

	return Usage(cmd, "--%s %q is not %s", f.Name, bad.GetValue(), want)
}

// notNegative refuses numbers and durations below 0: no flag has a use for one.
func notNegative(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "int", "int64", "float64", "duration":
			if strings.HasPrefix(f.Value.String(), "-") && err == nil {
				err = Usage(cmd, "--%s must not be negative, got %s", f.Name, f.Value)
			}
		}
	})

	return err
}

// Explain returns the exit code of an error, and what a user can do.
func Explain(err error) (code int, do string) {
	if err == nil {
		return fault.ExitOK, ""
	}
	f := fault.Find(err)
	return f.Exit, f.Hint
}

// Report prints err, for a user or with --json as one object, and returns the exit code.
func (s *Streams) Report(err error) int {
	code, do := Explain(err)
	if err == nil || err.Error() == "" || errors.Is(err, ErrInterrupted) {
		return code
	}
	what := err.Error()
	if code == fault.ExitTimeout && errors.Is(err, context.DeadlineExceeded) {
		what = "timed out; what was sent is on disk, and work on it continues"
	}
	if s.JSON {
		s.reportJSON(err, what, do, code)
		return code
	}

	s.Say("daycare: %s\n", what)
	if do != "" {
		s.Say("%s\n", do)
	}

	return code
}

// reportJSON prints {"error":{"code":…,"message":…,"hint":…,"exit":…}}, with what the API
// says of the error beside these. It goes where errors go: stdout has data alone.
func (s *Streams) reportJSON(err error, what, do string, exit int) {
	body := *control.Describe(err)
	body.Message, body.Hint = what, do
	if body.Code == fault.Internal {
		body.Code = fault.ExitName(exit)
	}
	_ = printJSON(s.Err, map[string]any{"error": struct { // there is nowhere left to say that this failed
		control.APIError
		Exit int `json:"exit"`
	}{body, exit}})
}

// Warn says something that does not stop the command.
func (s *Streams) Warn(format string, args ...any) {
	s.Say("%s\n", fmt.Sprintf(format, args...))
}

// Note says something by the way; dim on a terminal.
func (s *Streams) Note(format string, args ...any) {
	s.Say("%s\n", s.ErrStyle().Dim(fmt.Sprintf(format, args...)))
}

// OpenInput opens a file that a user names, or standard input for "-".
func OpenInput(c *App, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.In), nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, NotFound("", "there is no file %s", name)
	}

	return f, err
}

// Exists reports whether there is a file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
