package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/doctor"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// A shown agent is everything about one agent in one object.
type shown struct {
	event.Agent
	Machine     string            `json:"machine,omitempty"` // of the cluster, that it is on; "": this one
	Paths       map[string]string `json:"paths"`
	Session     *record.Session   `json:"session,omitempty"`
	Permissions *permission.Set   `json:"permissions,omitempty"`
	Context     *contextSize      `json:"context,omitempty"`
	Waiting     []event.Waiting   `json:"waiting"`
	Asks        []event.Ask       `json:"asks"`
	Problems    []event.File      `json:"problems"` // what is wrong with its files
}

func agentsShow(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one agent: state, permissions, session, files, queued items",
		Example: "  daycare agents show 0/",
		Args:    term.Words(0, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (shown, error) {
			return lookAt(ctx, c, client, args[0])
		}, func(s shown) error {
			showAgent(c, s, time.Now())
			return nil
		}),
	}
}

func lookAt(ctx context.Context, c *term.App, client *control.Client, ref string) (shown, error) {
	var s shown
	var err error
	if s.Agent, err = client.Agent(ctx, ref); err != nil {
		return s, term.About(err, "find agent", ref)
	}
	if s.Waiting, err = client.Inbox(ctx, s.ID); err != nil {
		return s, fmt.Errorf("read inbox of %s: %w", s.Handle, err)
	}
	asks, err := client.Permissions(ctx)
	if err != nil {
		return s, fmt.Errorf("read permissions: %w", err)
	}
	s.Waiting = append([]event.Waiting{}, s.Waiting...)
	s.Asks = []event.Ask{}
	for _, ask := range asks {
		if ask.AgentID == s.ID {
			s.Asks = append(s.Asks, ask)
		}
	}
	f, err := filesOf(ctx, c, client, s.Agent)
	if err != nil {
		return s, err
	}
	defer f.close()
	dir := filepath.Join(f.home, "agents", s.ID)
	s.Machine, s.Paths = f.machine, map[string]string{}
	if s.Machine == "" {
		s.Paths = agentPaths(dir)
	}
	if s.Problems, err = doctor.OfAgent(dir); err != nil {
		c.Warn("%v", err)
	}
	s.Permissions = readRights(filepath.Join(dir, "state.json"))
	if now, err := record.SessionOf(dir); err != nil {
		c.Warn("%v", err)
	} else if now.ID != "" {
		s.Session = &now
	}
	if s.Machine == "" {
		s.Context, err = measure(ctx, client, s)
	} else if data, serr := client.Context(ctx, s.ID); serr != nil {
		err = serr
	} else {
		err = json.Unmarshal(data, &s.Context)
	}
	if err != nil {
		c.Warn("%v", err)
	}

	return s, nil
}

// agentPaths are the files of an agent that are there.
func agentPaths(dir string) map[string]string {
	paths := map[string]string{"folder": dir}
	for _, name := range []string{"descriptor.json", "state.json", "inbox.jsonl", "history.jsonl", "SYSTEM.md"} {
		if path := filepath.Join(dir, name); term.Exists(path) {
			paths[name] = path
		}
	}

	return paths
}

// readRights reads an agent's rights. The file appears when the agent first runs;
// until then there is nothing to show.
func readRights(path string) *permission.Set {
	state, raw, found, err := record.ReadState(filepath.Dir(path))
	if err != nil || raw == nil || finding.Join(found) != nil {
		return nil
	}

	return &state.Permissions
}

func showAgent(c *term.App, s shown, now time.Time) {
	state := string(s.State)
	if s.Detail != "" {
		state += " " + term.Parens(term.OneLine(s.Detail, 100))
	}
	memory := "no"
	if s.Running {
		memory = "yes"
	}
	c.Fields("handle", s.Handle, "id", s.ID, "name", term.OneLine(s.Name, 100), "type", s.Type,
		"parent", s.ParentAgentID, "state", state, "in memory", memory, "model", s.Model,
		"cost", term.Money(s.Cost), "last", term.AgoPtr(s.LastAt, now), "folder", s.Paths["folder"],
		"machine", term.OneLine(s.Machine, 100))
	showSession(c, s.Session, now)
	showContext(c, s.Context)
	showRights(c, s.Permissions)
	heading(c, "waiting", len(s.Waiting))
	for _, w := range s.Waiting {
		c.Print("  %s\n", term.Join("  ", w.ID, w.Type, w.State, term.Ago(w.At, now), term.OneLine(w.Text, 60)))
	}
	problems(c, filepath.Dir(filepath.Dir(filepath.Dir(s.Paths["folder"]))), s.Problems)
	heading(c, "asks", len(s.Asks))
	for _, a := range s.Asks {
		c.Print("  %s\n", term.Join("  ", a.Token, a.Tag, term.OneLine(a.Request, 80)))
	}
}

func heading(c *term.App, name string, n int) {
	c.Print("%s\n", c.OutStyle().Dim(fmt.Sprintf("%s (%d)", name, n)))
}

func showSession(c *term.App, s *record.Session, now time.Time) {
	if s == nil {
		return
	}
	c.Fields("session", term.Join(", ", cmp.Or(term.OneLine(s.Title, 60), s.ID), term.Plural(s.Messages, "message", "messages"),
		fmt.Sprintf("%d tokens in, %d out", s.PromptTokens, s.CompletionTokens), term.Money(s.Cost),
		"since "+term.Ago(s.StartedAt.Time, now)))
}

func showRights(c *term.App, p *permission.Set) {
	if p == nil {
		return
	}
	web := "no"
	switch {
	case p.Web:
		web = "yes"
	case len(p.Hosts) > 0:
		web = strings.Join(p.Hosts, ", ")
	}
	c.Fields("works in", p.WorkingDir, "may read", strings.Join(p.ReadDirs, ", "),
		"may write", strings.Join(p.WriteDirs, ", "), "web", web,
		"own network", strings.Join(p.Lan, ", "), "may run", strings.Join(p.Exec, ", "),
		"MCP tools", strings.Join(p.MCP, ", "), "remote agents at", strings.Join(p.A2A, ", "))
	for _, g := range p.Grants {
		c.Fields("granted", term.Join("  ", g.Tag, g.At.Local().Format("2006-01-02 15:04"), "by "+g.By))
	}
}
