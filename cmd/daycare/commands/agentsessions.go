package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/record"
)

// A sessionLine is one conversation of an agent in --json.
type sessionLine struct {
	ID               string     `json:"id"`
	Title            string     `json:"title"`
	StartedAt        time.Time  `json:"startedAt"`
	EndedAt          *time.Time `json:"endedAt"` // null: it continues
	Messages         int        `json:"messages"`
	PromptTokens     int64      `json:"promptTokens"`
	CompletionTokens int64      `json:"completionTokens"`
	Cost             float64    `json:"cost"`

	first, last int64 // seq of its records; last 0: it continues
}

func agentsSessions(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "sessions ID [SESSION]",
		Short: "List an agent's conversations, or show one",
		Long: "List the conversations of an agent, newest first. A reset ends one and starts the next.\n" +
			"With SESSION, an id or its first letters, show that conversation.",
		Example: "  daycare agents sessions 0/\n  daycare agents sessions 0/ x7k2",
		Args:    term.Words(1, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			a, err := client.Agent(cmd.Context(), args[0])
			if err != nil {
				return term.About(err, "find agent", args[0])
			}

			f, err := filesOf(cmd.Context(), c, client, a)
			if err != nil {
				return err
			}
			defer f.close()
			list, err := sessions(filepath.Join(f.home, "agents", a.ID))
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return term.Listing[sessionLine]{Key: "sessions", Table: sessionTable}.Show(c, list)
			}

			s, err := pickSession(list, args[1], a.Handle)
			if err != nil {
				return err
			}
			return readSession(cmd.Context(), c, client, a, s)
		},
	}
}

// sessions are the conversations of the agent in a folder, the newest first.
func sessions(dir string) ([]sessionLine, error) {
	ended, err := record.EndedSessions(dir)
	if err != nil {
		return nil, err
	}

	now, err := record.SessionOf(dir)
	if err != nil {
		return nil, err
	}
	var list []sessionLine
	if now.ID != "" {
		list = append(list, sessionLine{ID: now.ID, Title: now.Title, StartedAt: now.StartedAt.Time, Messages: now.Messages,
			PromptTokens: now.PromptTokens, CompletionTokens: now.CompletionTokens, Cost: now.Cost, first: now.First})
	}

	for i := len(ended) - 1; i >= 0; i-- {
		e := ended[i]
		list = append(list, sessionLine{ID: e.ID, Title: e.Title, StartedAt: e.StartedAt.Time, EndedAt: &e.EndedAt.Time,
			Messages:     e.Messages,
			PromptTokens: e.PromptTokens, CompletionTokens: e.CompletionTokens, Cost: e.Cost, first: e.First, last: e.Last})
	}

	return list, nil
}

func sessionTable(list []sessionLine) (t term.Table, _ error) {
	t.Row("SESSION", "BEGAN", "ENDED", "MESSAGES", "COST", "TITLE")
	for _, s := range list {
		end := "current"
		if s.EndedAt != nil {
			end = s.EndedAt.Local().Format("2006-01-02 15:04")
		}
		t.Row(s.ID, s.StartedAt.Local().Format("2006-01-02 15:04"), end, fmt.Sprint(s.Messages), term.Money(s.Cost),
			term.OneLine(s.Title, 60))
	}

	return t, nil
}

func pickSession(list []sessionLine, ref, agent string) (sessionLine, error) {
	var found []sessionLine
	for _, s := range list {
		if s.ID == ref {
			return s, nil
		}
		if len(ref) >= 4 && strings.HasPrefix(s.ID, ref) {
			found = append(found, s)
		}
	}

	if len(found) == 1 {
		return found[0], nil
	}

	return sessionLine{}, term.NotFound("daycare agents sessions "+agent+" lists them", "%s has no session %q", agent, ref)
}

// readSession shows the records of a session, from whatever file they are in.
func readSession(ctx context.Context, c *term.App, client *control.Client, a event.Agent, s sessionLine) error {
	const page = 500
	before := int64(0)
	if s.last > 0 {
		before = s.last + 1
	}

	var lines []json.RawMessage
	for {
		p, err := client.History(ctx, a.ID, before, page)
		if err != nil {
			return fmt.Errorf("read history of %s: %w", a.Handle, err)
		}
		older := 0
		for ; older < len(p.Records) && seqOf(p.Records[older]) < s.first; older++ {
		}
		lines = append(append([]json.RawMessage{}, p.Records[older:]...), lines...)
		if older > 0 || p.Before == nil {
			break
		}

		before = *p.Before
	}

	return showRecords(c, lines)
}
