package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Scenarios of what runs by the clock. Everything is overdue when the daemon starts,
// so that nobody waits.

// pastTask is a task that was to run half an hour ago.
func pastTask(u *user) error {
	due := time.Now().UTC().Add(-30 * time.Minute).Format("2006-01-02T15:04")
	return hourOld(filepath.Join(u.root, "cron", "once", "TASK.md"), "---\nat: "+due+"\ntimezone: UTC\n---\nk1 act\n")
}

// heartbeatPrompt is a prompt whose time has come: an hour ago the heartbeat began.
func heartbeatPrompt(u *user) error {
	began := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	return errors.Join(hourOld(filepath.Join(u.root, "heartbeat", "disk.md"), "k2 act\n"),
		hourOld(filepath.Join(u.root, "heartbeat", "runs.jsonl"), `{"at":"`+began+`","set":"heartbeat"}`+"\n"))
}

// hourOld writes a file as a user did an hour ago.
func hourOld(path, content string) error {
	then := time.Now().Add(-time.Hour)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, then, then))
}

// ran waits until the ledger in dir knows what became of its due time.
func ran(dir string) step {
	return func(ctx context.Context, u *user) error {
		return until(ctx, func() bool {
			outcomes, err := ledger(u, dir)
			return err == nil && len(outcomes) > 0
		})
	}
}

// ledger lists the outcomes in a runs.jsonl by due time. A torn last line is none.
func ledger(u *user, dir string) (map[string][]string, error) {
	data, err := os.ReadFile(filepath.Join(u.root, dir, "runs.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	outcomes := map[string][]string{}
	for raw := range strings.Lines(string(data)) {
		if !strings.HasSuffix(raw, "\n") {
			break
		}
		var l struct{ Slot, Outcome string }
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			return nil, fmt.Errorf("half line in %s/runs.jsonl: %.80q", dir, raw)
		}
		if l.Outcome != "" {
			outcomes[l.Slot] = append(outcomes[l.Slot], l.Outcome)
		}
	}

	return outcomes, nil
}

// onceInLedger: the due time has one outcome, and the task was given to its agent once.
func onceInLedger(u *user, v view) error { return once(u, v, "cron/once", "k1 act") }

// onceABeat is the same for the heartbeat, whose due times are not in the past for long.
func onceABeat(u *user, v view) error { return once(u, v, "heartbeat", "k2 act") }

func once(u *user, v view, dir, prompt string) error {
	outcomes, err := ledger(u, dir)
	if err != nil {
		return err
	}

	for slot, all := range outcomes {
		if len(all) > 1 {
			return fmt.Errorf("due time %s of %s has %d outcomes: %s", slot, dir, len(all), strings.Join(all, ", "))
		}
	}

	times := 0
	for _, a := range v.agents {
		for _, l := range a.history {
			if l.Type == "user_message" && strings.Contains(l.Text, prompt) {
				times++
			}
		}
	}

	if times != 1 || len(outcomes) != 1 {
		return fmt.Errorf("%s came %d times to its agent, with %d due times in its ledger; want one of each", dir, times, len(outcomes))
	}

	return nil
}
