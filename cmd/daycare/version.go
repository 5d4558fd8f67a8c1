package main

import (
	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/version"
)

func versionCommand(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  daycare version --json",
		Args:    term.Words(0),
		RunE:    func(*cobra.Command, []string) error { return printVersion(c) },
	}
}

func printVersion(c *term.App) error {
	b := version.This()
	if c.JSON {
		return c.PrintJSON(b)
	}
	c.Print("%s\n", b)

	return nil
}
