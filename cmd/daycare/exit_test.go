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
// is wrapped, and that a user is told what to do.
func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
	}{
		{errors.New("anything"), fault.ExitFailure},
		{control.ErrBusy, fault.ExitFailure}, {control.ErrTaken, fault.ExitFailure}, {control.ErrProtected, fault.ExitFailure},
		{control.ErrTaskBusy, fault.ExitFailure},
		{control.ErrFileTooLarge, fault.ExitFailure}, {inbox.ErrFull, fault.ExitFailure}, {inbox.ErrTaken, fault.ExitFailure},
		{inbox.ErrTooLarge, fault.ExitFailure},
		{disk.ErrFull, fault.ExitFailure}, {fs.ErrPermission, fault.ExitFailure},
		{&control.Invalid{Field: "name", Reason: "is missing", Hint: "give one"}, fault.ExitUsage},
		{&control.Ambiguous{Ref: "ab", Candidates: []string{"0/ abc", "1/ abd"}}, fault.ExitUsage},
		{message.ErrUnknownAgent, fault.ExitNotFound}, {inbox.ErrUnknown, fault.ExitNotFound}, {control.ErrNoAsk, fault.ExitNotFound},
		{control.ErrNoFile, fault.ExitNotFound},
		{control.ErrNoRecord, fault.ExitNotFound}, {control.ErrNoTrash, fault.ExitNotFound}, {control.ErrNotEditable, fault.ExitNotFound},
		{control.ErrNoTask, fault.ExitNotFound},
		{config.ErrNoSecret, fault.ExitNotFound},
		{control.ErrNotRunning, fault.ExitNotRunning}, {control.ErrCut, fault.ExitNotRunning},
		{&control.Decided{Decision: "deny", By: "me"}, fault.ExitDenied},
		{disk.ErrFailed, fault.ExitDisk},
		{context.DeadlineExceeded, fault.ExitTimeout},
		{context.Canceled, fault.ExitInterrupted}, {term.ErrInterrupted, fault.ExitInterrupted},
	} {
		code, do := term.Explain(fmt.Errorf("do something: %w", test.err))
		if code != test.code {
			t.Errorf("%v ends with %d, want %d", test.err, code, test.code)
		}
		silent := code == fault.ExitTimeout || code == fault.ExitInterrupted || test.err.Error() == "anything"
		if do == "" && !silent {
			t.Errorf("%v: nobody is told what to do", test.err)
		}
	}

	if code, do := term.Explain(nil); code != fault.ExitOK || do != "" {
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
