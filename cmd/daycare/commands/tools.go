package commands

import (
	"strconv"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// Tools lists the tools that agents can have.
func Tools(c *term.App) *cobra.Command {
	return term.Group("tools", "List the tools of agents", "  daycare tools ls", toolsLs(c))
}

func toolsLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the tools that agents can have",
		Example: "  daycare tools ls --json",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[control.ToolInfo]{Key: "tools", Get: (*control.Client).Tools,
			Table: func(tools []control.ToolInfo) (t term.Table, _ error) {
				t.Row("NAME", "AFTER A CRASH", "PROMPT", "TOKENS", "DESCRIPTION")
				for _, tool := range tools {
					t.Row(tool.Name, tool.Replay, tool.Prompt, strconv.Itoa(tool.Tokens), term.OneLine(tool.Description, 80))
				}
				return t, nil
			}}),
	}
}
