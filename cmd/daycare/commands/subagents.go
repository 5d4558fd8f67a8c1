package commands

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// SubAgents lists the kinds of sub-agents that agents can start.
func SubAgents(c *term.App) *cobra.Command {
	return term.Group("subagents", "List the kinds of sub-agents", "  daycare subagents ls", subagentsLs(c))
}

func subagentsLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List active sub-agent definitions: built-in ones and those in .daycare/subagents",
		Example: "  daycare subagents ls --json",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[control.SubAgentInfo]{Key: "subagents", What: "sub-agents", Get: (*control.Client).SubAgents,
			Table: func(list []control.SubAgentInfo) (t term.Table, _ error) {
				t.Row("NAME", "FROM", "ROUNDS", "TOOLS", "DESCRIPTION")
				for _, s := range list {
					t.Row(s.Name, cmp.Or(s.File, "built in"), fmt.Sprint(s.MaxIterations), strings.Join(s.Tools, " "),
						term.OneLine(s.Description, 60))
				}

				return t, nil
			}}),
	}
}
