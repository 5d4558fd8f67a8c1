package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// Saved is the effect of settings that were written.
type Saved struct {
	When    string            // they apply, for users
	Running bool              // a daemon has read them, or will soon
	Found   []finding.Finding // that it reported
}

// SaveSettings writes settings that are right, and has a running daemon read them. Findings
// that were there before do not keep them from being written, unless they are errors.
func SaveSettings(ctx context.Context, c *term.App, home string, before, after []byte, found []finding.Finding) (Saved, error) {
	was, known, wasErr := config.LoadText(home, before, os.LookupEnv, plugins.ConnectorChecks...)
	if wrong := fresh(found, known); len(wrong) > 0 {
		return Saved{}, &term.Problem{Code: fault.ExitFailure, Err: unwritten(c, wrong), Do: "list the settings with: daycare config get"}
	}
	if err := config.Replace(disk.NewVolume(home), home, after, before); err != nil {
		if errors.Is(err, disk.ErrChanged) {
			return Saved{}, &term.Problem{Code: fault.ExitFailure,
				Err: errors.New("the settings have changed since they were read; nothing was saved"),
				Do:  "check them, then try again"}
		}
		return Saved{}, err
	}

	now, _, err := config.LoadText(home, after, os.LookupEnv, plugins.ConnectorChecks...)
	client, dialErr := c.Dial(ctx, workspace.OfData(home))
	if errors.Is(dialErr, control.ErrNotRunning) {
		return Saved{When: "it takes effect at the next start"}, nil
	}
	if dialErr != nil { // such as another user's daemon, which watches the file all the same
		c.Warn("the daemon cannot be asked: %v", dialErr)
		return Saved{When: "a daemon that runs applies it by itself", Running: true}, nil
	}

	saved := Saved{When: "the daemon applies it now", Running: true}
	var reloadErr error
	if saved.Found, reloadErr = client.Reload(ctx); reloadErr != nil {
		return saved, fmt.Errorf("have the daemon read the settings: %w", reloadErr)
	}
	if err == nil && wasErr == nil && len(config.NeedRestart(was, now)) > 0 {
		saved.When = "it applies after a restart: daycare restart"
	}

	return saved, nil
}

// unwritten is the error of settings that are wrong. A user reads why in front of it; with --json all is in the error.
func unwritten(c *term.App, wrong []finding.Finding) error {
	const what = "nothing was written"
	if c.JSON {
		first := wrong[0].Place() + ": " + wrong[0].Reason
		return &control.APIError{Code: fault.InvalidConfig.Code, Message: what + ": " + first, Findings: wrong}
	}
	for _, f := range wrong {
		c.Warn("%s", f)
	}

	return errors.New(what)
}

// fresh are the errors among findings, and the warnings that were not known before.
func fresh(found, known []finding.Finding) (wrong []finding.Finding) {
	for _, f := range found {
		same := func(k finding.Finding) bool { return k.ID == f.ID && k.Reason == f.Reason }
		if f.Severity == finding.Error || f.Severity == finding.Warning && !slices.ContainsFunc(known, same) {
			wrong = append(wrong, f)
		}
	}

	return wrong
}
