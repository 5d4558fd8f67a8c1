package main

import (
	"errors"
	"fmt"

	"daycare/engine/control"
	"daycare/engine/finding"

	"github.com/spf13/cobra"
)

func (c *cli) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "reload",
		Short:   "Make the daemon read its settings again",
		Long:    "Make the daemon read its settings again. It also does so by itself when the file is saved.",
		Example: "  daycare reload",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.daemon(cmd.Context())
			if err != nil {
				return err
			}
			found, err := client.Reload(cmd.Context())
			if c.json && !errors.Is(err, control.ErrNotRunning) {
				return errors.Join(c.printJSON(reloaded{err == nil, append([]finding.Finding{}, found...)}), err)
			}
			for _, f := range found {
				c.warn("%s", f)
			}
			if err != nil {
				return fmt.Errorf("reload settings: %w", err)
			}
			c.print("settings read again\n")
			return nil
		},
	}
}

type reloaded struct {
	Reloaded bool              `json:"reloaded"` // false: the last good settings stay in force
	Findings []finding.Finding `json:"findings"`
}
