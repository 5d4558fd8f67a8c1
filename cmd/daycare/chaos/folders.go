package chaos

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/message"
)

// Scenarios of whole agents: forked, taken to a file and brought back.

// branch makes an agent that continues from another.
func branch(name string) step {
	return made(func(*user) (string, error) { return name, nil }, func(ctx context.Context, _ *user, c *control.Client) error {
		_, err := c.Folders().Fork(ctx, "0/", 0, name)
		return err
	})
}

// bring makes an agent of the archive.
func bring() step {
	return made(func(u *user) (string, error) {
		id, err := os.ReadFile(archiveOf(u) + ".id")
		return string(id), err
	}, func(ctx context.Context, u *user, c *control.Client) error {
		tar, err := os.Open(archiveOf(u))
		if err != nil {
			return err
		}
		defer tar.Close()
		_, err = c.Folders().Import(ctx, tar, "")

		return err
	})
}

// made makes an agent unless it is there: a user who does not know whether it was
// made looks first.
func made(ref func(*user) (string, error), do func(context.Context, *user, *control.Client) error) step {
	return func(ctx context.Context, u *user) error {
		name, err := ref(u)
		if err != nil {
			return err
		}
		return u.ask(ctx, func(c *control.Client) error {
			if _, err := c.Agent(ctx, name); !errors.Is(err, message.ErrUnknownAgent) {
				return err
			}
			return do(ctx, u, c)
		})
	}
}

func archiveOf(u *user) string { return filepath.Join(filepath.Dir(u.root), "agent.tar") }

// exported takes the agent away into an archive, as if it came from another machine.
func exported(u *user) (err error) {
	histories, err := filepath.Glob(filepath.Join(u.root, "agents", "*", "history.jsonl"))
	if err != nil || len(histories) != 1 {
		return errors.Join(err, fmt.Errorf("there are %d agents to export, want one", len(histories)))
	}
	dir := filepath.Dir(histories[0])
	id := filepath.Base(dir)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range []string{"descriptor.json", "state.json", "history.jsonl", "inbox.jsonl"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: id + "/" + name, Mode: 0o600, Size: int64(len(data))}); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}

	return errors.Join(w.Close(), os.WriteFile(archiveOf(u), archive.Bytes(), 0o600),
		os.WriteFile(archiveOf(u)+".id", []byte(id), 0o600), os.RemoveAll(dir))
}

// whole: there are so many agents, each with the conversation that they come from.
func whole(agents int) func(*user, view) error {
	return func(_ *user, v view) error {
		n := 0
		for _, a := range v.agents {
			for _, l := range a.history {
				if l.Type == "user_message" && l.key() == "first" {
					n++
				}
			}
		}

		if len(v.agents) != agents || n != agents {
			return fmt.Errorf("there are %d agents, and the conversation %d times; want %d with it", len(v.agents), n, agents)
		}

		return nil
	}
}

// longLedger is one that a further line makes longer than a ledger gets.
func longLedger(u *user) error {
	if err := pastTask(u); err != nil {
		return err
	}
	then := time.Now().UTC().Add(-48 * time.Hour).Format(time.RFC3339)
	line := `{"at":"` + then + `","extra":"` + strings.Repeat("of old days ", 40) + `"}` + "\n"

	return hourOld(filepath.Join(u.root, "cron", "once", "runs.jsonl"), strings.Repeat(line, 1<<20/len(line)+1))
}
