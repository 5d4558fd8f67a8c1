package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An invocation is a command of the command line, in a workspace without a daemon.
type invocation struct {
	arguments func(u *user) []string
	// done says whether it did what it is for.
	done func(u *user) error
	// codes are the exit codes, beside 0, with which it may have done it.
	codes []int
}

// callAll calls the command until it succeeds, once for each life.
func (p *play) callAll(ctx context.Context) error {
	defer func() { p.arguments = nil }()
	for ; ; p.life++ {
		p.arguments = p.Scenario.Command.arguments(p.user)
		d, armed, err := p.begin()
		if err != nil {
			return err
		}

		select {
		case <-d.exited:
		case <-ctx.Done():
			p.result.violate("stuck: daycare %v does not end", p.arguments)
			d.stuck()
			return nil
		}

		p.seen(d)
		var failed error
		switch code := d.code(); {
		case d.died():
		case code == 0 || slices.Contains(p.Scenario.Command.codes, code):
			if failed = p.Scenario.Command.done(p.user); failed == nil {
				p.life++
				return nil
			}
		default:
			failed = fmt.Errorf("it ended with %s: %s", d.cmd.ProcessState, d.said())
		}

		if failed != nil && (!p.broken() || armed == (Death{})) {
			p.result.violate("daycare %s: %v", strings.Join(p.arguments, " "), failed)
		} else if failed != nil {
			p.result.GaveUp++ // it said that the disk failed
		}
		if len(p.result.Violations) > 0 {
			return nil
		}
		if err := p.afterDeath(d, armed); err != nil || len(p.result.Violations) > 0 {
			return err
		}
	}
}

// post leaves a message where no daemon runs. That of a command that died may be there
// or not: the next one is another.
func post() *invocation {
	key := func(u *user) string { return fmt.Sprintf("post%d", u.livesLost()) }
	return &invocation{
		arguments: func(u *user) []string { return []string{"send", "0/", key(u) + " hello"} },
		done: func(u *user) error {
			u.accept(u.offer(saying{key: key(u), kind: "user_message", texts: []string{key(u) + " hello"}}), "")
			return nil
		},
	}
}

// repair mends what badLines broke.
func repair() *invocation {
	return &invocation{
		arguments: func(*user) []string { return []string{"doctor", "--fix"} },
		codes:     []int{1}, // what it only advises remains
		done:      mended,
	}
}

func ledgerOf(u *user) string { return filepath.Join(u.root, "cron", "once", "runs.jsonl") }

const badLine = "this is no line of a ledger\n"

// badLines is a ledger in which a line cannot be read.
func badLines(u *user) error {
	then := time.Now().UTC().Add(-48 * time.Hour).Format(time.RFC3339)
	good := `{"at":"` + then + `","extra":"of old days"}` + "\n"
	return errors.Join(pastTask(u), hourOld(ledgerOf(u), good+badLine+good))
}

// mended: the ledger has the lines that can be read, and the other is next to it.
func mended(u *user) error {
	data, err := os.ReadFile(ledgerOf(u))
	if err != nil {
		return err
	}
	aside, err := filepath.Glob(ledgerOf(u) + ".set-aside-*")
	if err != nil {
		return err
	}
	if bytes.Contains(data, []byte(badLine)) || bytes.Count(data, []byte("of old days")) != 2 || len(aside) == 0 {
		return fmt.Errorf("after doctor --fix the ledger holds %q, with %d files beside it", data, len(aside))
	}

	for _, path := range aside {
		if kept, err := os.ReadFile(path); err != nil || string(kept) != badLine {
			return fmt.Errorf("%s holds %q (%v), want what was taken out", path, kept, err)
		}
	}

	return nil
}

func newList(u *user) string { return filepath.Join(filepath.Dir(u.root), "models-new.json") }

// newModels is a list of models as someone publishes it.
func newModels(u *user) error {
	const list = `{"data":[{"id":"chaos/one","context_length":4096,"pricing":{"prompt":"0.000001","completion":"0.000002"}}]}`
	return os.WriteFile(newList(u), []byte(list), 0o600)
}

// refresh takes the list over.
func refresh() *invocation {
	return &invocation{
		arguments: func(u *user) []string { return []string{"models", "refresh", "--from", newList(u), "--yes"} },
		done: func(u *user) error {
			data, err := os.ReadFile(filepath.Join(u.root, "models.json"))
			if err == nil && !bytes.Contains(data, []byte("chaos/one")) {
				err = fmt.Errorf("models.json is %.200q", data)
			}
			return err
		},
	}
}
