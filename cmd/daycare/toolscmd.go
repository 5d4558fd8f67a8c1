package main

import (
	"fmt"
	"strconv"

	"daycare/engine/control"

	"github.com/spf13/cobra"
)

func (c *cli) toolsCommand() *cobra.Command {
	return group("tools", "The tools that agents can have", "  daycare tools ls", c.toolsLs())
}

func (c *cli) toolsLs() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the tools that agents can have",
		Example: "  daycare tools ls --json",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			tools, err := client.Tools(cmd.Context())
			if err != nil {
				return fmt.Errorf("list tools: %w", err)
			}
			if c.json {
				return c.printJSON(struct {
					Tools []control.ToolInfo `json:"tools"`
				}{append([]control.ToolInfo{}, tools...)})
			}
			var t table
			t.row("NAME", "AFTER A CRASH", "TOKENS", "DESCRIPTION")
			for _, tool := range tools {
				t.row(tool.Name, tool.Replay, strconv.Itoa(tool.Tokens), oneLine(tool.Description, 80))
			}
			return t.write(c.stdout, c.data())
		},
	}
}
