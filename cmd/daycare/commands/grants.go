package commands

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/permission"
)

func permissionsGrants(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "grants ID",
		Short:   "What an agent may do, and who allowed it",
		Example: "  daycare permissions grants 0/",
		Args:    term.Words(0, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			set, err := client.Grants(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("list rights of %s: %w", args[0], err)
			}
			if c.JSON {
				return c.PrintJSON(set)
			}
			return grantTable(set, time.Now()).Write(c.Out, c.OutStyle())
		},
	}
}

// grantTable is the rights of an agent, one a line, with who gave it where that is
// known.
func grantTable(set permission.Set, now time.Time) term.Table {
	var t term.Table
	t.Row("PERMISSION", "ALLOWED BY", "WHEN")
	if set.Profile != "" {
		t.Row("profile "+string(set.Profile), "", "")
	}
	given := map[string]permission.Grant{}
	for _, g := range set.Grants {
		if g.SHA256 != "" {
			t.Row(term.OneLine(g.Tag, 60)+" (one exact call)", g.By, term.Ago(g.At.Time, now))
			continue
		}
		given[g.Tag] = g
	}
	for _, access := range set.Rights() {
		tag := access.Tag()
		by, at := "the settings, or by hand", ""
		if g, ok := given[tag]; ok {
			by, at = g.By, term.Ago(g.At.Time, now)
		}
		t.Row(tag, by, at)
	}
	return t
}

func permissionsGrant(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "grant ID PERMISSION",
		Short: "Give an agent a right: @read:/path, @write:/path, @web:host, @lan:host:port or @exec:git push",
		Long: "Give an agent a right. @web:host is a host on the Internet; @lan:host:port is one port of this\n" +
			"machine or of a host in your network. @exec:git push means commands that begin with these words, with any\n" +
			"further words, and with no other command, redirection, variable or input. If the words name\n" +
			"a script that the agent can change, the right is for the content that it has now.",
		Example: "  daycare permissions grant 0/ '@exec:git push'\n  daycare permissions grant 0/ @web:example.com\n" +
			"  daycare permissions grant 0/ @lan:nas.home:8080",
		Args: term.Words(-1, "the ID of an agent", "the PERMISSION"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(c, cmd, args[0], control.Granting{Permission: strings.Join(args[1:], " ")}, "granted")
		},
	}
}

func permissionsProfile(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "profile ID PROFILE",
		Short: "Say in a word how much an agent does by itself: read-only, ask, auto, plan, default",
		Long: "Set the profile of an agent. read-only reads and changes nothing. ask asks before each\n" +
			"command and each change of a file. auto works in its sandbox without asking; a network\n" +
			"asks. plan reads until you approve a plan, which it then carries out. default is\n" +
			"permissions.profile of the settings.",
		Example: "  daycare permissions profile 0/ plan",
		Args:    term.Words(0, "the ID of an agent", "the PROFILE"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(c, cmd, args[0], control.Granting{Profile: args[1]}, "set")
		},
	}
}

// give gives an agent a right or a profile, and says so.
func give(c *term.App, cmd *cobra.Command, ref string, g control.Granting, done string) error {
	client, err := c.Daemon(cmd.Context())
	if err != nil {
		return err
	}
	what := cmp.Or(g.Permission, g.Profile)
	if err := client.Grant(cmd.Context(), ref, g); err != nil {
		return fmt.Errorf("give %s %s: %w", ref, what, err)
	}
	if c.JSON {
		return c.PrintJSON(g)
	}
	c.Print("%s: %s\n", what, done)
	return nil
}

func permissionsWhy(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "why ID PERMISSION|COMMAND",
		Short: "Say whether an agent may do something, and which rule decides",
		Example: "  daycare permissions why 0/ 'git push origin main'\n" +
			"  daycare permissions why 0/ @web:example.com",
		Args: term.Words(-1, "the ID of an agent", "a PERMISSION or a COMMAND"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			what := strings.Join(args[1:], " ")
			v, err := client.Why(cmd.Context(), args[0], what)
			if err != nil {
				return fmt.Errorf("look at the rights of %s: %w", args[0], err)
			}
			if c.JSON {
				return c.PrintJSON(v)
			}
			c.Fields("decision", v.Decision, "rule", permission.VisibleLine(v.Rule), "allowed by", term.Clean(v.By),
				"reason", term.Clean(v.Reason))
			return nil
		},
	}
}

func permissionsRevoke(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID PERMISSION",
		Short:   "Take a right away from an agent; it counts at once",
		Example: "  daycare permissions revoke 0/ @web:example.com",
		Args:    term.Words(-1, "the ID of an agent", "the PERMISSION, as `permissions grants` shows it"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Daemon(cmd.Context())
			if err != nil {
				return err
			}
			tag := strings.Join(args[1:], " ")
			if err := client.Revoke(cmd.Context(), args[0], tag); err != nil {
				return fmt.Errorf("revoke %s: %w", tag, err)
			}
			if c.JSON {
				return c.PrintJSON(struct {
					Revoked string `json:"revoked"`
				}{tag})
			}
			c.Print("%s: revoked\n", tag)
			return nil
		},
	}
}

// SubAgents lists the kinds of sub-agents that agents can start.
func SubAgents(c *term.App) *cobra.Command {
	return term.Group("subagents", "The kinds of sub-agents there are", "  daycare subagents ls", subagentsLs(c))
}

func subagentsLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the definitions in force: built in, and those in .daycare/subagents",
		Example: "  daycare subagents ls --json",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			list, err := client.SubAgents(cmd.Context())
			if err != nil {
				return fmt.Errorf("list sub-agents: %w", err)
			}
			if c.JSON {
				return c.PrintJSON(struct {
					SubAgents []control.SubAgentInfo `json:"subagents"`
				}{append([]control.SubAgentInfo{}, list...)})
			}
			var t term.Table
			t.Row("NAME", "FROM", "ROUNDS", "TOOLS", "DESCRIPTION")
			for _, s := range list {
				t.Row(s.Name, cmp.Or(s.File, "built in"), fmt.Sprint(s.MaxIterations), strings.Join(s.Tools, " "),
					term.OneLine(s.Description, 60))
			}
			return t.Write(c.Out, c.OutStyle())
		},
	}
}
