package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/connectors/chat"
	"daycare/engine/config"
	"daycare/engine/event"
)

func (c *cli) connectorsCommand() *cobra.Command {
	return group("connectors", "The ways in which agents are reached beside this command line",
		"  daycare connectors ls\n  daycare connectors test telegram",
		c.connectorsLs(), c.connectorsTest())
}

func (c *cli) connectorsLs() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the connectors of the settings and how they do",
		Example: "  daycare connectors ls --json",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			s, err := client.Status(cmd.Context())
			if err != nil {
				return fmt.Errorf("list connectors: %w", err)
			}
			if c.json {
				return c.printJSON(struct {
					Connectors []event.Service `json:"connectors"`
				}{append([]event.Service{}, s.Connectors...)})
			}
			if len(s.Connectors) == 0 {
				c.note("there are no connectors in settings.yaml; docs/connectors says how to set one up")
				return nil
			}
			var t table
			t.row("ID", "TYPE", "STATE", "LAST ERROR")
			for _, k := range s.Connectors {
				t.row(k.ID, k.Type, string(k.State), oneLine(k.LastError, 80))
			}
			return t.write(c.stdout, c.data())
		},
	}
}

// A prober is a connector that can ask its platform who we are.
type prober interface {
	Probe(ctx context.Context) (verdict string, err error)
}

// probeTime bounds what connectors test may take.
const probeTime = 20 * time.Second

func (c *cli) connectorsTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test ID",
		Short: "Ask a connector's platform whether the settings and the secret are good",
		Long: "Ask the platform of a connector whether the settings and the secret are good. Nothing is\n" +
			"received and nothing is sent to anybody; a daemon may be running.",
		Example: "  daycare connectors test telegram",
		Args:    words(0, "the ID of a connector"), ValidArgsFunction: c.connectorIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			verdict, err := c.probe(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("test connector %s: %w", args[0], err)
			}
			if c.json {
				return c.printJSON(struct {
					ID      string `json:"id"`
					OK      bool   `json:"ok"`
					Verdict string `json:"verdict"`
				}{args[0], true, verdict})
			}
			c.print("%s: %s\n", args[0], clean(verdict))
			return nil
		},
	}
}

// probe makes the connector of the settings beside whatever runs, and asks.
func (c *cli) probe(ctx context.Context, id string) (string, error) {
	settings, err := c.settings()
	if err != nil {
		return "", err
	}
	s, ok := settings.Connector(id)
	if !ok {
		return "", &problem{code: exitNotFound, err: fmt.Errorf("the settings have no connector %q", id), do: "see: daycare connectors ls"}
	}
	conn, err := plugins.NewConnector(plugins.NewVault(func() *config.Config { return settings }), s, chat.Host{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	p, ok := conn.(prober)
	if !ok {
		return "the settings are good; there is nobody to ask for a " + s.Type, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return p.Probe(ctx)
}

// settings reads the settings of the workspace.
func (c *cli) settings() (*config.Config, error) {
	root, err := c.madeRoot()
	if err != nil {
		return nil, err
	}
	r, _, err := config.NewReloader(filepath.Join(root, home), os.LookupEnv, plugins.ConnectorTypes...)
	if err != nil {
		return nil, err
	}
	return r.Current(), nil
}

// connectorIDs completes the ids of connectors.
func (c *cli) connectorIDs(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	if settings, err := c.settings(); err == nil && len(args) == 0 {
		for _, k := range settings.Connectors {
			if strings.HasPrefix(k.ID, typed) {
				out = append(out, cobra.CompletionWithDesc(k.ID, k.Type))
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
