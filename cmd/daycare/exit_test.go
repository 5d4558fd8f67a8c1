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

	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
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
		{errors.New("anything"), exitFailure},
		{control.ErrBusy, exitFailure}, {control.ErrTaken, exitFailure}, {control.ErrProtected, exitFailure},
		{control.ErrTaskBusy, exitFailure},
		{control.ErrFileTooLarge, exitFailure}, {inbox.ErrFull, exitFailure}, {inbox.ErrTaken, exitFailure},
		{inbox.ErrTooLarge, exitFailure},
		{disk.ErrFull, exitFailure}, {fs.ErrPermission, exitFailure},
		{&control.Invalid{Field: "name", Reason: "is missing", Hint: "give one"}, exitUsage},
		{&control.Ambiguous{Ref: "ab", Candidates: []string{"0/ abc", "1/ abd"}}, exitUsage},
		{message.ErrUnknownAgent, exitNotFound}, {inbox.ErrUnknown, exitNotFound}, {control.ErrNoAsk, exitNotFound},
		{control.ErrNoFile, exitNotFound},
		{control.ErrNoRecord, exitNotFound}, {control.ErrNoTrash, exitNotFound}, {control.ErrNoHandFile, exitNotFound},
		{control.ErrNoTask, exitNotFound},
		{config.ErrNoSecret, exitNotFound},
		{control.ErrNotRunning, exitNotRunning}, {control.ErrCut, exitNotRunning},
		{&control.Decided{Decision: "deny", By: "me"}, exitDenied},
		{disk.ErrFailed, exitDisk},
		{context.DeadlineExceeded, exitTimeout},
		{context.Canceled, exitInterrupted}, {errInterrupted, exitInterrupted},
	} {
		code, do := explain(fmt.Errorf("do something: %w", test.err))
		if code != test.code {
			t.Errorf("%v ends with %d, want %d", test.err, code, test.code)
		}
		silent := code == exitTimeout || code == exitInterrupted || test.err.Error() == "anything"
		if do == "" && !silent {
			t.Errorf("%v: nobody is told what to do", test.err)
		}
	}
	if code, do := explain(nil); code != exitOK || do != "" {
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
	for _, e := range exitCodes {
		if !strings.Contains(text, " "+strconv.Itoa(e.code)+" ") {
			t.Errorf("README.md does not speak of exit code %d", e.code)
		}
	}
	if len(exitCodes) != 9 {
		t.Errorf("there are %d exit codes; the list and this test have 9", len(exitCodes))
	}
}
