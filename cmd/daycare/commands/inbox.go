package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// Inbox is the group of commands that list and reorder what waits for agents.
func Inbox(c *term.App) *cobra.Command {
	return term.Group("inbox", "List and manage queued items",
		"  daycare inbox ls\n  daycare inbox drop 0/ tz4a98xx",
		inboxLs(c), inboxShow(c),
		inboxChange(c, "drop", "Remove a queued item", "dropped", (*control.Client).Drop),
		inboxChange(c, "front", "Move a queued item to the front", "moved to the front", (*control.Client).Front))
}

// A waiting item with the agent it waits for.
type waitingFor struct {
	Agent  string `json:"agent"`
	Handle string `json:"handle"`
	event.Waiting
}

type queued struct {
	Items []waitingFor `json:"items"`
}

func inboxLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls [ID]",
		Short:   "List queued items of one agent, or of all",
		Example: "  daycare inbox ls 0/",
		Args:    term.Words(1), ValidArgsFunction: c.Refs,
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (queued, error) {
			items, err := waiting(ctx, client, args)
			return queued{items}, err
		}, func(q queued) error {
			if len(q.Items) == 0 {
				c.Note("no queued items")
				return nil
			}
			return inboxTable(q.Items, time.Now()).Write(c.Out, c.OutStyle())
		}),
	}
}

// waiting lists what waits for the agent named in args, or for all.
func waiting(ctx context.Context, client *control.Client, args []string) ([]waitingFor, error) {
	var agents []event.Agent
	if len(args) > 0 {
		a, err := client.Agent(ctx, args[0])
		if err != nil {
			return nil, term.About(err, "find agent", args[0])
		}
		agents = append(agents, a)
	} else {
		all, err := client.Agents(ctx)
		if err != nil {
			return nil, fmt.Errorf("list agents: %w", err)
		}
		for _, a := range all {
			if a.Queued > 0 {
				agents = append(agents, a)
			}
		}
	}

	items := []waitingFor{}
	for _, a := range agents {
		list, err := client.Inbox(ctx, a.ID)
		if err != nil {
			return nil, fmt.Errorf("read inbox of %s: %w", a.Handle, err)
		}
		for _, w := range list {
			items = append(items, waitingFor{a.ID, a.Handle, w})
		}
	}

	return items, nil
}

func inboxTable(items []waitingFor, now time.Time) term.Table {
	var t term.Table
	t.Row("AGENT", "ITEM", "TYPE", "STATE", "AT", "SIZE", "TEXT")
	for _, w := range items {
		t.Row(w.Handle, w.ID, w.Type, w.State, term.Ago(w.At, now), term.Size(int64(w.Bytes)), term.OneLine(w.Text, 60))
	}

	return t
}

func inboxShow(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID ITEM",
		Short:   "Show one queued item",
		Example: "  daycare inbox show 0/ tz4a98xx",
		Args:    term.Words(0, "the ID of an agent", "an ITEM"), ValidArgsFunction: c.Refs,
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (waitingFor, error) {
			return findItem(ctx, client, args[0], args[1])
		}, func(w waitingFor) error {
			c.Fields("item", w.ID, "agent", w.Handle, "type", w.Type, "state", w.State,
				"at", w.At.Local().Format("2006-01-02 15:04:05"), "size", term.Size(int64(w.Bytes)))
			c.Print("\n%s\n", w.Text)
			return nil
		}),
	}
}

func inboxChange(c *term.App, use, short, done string, do func(*control.Client, context.Context, string, string) error) *cobra.Command {
	return &cobra.Command{
		Use:     use + " ID ITEM",
		Short:   short,
		Example: "  daycare inbox " + use + " 0/ tz4a98xx",
		Args:    term.Words(0, "the ID of an agent", "an ITEM"), ValidArgsFunction: c.Refs,
		RunE: term.Act(c, func(ctx context.Context, client *control.Client, args []string) (any, string, error) {
			w, err := findItem(ctx, client, args[0], args[1])
			if err != nil {
				return nil, "", err
			}
			err = do(client, ctx, w.Agent, w.ID)

			return struct {
				Agent string `json:"agent"`
				Item  string `json:"item"`
				Done  string `json:"done"`
			}{w.Agent, w.ID, use}, w.ID + " " + done, term.Wrap(err, "%s item %s", use, w.ID)
		}),
	}
}

// findItem finds the item that begins with prefix in an agent's inbox.
func findItem(ctx context.Context, client *control.Client, ref, prefix string) (waitingFor, error) {
	items, err := waiting(ctx, client, []string{ref})
	if err != nil {
		return waitingFor{}, err
	}
	var ids []string
	for _, w := range items {
		ids = append(ids, w.ID)
	}

	n, err := byPrefix("item", ids, prefix, "list queued items with: daycare inbox ls")
	if err != nil {
		return waitingFor{}, err
	}

	return items[n], nil
}

// byPrefix finds the one id that is, or begins with, what a user typed (4
// characters at least).
func byPrefix(what string, ids []string, typed, do string) (int, error) {
	var fits []int
	for i, id := range ids {
		if id == typed {
			return i, nil
		}
		if len(typed) >= 4 && strings.HasPrefix(id, typed) {
			fits = append(fits, i)
		}
	}

	switch len(fits) {
	case 0:
		return 0, term.NotFound(do, "no %s %s", what, typed)
	case 1:
		return fits[0], nil
	}

	var names []string
	for _, i := range fits {
		names = append(names, ids[i])
	}
	return 0, &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%q matches several: %s", typed, strings.Join(names, ", ")),
		Do: "type more characters of the id"}
}
