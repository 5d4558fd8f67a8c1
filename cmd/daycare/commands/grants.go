package commands

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/permission"
)

// permissionsGrants lists the rights of an agent; the commands below give, explain and revoke them.
func permissionsGrants(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "grants ID",
		Short:   "List an agent's permissions, and who granted each",
		Example: "  daycare permissions grants 0/",
		Args:    term.Words(0, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (permission.Set, error) {
			set, err := client.Grants(ctx, args[0])
			return set, term.Wrap(err, "list permissions of %s", args[0])
		}, func(set permission.Set) error { return grantTable(set, time.Now()).Write(c.Out, c.OutStyle()) }),
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
			t.Row(listed(g.Tag)+exactly, g.By, term.Ago(g.At.Time, now))
			continue
		}
		given[g.Tag] = g
	}
	for _, access := range set.Rights() {
		tag := access.Tag()
		by, at := "the settings, or by hand", ""
		if access == (permission.Write{Path: set.WorkingDir}) {
			by = "its working folder"
		}
		if g, ok := given[tag]; ok {
			by, at = g.By, term.Ago(g.At.Time, now)
		}
		t.Row(listed(tag), by, at)
	}

	return t
}

// exactly is behind a permission that covers one exact call.
const exactly = " (one exact call)"

// listed is a permission on one line: in full, as it can be revoked by this text.
func listed(tag string) string { return permission.VisibleLine(tag) }

// tagOf returns the permission of a set that is listed as text, or text itself.
func tagOf(set permission.Set, text string) string {
	for _, access := range set.Rights() {
		if tag := access.Tag(); listed(tag) == text {
			return tag
		}
	}
	for _, g := range set.Grants {
		if listed(g.Tag) == strings.TrimSuffix(text, exactly) {
			return g.Tag
		}
	}

	return text
}

func permissionsGrant(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "grant ID PERMISSION",
		Short: "Grant a permission: @read:/path, @write:/path, @web:host, @lan:host:port, @exec:git push, @mcp:server/tool or @a2a:host",
		Long: "Grant an agent a permission. @web:host is a host on the Internet; @lan:host:port is one port of this\n" +
			"machine or of a host in your network. @exec:git push covers commands that begin with these words, with any\n" +
			"further words, and with no other command, redirection, variable or input. If the words name\n" +
			"a script that the agent can change, the permission covers only its current content. @mcp:server/tool is\n" +
			"one tool of an MCP server with any arguments, @mcp:server all of its tools. @a2a:host is any task for the\n" +
			"remote agents at a host.",
		Example: "  daycare permissions grant 0/ '@exec:git push'\n  daycare permissions grant 0/ @web:example.com\n" +
			"  daycare permissions grant 0/ @lan:nas.home:8080",
		Args: term.Words(-1, "the ID of an agent", "the PERMISSION"), ValidArgsFunction: c.Refs,
		RunE: give(c, "granted", func(args []string) control.Granting {
			return control.Granting{Permission: strings.Join(args[1:], " ")}
		}),
	}
}

func permissionsProfile(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "profile ID PROFILE",
		Short: "Set how much an agent does without asking: read-only, ask, auto, plan, dry-run, default",
		Long: "Set the profile of an agent. read-only: it reads and changes nothing. ask: it asks before\n" +
			"each command and each file change. auto: it works in its sandbox without asking, and asks\n" +
			"for network access. plan: it only reads until you approve its plan, then carries it out.\n" +
			"dry-run: it works on a copy of its folder; see daycare changes.\n" +
			"default: the one that permissions.profile in the settings names.",
		Example: "  daycare permissions profile 0/ plan",
		Args:    term.Words(0, "the ID of an agent", "the PROFILE"), ValidArgsFunction: c.Refs,
		RunE: give(c, "set", func(args []string) control.Granting { return control.Granting{Profile: args[1]} }),
	}
}

// give is a command that gives an agent a right or a profile.
func give(c *term.App, done string, what func(args []string) control.Granting) func(*cobra.Command, []string) error {
	return term.Act(c, func(ctx context.Context, client *control.Client, args []string) (any, string, error) {
		g := what(args)
		name := cmp.Or(g.Permission, g.Profile)
		return g, name + ": " + done, term.Wrap(client.Grant(ctx, args[0], g), "grant %s %s", args[0], name)
	})
}

func permissionsWhy(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "why ID PERMISSION|COMMAND",
		Short: "Check whether an agent may do something, and which rule decides",
		Example: "  daycare permissions why 0/ 'git push origin main'\n" +
			"  daycare permissions why 0/ @web:example.com",
		Args: term.Words(-1, "the ID of an agent", "a PERMISSION or a COMMAND"), ValidArgsFunction: c.Refs,
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (control.Verdict, error) {
			v, err := client.Why(ctx, args[0], strings.Join(args[1:], " "))
			return v, term.Wrap(err, "check permissions of %s", args[0])
		}, func(v control.Verdict) error {
			c.Fields("decision", v.Decision, "rule", permission.VisibleLine(v.Rule), "allowed by", v.By,
				"reason", v.Reason, "hooks before it", strings.Join(v.Hooks, "; "))
			return nil
		}),
	}
}

func permissionsRevoke(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID PERMISSION",
		Short:   "Revoke a permission, effective immediately",
		Example: "  daycare permissions revoke 0/ @web:example.com",
		Args:    term.Words(-1, "the ID of an agent", "the PERMISSION as listed by `permissions grants`"), ValidArgsFunction: c.Refs,
		RunE: term.Act(c, func(ctx context.Context, client *control.Client, args []string) (any, string, error) {
			set, err := client.Grants(ctx, args[0])
			if err != nil {
				return nil, "", term.Wrap(err, "list permissions of %s", args[0])
			}
			tag := tagOf(set, strings.Join(args[1:], " "))
			err = term.Wrap(client.Revoke(ctx, args[0], tag), "revoke %s", listed(tag))
			return map[string]string{"revoked": tag}, listed(tag) + ": revoked", err
		}),
	}
}
