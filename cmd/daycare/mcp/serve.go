package mcp

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/version"
	door "daycare/connectors/mcp"
	"daycare/engine/control"
	"daycare/engine/fault"
)

func serve(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Let an MCP client on this machine talk to agents (stdio)",
		Long: "Serve the Model Context Protocol on standard input and output, for a client that starts this\n" +
			"command, such as Claude Code, Claude Desktop or an editor. The client can talk only to the agents listed\n" +
			"in mcp.serve.agents in settings.yaml. The daemon must be running.",
		Example: "  daycare config set mcp.serve.agents '[\"0/\"]'\n" +
			"  claude mcp add daycare -- daycare --workspace \"$PWD\" mcp serve",
		Args: term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := c.Place()
			if err != nil {
				return err
			}
			offer := func() door.Offer {
				conf, err := c.Config()
				if err != nil {
					return door.Offer{}
				}
				return door.Offer{Agents: conf.MCP.Serve.Agents, Memory: conf.MCP.Serve.Memory}
			}
			if len(offer().Agents) == 0 {
				return &term.Problem{Code: fault.ExitFailure, Err: errors.New("no agents are offered to MCP clients"),
					Do: `name them: daycare config set mcp.serve.agents '["0/"]'`}
			}

			home := at.Data
			d := door.New(door.Options{Version: version.Number, Home: home, Offer: offer})
			return serveClient(cmd.Context(), c, d, door.Peer{Name: "stdio", API: control.Redial(home)})
		},
	}
}

// serveClient serves the client at the other end of stdin and stdout, until it goes or a signal comes.
func serveClient(ctx context.Context, c *term.App, d *door.Door, p door.Peer) error {
	return d.Serve(ctx, closer(c.In), output{c.Out}, p)
}

// closer is stdin, which the transport closes at the end.
func closer(r io.Reader) io.ReadCloser {
	if f, ok := r.(*os.File); ok {
		return f
	}
	return io.NopCloser(r)
}

// An output is stdout, which others may still write to after the client has gone.
type output struct{ io.Writer }

func (output) Close() error { return nil }
