package commands

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// Tools lists the tools that agents can have.
func Tools(c *term.App) *cobra.Command {
	return term.Group("tools", "The tools that agents can have", "  daycare tools ls", toolsLs(c))
}

func toolsLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the tools that agents can have",
		Example: "  daycare tools ls --json",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			tools, err := client.Tools(cmd.Context())
			if err != nil {
				return fmt.Errorf("list tools: %w", err)
			}
			if c.JSON {
				return c.PrintJSON(struct {
					Tools []control.ToolInfo `json:"tools"`
				}{append([]control.ToolInfo{}, tools...)})
			}
			var t term.Table
			t.Row("NAME", "AFTER A CRASH", "TOKENS", "DESCRIPTION")
			for _, tool := range tools {
				t.Row(tool.Name, tool.Replay, strconv.Itoa(tool.Tokens), term.OneLine(tool.Description, 80))
			}
			return t.Write(c.Out, c.OutStyle())
		},
	}
}
