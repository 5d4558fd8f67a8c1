package commands

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
)

// Agents is the group of commands that list agents, look into one and change one.
func Agents(c *term.App) *cobra.Command {
	cmd := term.Group("agents", "List, inspect and manage agents",
		"  daycare agents ls --tree\n  daycare agents tail 0/ -f",
		agentsLs(c), agentsShow(c), agentsTail(c), agentsSessions(c), agentsNew(c),
		agentsStop(c), agentsReset(c), agentsCompact(c), agentsKill(c), agentsRm(c))
	cmd.AddCommand(handCommands(c)...)

	return cmd
}

// Shortcuts are the commands that users also find at the root, by their names there.
func Shortcuts(c *term.App) map[string]*cobra.Command {
	return map[string]*cobra.Command{
		"ls": agentsLs(c), "new": agentsNew(c), "rm": agentsRm(c), "show": agentsShow(c), "allow": permissionsAllow(c)}
}

func agentsLs(c *term.App) *cobra.Command {
	var tree bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List agents",
		Example: "  daycare agents ls --tree",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[event.Agent]{Key: "agents",
			None: "no agents yet; your first message creates one: daycare chat hello",
			Get: func(client *control.Client, ctx context.Context) ([]event.Agent, error) {
				list, err := client.Agents(ctx)
				slices.SortStableFunc(list, byHandle)
				return list, err
			},
			Table: func(list []event.Agent) (term.Table, error) { return agentTable(list, tree, time.Now()), nil }}),
	}
	cmd.Flags().BoolVar(&tree, "tree", false, "indent children below their parents")

	return cmd
}

func agentTable(list []event.Agent, tree bool, now time.Time) term.Table {
	var t term.Table
	t.Row("HANDLE", "NAME", "TYPE", "STATE", "INBOX", "LAST", "COST", "MODEL")
	for _, a := range list {
		handle := a.Handle
		if tree {
			handle = strings.Repeat("  ", depth(a.Handle)) + handle
		}
		state := string(a.State)
		if a.Detail != "" {
			state += " " + term.Parens(term.OneLine(a.Detail, 32))
		}

		waiting := strconv.Itoa(a.Queued)
		if a.OldestAt != nil && a.Queued > 0 {
			waiting += " (" + term.Span(now.Sub(*a.OldestAt)) + ")"
		}
		t.Row(handle, term.OneLine(cmp.Or(a.Name, "-"), 30), a.Type, state, waiting,
			term.AgoPtr(a.LastAt, now), term.Money(a.Cost), cmp.Or(a.Model, "-"))
	}

	return t
}

// serials are the numbers of a handle: "0/1" is 0, 1 and "0/" is 0.
func serials(handle string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.Trim(handle, "/"), "/") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = int(^uint(0) >> 1) // what is not a number comes last
		}
		out = append(out, n)
	}

	return out
}

func depth(handle string) int { return len(serials(handle)) - 1 }

// byHandle orders agents so that children follow their parent.
func byHandle(a, b event.Agent) int {
	return cmp.Or(slices.Compare(serials(a.Handle), serials(b.Handle)), cmp.Compare(a.ID, b.ID))
}

func agentsNew(c *term.App) *cobra.Command {
	var n control.NewAgent
	create := term.Act(c, func(ctx context.Context, client *control.Client, _ []string) (any, string, error) {
		a, err := client.Create(ctx, n)
		return a, a.Handle + "  " + a.ID, term.Wrap(err, "create agent")
	})
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Create an agent",
		Example: "  daycare agents new --name review --prompt \"Read main.go and list its flaws\"\n" +
			"  daycare agents new --type permanent --name Ops --system-prompt \"You keep the servers running.\"",
		Args: term.Words(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"user", "permanent", "subagent"}, n.Type) {
				return term.Usage(cmd, "--type %q is unknown; allowed: user, permanent, subagent", n.Type)
			}
			return create(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&n.Type, "type", "user", "user, permanent or subagent")
	flags.StringVar(&n.Name, "name", "", "its name")
	flags.StringVar(&n.Prompt, "prompt", "", "its first message")
	flags.StringVar(&n.Parent, "parent", "", "for a subagent: the `ID` of its parent")
	flags.StringVar(&n.Description, "description", "", "for a permanent agent: the description that other agents see")
	flags.StringVar(&n.SystemPrompt, "system-prompt", "", "for a permanent agent: its system prompt")
	flags.StringVar(&n.WorkspaceDir, "dir", "", "for a permanent agent: the `DIR` that it works in")
	_ = cmd.RegisterFlagCompletionFunc("type", term.OneOf("user", "permanent", "subagent"))
	_ = cmd.RegisterFlagCompletionFunc("parent", c.AgentRefs)
	_ = cmd.MarkFlagDirname("dir")

	return cmd
}

// onAgent is a command that does one thing to one agent.
func onAgent(c *term.App, use, short, example string,
	do func(context.Context, *control.Client, event.Agent) (any, string, error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " ID", Short: short, Example: example,
		Args: term.Words(0, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: term.Act(c, func(ctx context.Context, client *control.Client, args []string) (any, string, error) {
			a, err := client.Agent(ctx, args[0])
			if err != nil {
				return nil, "", term.About(err, "find agent", args[0])
			}
			result, said, err := do(ctx, client, a)

			return result, said, term.Wrap(err, "%s %s", use, a.Handle)
		}),
	}
}
