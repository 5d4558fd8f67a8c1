package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/commands"
	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/version"
	"daycare/connectors/acp"
	"daycare/engine/control"
)

// acpCommand serves an editor. Standard output belongs to the protocol: whatever else there is to
// say goes to standard error.
func acpCommand(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "acp",
		Short: "Serve an editor over the Agent Client Protocol (on stdin and stdout)",
		Long: "Let an editor talk to agents over the Agent Client Protocol. Editors start this command;\n" +
			"docs/acp.md has the settings of Zed, JetBrains, Neovim and Emacs. Joins the daemon of the\n" +
			"workspace, or starts it. Agents continue when the editor closes.",
		Example: "  daycare --workspace ~/project acp",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := c.Place()
			if err != nil {
				return err
			}
			dial := func(context.Context) (*control.Client, error) { return term.DialQuietly(at, func(string) {}) }
			connect := func(ctx context.Context) (*control.Client, error) {
				if err := setup.EnsureHome(c, at); err != nil {
					return nil, err
				}
				if err := commands.EnsureDaemon(ctx, c, at); err != nil {
					return nil, err
				}
				return dial(ctx)
			}

			return acp.Run(cmd.Context(), acp.Options{Workspace: at.Dir, Version: version.Number, Connect: connect, Dial: dial,
				Left: func() bool { return control.SocketLeft(at.Data) }, Log: slog.New(slog.NewTextHandler(c.Err, nil))}, c.In, c.Out)
		},
	}
}
