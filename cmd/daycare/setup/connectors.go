package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// Connectors is the group of commands that list the connectors of the settings, and try them.
func Connectors(c *term.App) *cobra.Command {
	return term.Group("connectors", "Add, list and test chat platforms and webhooks",
		"  daycare connectors add telegram\n  daycare connectors ls\n  daycare connectors test telegram",
		connectorsLs(c), connectorsAdd(c), connectorsPair(c), connectorsTest(c), connectorsVerify(c))
}

func connectorsLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List connectors and their state",
		Example: "  daycare connectors ls --json",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[event.Service]{Key: "connectors",
			None: "there are no connectors in settings.yaml; docs/connectors says how to set one up",
			Get: func(client *control.Client, ctx context.Context) ([]event.Service, error) {
				s, err := client.Status(ctx)
				return s.Connectors, err
			},
			Table: func(list []event.Service) (t term.Table, _ error) {
				t.Row("ID", "TYPE", "STATE", "SINCE", "NEXT TRY", "LAST ERROR")
				for _, k := range list {
					t.Row(k.ID, k.Type, k.State, clock(k.Since), clock(k.NextTry), term.Cause(k.LastError, 80))
				}
				return t, nil
			}}),
	}
}

// clock formats a time for a list, or returns "" without one.
func clock(at *time.Time) string {
	switch {
	case at == nil:
		return ""
	case time.Since(*at) < 12*time.Hour:
		return at.Local().Format("15:04:05")
	}

	return at.Local().Format("2006-01-02 15:04")
}

// A prober is a connector that can ask its platform who we are.
type prober interface {
	Probe(ctx context.Context) (verdict string, err error)
}

// Bounds of what connectors test may take: asking the platform, and sending a message to itself,
// which for a mail takes as long as mail servers do.
const (
	probeTime = 20 * time.Second
	loopTime  = 90 * time.Second
)

func connectorsTest(c *term.App) *cobra.Command {
	send := false
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Test a connector's settings and secret against its platform",
		Long: "Test the settings and the secret of a connector against its platform. It receives and sends nothing,\n" +
			"and works while the daemon is running. With --send, the account also sends one message to itself, reads it\n" +
			"and removes it, if the platform allows that.",
		Example: "  daycare connectors test telegram\n  daycare connectors test matrix --send",
		Args:    term.Words(0, "the ID of a connector"), ValidArgsFunction: c.Complete(connectorIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			verdict, err := probe(cmd.Context(), c, args[0], send)
			if err != nil {
				return fmt.Errorf("test connector %s: %w", args[0], err)
			}
			if c.JSON {
				return c.PrintJSON(ConnectorTrial{ID: args[0], OK: true, Verdict: verdict})
			}

			c.Print("%s: %s\n", args[0], verdict)
			return nil
		},
	}
	cmd.Flags().BoolVar(&send, "send", false, "also send a message to itself and read it")

	return cmd
}

// A ConnectorTrial is how a connector did.
type ConnectorTrial struct {
	ID      string `json:"id"`
	OK      bool   `json:"ok"`
	Verdict string `json:"verdict"` // what its platform said, or what is wrong
}

// TestConnector is daycare connectors test. An error is about the id.
func TestConnector(ctx context.Context, c *term.App, id string) (ConnectorTrial, error) {
	verdict, err := probe(ctx, c, id, false)
	if p, ok := errors.AsType[*term.Problem](err); ok && p.Code == fault.ExitNotFound {
		return ConnectorTrial{}, err
	}
	if err != nil {
		verdict = err.Error()
	}

	return ConnectorTrial{ID: id, OK: err == nil, Verdict: verdict}, nil
}

// probe makes the connector of the settings beside whatever runs, and asks.
func probe(ctx context.Context, c *term.App, id string, send bool) (string, error) {
	settings, err := connectorSettings(c)
	if err != nil {
		return "", err
	}
	s, ok := settings.Connector(id)
	if !ok {
		return "", &term.Problem{Code: fault.ExitNotFound, Err: fmt.Errorf("the settings have no connector %q", id),
			Do: "see: daycare connectors ls"}
	}

	conn, err := plugins.NewConnector(plugins.NewVault(func() *config.Config { return settings }), s, chat.Host{},
		slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}

	verdict, err := verdictOf(ctx, conn, s.Type)
	if err == nil && send {
		var loop string
		loop, err = loopOf(ctx, conn, s.Type)
		verdict += "; " + loop
	}
	if err == nil && len(s.Allow) == 0 && !slices.Contains([]string{"webhook", "openai", "a2a"}, s.Type) {
		verdict += "; nobody can message an agent there until you add them to allow"
	}

	return verdict, err
}

// verdictOf asks the platform of a connector.
func verdictOf(ctx context.Context, conn connectors.Connector, kind string) (string, error) {
	p, ok := conn.(prober)
	if !ok {
		return "the settings are valid; there is no platform to ask for a " + kind, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()

	return p.Probe(ctx)
}

// A looper is a connector whose account can send a message to itself.
type looper interface {
	Loop(ctx context.Context) (verdict string, err error)
}

// loopOf has the account of a connector send a message to itself.
func loopOf(ctx context.Context, conn connectors.Connector, kind string) (string, error) {
	l, ok := conn.(looper)
	if !ok {
		return "no message was sent: on " + kind + " an account cannot send messages to itself", nil
	}
	ctx, cancel := context.WithTimeout(ctx, loopTime)
	defer cancel()

	return l.Loop(ctx)
}

// connectorSettings reads the settings of the workspace.
func connectorSettings(c *term.App) (*config.Config, error) {
	at, err := c.MadePlace()
	if err != nil {
		return nil, err
	}
	r, _, err := config.NewReloader(at.Data, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		return nil, err
	}

	return r.Current(), nil
}

// connectorIDs completes the ids of connectors.
func connectorIDs(c *term.App, _ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	if settings, err := connectorSettings(c); err == nil && len(args) == 0 {
		for _, k := range settings.Connectors {
			if strings.HasPrefix(k.ID, typed) {
				out = append(out, cobra.CompletionWithDesc(k.ID, k.Type))
			}
		}
	}

	return out, cobra.ShellCompDirectiveNoFileComp
}
