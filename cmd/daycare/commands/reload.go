package commands

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/finding"
)

// Reload makes the daemon read its settings again, and prints what is wrong with them.
func Reload(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "reload",
		Short:   "Make the daemon read its settings again",
		Long:    "Make the daemon read its settings again. It also does so by itself when the file is saved.",
		Example: "  daycare reload",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Daemon(cmd.Context())
			if err != nil {
				return err
			}
			found, err := client.Reload(cmd.Context())
			if c.JSON && !errors.Is(err, control.ErrNotRunning) {
				return errors.Join(c.PrintJSON(reloaded{err == nil, append([]finding.Finding{}, found...)}), err)
			}
			for _, f := range found {
				c.Warn("%s", f)
			}
			if err != nil {
				return fmt.Errorf("reload settings: %w", err)
			}
			c.Print("settings read again\n")
			return nil
		},
	}
}

type reloaded struct {
	Reloaded bool              `json:"reloaded"` // false: the last good settings stay in force
	Findings []finding.Finding `json:"findings"`
}
