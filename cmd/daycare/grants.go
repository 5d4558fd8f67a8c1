package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/engine/control"
	"daycare/engine/permission"
	toolshell "daycare/tools/shell"

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

// under is a set with the profile that applies to it, as the settings are now.
func (r *runtimeParts) under(s permission.Set) permission.Set {
	return s.Under(permission.Profile(r.settings.Current().Permissions.Profile))
}

// plansFirst reports whether an agent plans before it changes anything.
func (r *runtimeParts) plansFirst(agent string) bool {
	set, err := r.family.Grants(agent)
	return err == nil && r.under(set).Profile == permission.Planning
}

// Grant gives a right, bound to the content of the scripts that its words name, or
// another profile.
func (k kin) Grant(ctx context.Context, id string, g control.Granting, by string) error {
	if k.parts.lock == nil {
		return control.ErrNotRunning
	}
	if g.Profile != "" {
		return k.profile(ctx, id, g.Profile, by)
	}
	set, err := k.parts.family.Grants(id)
	if err != nil {
		return err
	}
	var scripts []permission.Script
	if rule, ok := strings.CutPrefix(g.Permission, "@exec:"); ok {
		scripts = toolshell.Scripts(strings.TrimSpace(rule), set.WorkingDir, set)
	}
	if err = k.parts.family.Give(ctx, id, g.Permission, by, scripts); errors.Is(err, permission.ErrTag) {
		return &control.Invalid{Field: "permission", Reason: err.Error()}
	}
	return err
}

// profile gives an agent another profile; "default" is that of the settings.
func (k kin) profile(ctx context.Context, id, name, by string) error {
	profile := permission.Profile(strings.TrimSuffix(name, "default"))
	if profile != "" && !slices.Contains(permission.Profiles, profile) {
		return &control.Invalid{Field: "profile", Reason: fmt.Sprintf("found %q, allowed: read-only, ask, auto, plan, default", name)}
	}
	return k.parts.family.Profile(ctx, id, profile, by)
}

// Why says what an agent would be allowed, and by which rule.
func (k kin) Why(_ context.Context, id, what string) (control.Verdict, error) {
	set, err := k.parts.family.Grants(id)
	if err != nil {
		return control.Verdict{}, err
	}
	set = k.parts.under(set)
	command, isExec := strings.CutPrefix(what, "@exec:")
	if isExec || !strings.HasPrefix(what, "@") {
		tool, _, _ := k.parts.tools.Get("exec")
		v := tool.(*toolshell.Exec).Explain(command, set.WorkingDir, set)
		return control.Verdict{Decision: v.Decision, Rule: v.Rule, By: giver(set, v.Rule), Reason: v.Reason}, nil
	}
	access, err := permission.Parse(what)
	if err != nil {
		return control.Verdict{}, &control.Invalid{Field: "what", Reason: err.Error()}
	}
	if !set.Allows(access) {
		if !set.Changes() {
			return control.Verdict{Decision: "refused", Rule: "profile " + string(set.Profile), Reason: "the profile changes nothing"}, nil
		}
		return control.Verdict{Decision: "asks", Reason: "no right covers it; the agent may ask for it"}, nil
	}
	for _, right := range rights(set) {
		if narrow := alone(right); narrow.Allows(access) {
			return control.Verdict{Decision: "allowed", Rule: right.Tag(), By: giver(set, right.Tag()), Reason: "this right covers it"}, nil
		}
	}
	return control.Verdict{Decision: "allowed", Reason: "the rights together cover it"}, nil
}

// alone is the set of one right.
func alone(right permission.Access) permission.Set {
	set, err := permission.Set{}.Grant(permission.Grant{Tag: right.Tag()})
	if err != nil {
		return permission.Set{} // a working folder that is none covers nothing
	}
	return set
}

// giver is who gave a right, where that is known.
func giver(set permission.Set, tag string) string {
	for _, g := range set.Grants {
		if g.Tag == tag && g.SHA256 == "" {
			return g.By
		}
	}
	return ""
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
	if set.Profile != "" {
		t.row("profile "+string(set.Profile), "", "")
	}
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
	for _, address := range set.Lan {
		if a, err := permission.Parse("@lan:" + address); err == nil {
			list = append(list, a)
		}
	}
	for _, prefix := range set.Exec {
		list = append(list, permission.Exec{Prefix: prefix})
	}
	return list
}

func (c *cli) permissionsGrant() *cobra.Command {
	return &cobra.Command{
		Use:   "grant ID PERMISSION",
		Short: "Give an agent a right: @read:/path, @write:/path, @web:host, @lan:host:port or @exec:git push",
		Long: "Give an agent a right. @web:host is a host on the Internet; @lan:host:port is one port of this\n" +
			"machine or of a host in your network. @exec:git push means commands that begin with these words, with any\n" +
			"further words, and with no other command, redirection, variable or input. If the words name\n" +
			"a script that the agent can change, the right is for the content that it has now.",
		Example: "  daycare permissions grant 0/ '@exec:git push'\n  daycare permissions grant 0/ @web:example.com\n" +
			"  daycare permissions grant 0/ @lan:nas.home:8080",
		Args: words(-1, "the ID of an agent", "the PERMISSION"), ValidArgsFunction: c.refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.give(cmd, args[0], control.Granting{Permission: strings.Join(args[1:], " ")}, "granted")
		},
	}
}

func (c *cli) permissionsProfile() *cobra.Command {
	return &cobra.Command{
		Use:   "profile ID PROFILE",
		Short: "Say in a word how much an agent does by itself: read-only, ask, auto, plan, default",
		Long: "Set the profile of an agent. read-only reads and changes nothing. ask asks before each\n" +
			"command and each change of a file. auto works in its sandbox without asking; a network\n" +
			"asks. plan reads until you approve a plan, which it then carries out. default is\n" +
			"permissions.profile of the settings.",
		Example: "  daycare permissions profile 0/ plan",
		Args:    words(0, "the ID of an agent", "the PROFILE"), ValidArgsFunction: c.refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.give(cmd, args[0], control.Granting{Profile: args[1]}, "set")
		},
	}
}

// give gives an agent a right or a profile, and says so.
func (c *cli) give(cmd *cobra.Command, ref string, g control.Granting, done string) error {
	client, err := c.daemon(cmd.Context())
	if err != nil {
		return err
	}
	what := orElse(g.Permission, g.Profile)
	if err := client.Grant(cmd.Context(), ref, g); err != nil {
		return fmt.Errorf("give %s %s: %w", ref, what, err)
	}
	if c.json {
		return c.printJSON(g)
	}
	c.print("%s: %s\n", what, done)
	return nil
}

func (c *cli) permissionsWhy() *cobra.Command {
	return &cobra.Command{
		Use:   "why ID PERMISSION|COMMAND",
		Short: "Say whether an agent may do something, and which rule decides",
		Example: "  daycare permissions why 0/ 'git push origin main'\n" +
			"  daycare permissions why 0/ @web:example.com",
		Args: words(-1, "the ID of an agent", "a PERMISSION or a COMMAND"), ValidArgsFunction: c.refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			what := strings.Join(args[1:], " ")
			v, err := client.Why(cmd.Context(), args[0], what)
			if err != nil {
				return fmt.Errorf("look at the rights of %s: %w", args[0], err)
			}
			if c.json {
				return c.printJSON(v)
			}
			c.fields("decision", v.Decision, "rule", permission.VisibleLine(v.Rule), "allowed by", clean(v.By), "reason", clean(v.Reason))
			return nil
		},
	}
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
				t.row(s.Name, orElse(s.File, "built in"), fmt.Sprint(s.MaxIterations), strings.Join(s.Tools, " "),
					oneLine(s.Description, 60))
			}
			return t.write(c.stdout, c.data())
		},
	}
}
