package commands

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// Reload makes the daemon read its settings again, and prints what is wrong with them.
func Reload(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Make the daemon reload its settings",
		Long: "Make the daemon reload its settings. It also does so whenever the file is saved.\n" +
			"The exit code is 1 if the settings are invalid, or a connector does not run as configured.",
		Example: "  daycare reload",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Daemon(cmd.Context())
			if err != nil {
				return err
			}
			found, err := client.Reload(cmd.Context())
			if c.JSON && !errors.Is(err, control.ErrNotRunning) {
				return errors.Join(c.PrintJSON(reloaded{err == nil, append([]finding.Finding{}, found...)}), err, off(found))
			}

			for _, f := range found {
				c.Warn("%s", f)
			}
			if err != nil {
				return fmt.Errorf("reload settings: %w", err)
			}

			c.Print("settings reloaded\n")
			return off(found)
		},
	}
}

// off is an error for connectors that do not run as the settings say.
func off(found []finding.Finding) error {
	n := 0
	for _, f := range found {
		if f.ID == "settings-connector" {
			n++
		}
	}

	if n == 0 {
		return nil
	}

	return &term.Problem{Code: fault.ExitFailure,
		Err: fmt.Errorf("%s not run as configured", term.Plural(n, "connector does", "connectors do")),
		Do:  "see their state with: daycare connectors ls"}
}

type reloaded struct {
	Reloaded bool              `json:"reloaded"` // false: the last good settings stay active
	Findings []finding.Finding `json:"findings"`
}
