package term

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestAgo(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "just now"}, {-time.Hour, "just now"}, {30 * time.Second, "30s ago"}, {2 * time.Minute, "2m ago"},
		{47 * time.Hour, "47h ago"}, {72 * time.Hour, "3d ago"}, {60 * 24 * time.Hour, "2026-09-21"},
	} {
		if got := Ago(noon.Add(-test.d), noon); got != test.want {
			t.Errorf("ago(%s) = %q, want %q", test.d, got, test.want)
		}
	}

	if got := Ago(time.Time{}, noon); got != "never" {
		t.Errorf("ago(zero) = %q, want never", got)
	}
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
	}{
		{nil, fault.ExitOK},
		{errors.New("anything"), fault.ExitFailure},
		{Usage(&cobra.Command{}, "wrong"), fault.ExitUsage},
		{&control.Ambiguous{Ref: "ab", Candidates: []string{"0/ abc", "1/ abd"}}, fault.ExitUsage},
		{fault.UnknownAgent, fault.ExitNotFound},
		{control.ErrNoAsk, fault.ExitNotFound},
		{fault.UnknownItem, fault.ExitNotFound},
		{control.ErrNotRunning, fault.ExitNotRunning},
		{fmt.Errorf("%w: %w", control.ErrCut, control.ErrNotRunning), fault.ExitNotRunning},
		{&control.Decided{Decision: "once", By: "me"}, fault.ExitDenied},
		{disk.ErrFailed, fault.ExitDisk},
		{context.DeadlineExceeded, fault.ExitTimeout},
		{ErrInterrupted, fault.ExitInterrupted},
		{control.ErrBusy, fault.ExitFailure},
	} {
		err := test.err
		if err != nil {
			err = fmt.Errorf("do something: %w", err)
		}
		if code, _ := Explain(err); code != test.code {
			t.Errorf("%v: exit code %d, want %d", test.err, code, test.code)
		}
	}
}

// An error and its advice are apart on one line, too.
func TestCauseIsOneLine(t *testing.T) {
	if got := Cause("no token\nget one, then: daycare auth set x\n", 80); got != "no token; get one, then: daycare auth set x" {
		t.Errorf("%q", got)
	}
	if got := Cause("no token\nget one", 10); got != "no token;…" {
		t.Errorf("%q", got)
	}
}
