package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/engine/control"
	"daycare/engine/permission"

	"github.com/spf13/cobra"
)

// kin is the part of the API that is about families: rights and sub-agents.
type kin struct{ parts *runtimeParts }

// Grants is the rights of an agent.
func (k kin) Grants(_ context.Context, id string) (permission.Set, error) {
	return k.parts.family.Grants(id)
}

// Revoke takes a right away.
func (k kin) Revoke(ctx context.Context, id, tag, by string) error {
	if k.parts.lock == nil {
		return control.ErrNotRunning
	}
	err := k.parts.family.Revoke(ctx, id, tag, by, k.parts.narrowed)
	if errors.Is(err, permission.ErrTag) {
		return &control.Invalid{Field: "permission", Reason: err.Error()}
	}
	return err
}

// narrowed ends the processes of an agent that run by a right which it has no more, and
// tells the agent.
func (r *runtimeParts) narrowed(agent string, left permission.Set) {
	ended := r.jobs.Narrow(agent, left)
	if len(ended) == 0 {
		return
	}
	text := "A right was taken back, so these background processes were ended: " + strings.Join(ended, "; ")
	if err := r.family.Note(context.Background(), agent, "system", "narrowed:"+cuid2.Generate(), text); err != nil {
		r.log.Warn("an agent was not told of processes that were ended", "agent", agent, "err", err)
	}
}

// SubAgents are the definitions in force.
func (k kin) SubAgents(context.Context) ([]control.SubAgentInfo, error) {
	list, _ := k.parts.toolset.registry.List()
	infos := make([]control.SubAgentInfo, len(list))
	for i, d := range list {
		infos[i] = control.SubAgentInfo{Name: d.Name, Description: d.Description, Icon: d.Icon, Tools: d.Tools,
			MaxIterations: d.MaxIterations, Model: d.Model, File: d.File}
	}
	return infos, nil
}

func (c *cli) permissionsGrants() *cobra.Command {
	return &cobra.Command{
		Use:     "grants ID",
		Short:   "What an agent may do, and who allowed it",
		Example: "  daycare permissions grants 0/",
		Args:    words(0, "the ID of an agent"), ValidArgsFunction: c.refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			set, err := client.Grants(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("list rights of %s: %w", args[0], err)
			}
			if c.json {
				return c.printJSON(set)
			}
			return grantTable(set, time.Now()).write(c.stdout, c.data())
		},
	}
}

// grantTable is the rights of an agent, one a line, with who gave it where that is
// known.
func grantTable(set permission.Set, now time.Time) table {
	var t table
	t.row("PERMISSION", "ALLOWED BY", "WHEN")
	given := map[string]permission.Grant{}
	for _, g := range set.Grants {
		if g.SHA256 != "" {
			t.row(oneLine(g.Tag, 60)+" (one exact call)", g.By, ago(g.At.Time, now))
			continue
		}
		given[g.Tag] = g
	}
	for _, access := range rights(set) {
		tag := access.Tag()
		by, at := "the settings, or by hand", ""
		if g, ok := given[tag]; ok {
			by, at = g.By, ago(g.At.Time, now)
		}
		t.row(tag, by, at)
	}
	return t
}

// rights are what a set holds.
func rights(set permission.Set) []permission.Access {
	list := []permission.Access{permission.Write{Path: set.WorkingDir}}
	for _, dir := range set.WriteDirs {
		list = append(list, permission.Write{Path: dir})
	}
	for _, dir := range set.ReadDirs {
		list = append(list, permission.Read{Path: dir})
	}
	if set.Web {
		list = append(list, permission.Web{})
	}
	for _, host := range set.Hosts {
		list = append(list, permission.Web{Host: host})
	}
	for _, prefix := range set.Exec {
		list = append(list, permission.Exec{Prefix: prefix})
	}
	return list
}

func (c *cli) permissionsRevoke() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID PERMISSION",
		Short:   "Take a right away from an agent; it counts at once",
		Example: "  daycare permissions revoke 0/ @web:example.com",
		Args:    words(-1, "the ID of an agent", "the PERMISSION, as `permissions grants` shows it"), ValidArgsFunction: c.refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.daemon(cmd.Context())
			if err != nil {
				return err
			}
			tag := strings.Join(args[1:], " ")
			if err := client.Revoke(cmd.Context(), args[0], tag); err != nil {
				return fmt.Errorf("revoke %s: %w", tag, err)
			}
			if c.json {
				return c.printJSON(struct {
					Revoked string `json:"revoked"`
				}{tag})
			}
			c.print("%s: revoked\n", tag)
			return nil
		},
	}
}

func (c *cli) subagentsCommand() *cobra.Command {
	return group("subagents", "The kinds of sub-agents there are", "  daycare subagents ls", c.subagentsLs())
}

func (c *cli) subagentsLs() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the definitions in force: built in, and those in .daycare/subagents",
		Example: "  daycare subagents ls --json",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			list, err := client.SubAgents(cmd.Context())
			if err != nil {
				return fmt.Errorf("list sub-agents: %w", err)
			}
			if c.json {
				return c.printJSON(struct {
					SubAgents []control.SubAgentInfo `json:"subagents"`
				}{append([]control.SubAgentInfo{}, list...)})
			}
			var t table
			t.row("NAME", "FROM", "ROUNDS", "TOOLS", "DESCRIPTION")
			for _, s := range list {
				t.row(s.Name, orElse(s.File, "built in"), fmt.Sprint(s.MaxIterations), strings.Join(s.Tools, " "), oneLine(s.Description, 60))
			}
			return t.write(c.stdout, c.data())
		},
	}
}
