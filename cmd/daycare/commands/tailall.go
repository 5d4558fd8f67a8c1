package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"daycare/cmd/daycare/follow"
	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/record"
)

// followAgent watches the folder of an agent.
func followAgent(c *term.App, f *follow.Folders, id string) error {
	at, err := c.MadePlace()
	if err == nil {
		f.Add(filepath.Join(at.Data, "agents", id))
	}

	return err
}

// elsewhereEvery is how often is looked for what agents on other machines of a cluster have done.
const elsewhereEvery = time.Second

// followOthers has a watch look at what is on other machines, if there are any.
func followOthers(ctx context.Context, f *follow.Folders, client *control.Client) error {
	s, err := client.Status(ctx)
	if err == nil && len(s.Machines) > 0 {
		f.Every(ctx, elsewhereEvery)
	}

	return err
}

// A said is a record with whose it is.
type said struct {
	agent, handle string
	at            time.Time
	line          json.RawMessage
}

// tailAll is tail of all agents at once, in the order of time.
func tailAll(ctx context.Context, c *term.App, n int, following bool) error {
	at, err := c.MadePlace()
	if err != nil {
		return err
	}
	agents := filepath.Join(at.Data, "agents")
	f := follow.Watch(ctx)
	defer f.Close()
	f.Add(agents)
	t := &tailer{App: c, follower: f, dir: agents, seen: map[string]int64{}, last: map[string]time.Time{},
		handles: map[string]string{}}
	newest, err := t.look(ctx, n)
	if err != nil {
		return err
	}

	slices.SortStableFunc(newest, func(a, b said) int { return a.at.Compare(b.at) })
	for _, s := range newest[max(0, len(newest)-n):] {
		if err := showSaid(c, s); err != nil {
			return err
		}
	}

	if following {
		client, err := c.Reader(ctx)
		if err == nil {
			err = followOthers(ctx, f, client)
		}
		if err != nil {
			return err
		}
	}
	for following {
		dir, err := f.Next(ctx)
		if err != nil {
			return err
		}
		more, err := t.changed(ctx, dir)
		if err != nil {
			return err
		}

		for _, s := range more {
			if err := showSaid(c, s); err != nil {
				return err
			}
		}
	}

	return nil
}

// A tailer knows how much of each history was shown.
type tailer struct {
	*term.App
	follower *follow.Folders
	dir      string               // of all agents
	seen     map[string]int64     // the highest seq, by id
	last     map[string]time.Time // when it last did something, as a list said
	handles  map[string]string
}

// agents are all there are, and whom to ask about them.
func (t *tailer) agents(ctx context.Context) (*control.Client, []event.Agent, error) {
	client, err := t.Reader(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err := client.Agents(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list agents: %w", err)
	}

	return client, list, nil
}

// look takes in agents that it does not know yet, each with its newest n records.
func (t *tailer) look(ctx context.Context, n int) ([]said, error) {
	client, list, err := t.agents(ctx)
	if err != nil {
		return nil, err
	}

	return t.meet(ctx, client, list, n)
}

// meet is look at a list.
func (t *tailer) meet(ctx context.Context, client *control.Client, list []event.Agent, n int) ([]said, error) {
	var all []said
	for _, a := range list {
		if _, known := t.handles[a.ID]; known {
			continue
		}
		t.handles[a.ID] = a.Handle
		t.follower.Add(filepath.Join(t.dir, a.ID))
		records, err := show.Newest(ctx, client, a.ID, max(n, 1))
		if err != nil {
			return nil, err
		}

		t.seen[a.ID] = maxSeq(records)
		all = append(all, t.said(a.ID, records[len(records)-min(n, len(records)):])...)
	}

	return all, nil
}

// changed is what is new in the folder of an agent, or what new agents say.
func (t *tailer) changed(ctx context.Context, dir string) ([]said, error) {
	switch dir {
	case t.dir:
		return t.look(ctx, 100)
	case "":
		return t.elsewhere(ctx)
	}

	return t.added(ctx, filepath.Base(dir))
}

// elsewhere is what agents did that a list says were active since.
func (t *tailer) elsewhere(ctx context.Context) ([]said, error) {
	client, list, err := t.agents(ctx)
	if err != nil {
		return nil, err
	}
	all, err := t.meet(ctx, client, list, 100)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if a.LastAt == nil || a.State == event.Idle && !a.LastAt.After(t.last[a.ID]) {
			continue
		}
		t.last[a.ID] = *a.LastAt
		more, err := t.added(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}

	return all, nil
}

// added is what an agent did since it was looked at.
func (t *tailer) added(ctx context.Context, id string) ([]said, error) {
	records, err := after(ctx, t.App, id, t.seen[id])
	if err != nil {
		return nil, nil // it was removed meanwhile
	}

	t.seen[id] = max(t.seen[id], maxSeq(records))

	return t.said(id, records), nil
}

func (t *tailer) said(id string, records []json.RawMessage) []said {
	all := make([]said, len(records))
	for i, line := range records {
		all[i] = said{agent: id, handle: t.handles[id], line: line}
		if e, err := record.Decode(line); err == nil {
			all[i].at = e.At
		}
	}

	return all
}

func showSaid(c *term.App, s said) error {
	if c.JSON {
		return c.PrintJSON(struct {
			Agent  string          `json:"agent"`
			Handle string          `json:"handle"`
			Record json.RawMessage `json:"record"`
		}{s.agent, s.handle, s.line})
	}

	entry, err := record.Decode(s.line)
	if err != nil {
		return nil // a line by hand that is broken; doctor says so
	}
	text := show.Record(entry, c.OutStyle())
	if text == "" {
		return nil
	}
	if err := term.Printf(c.Out, "%s %s\n", c.OutStyle().Bold(fmt.Sprintf("%-6s", s.handle)), text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}

	return nil
}
