package main

import (
	"github.com/spf13/cobra"

	"daycare/cmd/daycare/version"
)

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  daycare version --json",
		Args:    words(0),
		RunE: func(*cobra.Command, []string) error {
			b := version.This()
			if c.json {
				return c.printJSON(b)
			}
			c.print("%s\n", b)
			return nil
		},
	}
}
