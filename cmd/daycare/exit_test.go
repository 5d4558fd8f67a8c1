package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// TestExitCodes holds what each kind of error ends the program with, however deep it
// is wrapped, and that a person is told what to do.
func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
	}{
		{errors.New("anything"), term.ExitFailure},
		{control.ErrBusy, term.ExitFailure}, {control.ErrTaken, term.ExitFailure}, {control.ErrProtected, term.ExitFailure},
		{control.ErrTaskBusy, term.ExitFailure},
		{control.ErrFileTooLarge, term.ExitFailure}, {inbox.ErrFull, term.ExitFailure}, {inbox.ErrTaken, term.ExitFailure},
		{inbox.ErrTooLarge, term.ExitFailure},
		{disk.ErrFull, term.ExitFailure}, {fs.ErrPermission, term.ExitFailure},
		{&control.Invalid{Field: "name", Reason: "is missing", Hint: "give one"}, term.ExitUsage},
		{&control.Ambiguous{Ref: "ab", Candidates: []string{"0/ abc", "1/ abd"}}, term.ExitUsage},
		{message.ErrUnknownAgent, term.ExitNotFound}, {inbox.ErrUnknown, term.ExitNotFound}, {control.ErrNoAsk, term.ExitNotFound},
		{control.ErrNoFile, term.ExitNotFound},
		{control.ErrNoRecord, term.ExitNotFound}, {control.ErrNoTrash, term.ExitNotFound}, {control.ErrNoHandFile, term.ExitNotFound},
		{control.ErrNoTask, term.ExitNotFound},
		{config.ErrNoSecret, term.ExitNotFound},
		{control.ErrNotRunning, term.ExitNotRunning}, {control.ErrCut, term.ExitNotRunning},
		{&control.Decided{Decision: "deny", By: "me"}, term.ExitDenied},
		{disk.ErrFailed, term.ExitDisk},
		{context.DeadlineExceeded, term.ExitTimeout},
		{context.Canceled, term.ExitInterrupted}, {term.ErrInterrupted, term.ExitInterrupted},
	} {
		code, do := term.Explain(fmt.Errorf("do something: %w", test.err))
		if code != test.code {
			t.Errorf("%v ends with %d, want %d", test.err, code, test.code)
		}
		silent := code == term.ExitTimeout || code == term.ExitInterrupted || test.err.Error() == "anything"
		if do == "" && !silent {
			t.Errorf("%v: nobody is told what to do", test.err)
		}
	}
	if code, do := term.Explain(nil); code != term.ExitOK || do != "" {
		t.Errorf("no error ends with %d %q", code, do)
	}
}

// Every exit code stands in the documents that promise them.
func TestExitCodesAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(readme)), " ")
	for _, e := range fault.Exits {
		if !strings.Contains(text, " "+strconv.Itoa(e.Code)+" ") {
			t.Errorf("README.md does not speak of exit code %d", e.Code)
		}
	}
	if len(fault.Exits) != 9 {
		t.Errorf("there are %d exit codes; the list and this test have 9", len(fault.Exits))
	}
}
