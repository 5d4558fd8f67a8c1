package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/config"
	"daycare/engine/fault"
)

// A verifier is a connector whose messages are encrypted with keys that users can compare.
type verifier interface {
	Verify(ctx context.Context) (connectors.Verification, error)
}

// readOnly are the files of connectors, for a command beside the daemon.
type readOnly struct{ dir string }

func (r readOnly) Load(connector, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.dir, "connectors", connector, name))
}

func (readOnly) Save(string, string, []byte) error {
	return errors.New("a command writes nothing here")
}

func connectorsVerify(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify ID",
		Short: "Show the keys of encrypted chats, to compare them",
		Long: "Show the fingerprints of the device that daycare encrypts with and of the devices of all users who have\n" +
			"access. Compare them with what the other app shows. If a key differs, someone is intercepting the\n" +
			"conversation.",
		Example: "  daycare connectors verify matrix",
		Args:    term.Words(0, "the ID of a connector"), ValidArgsFunction: c.Complete(connectorIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := verification(cmd.Context(), c, args[0])
			if err != nil {
				return fmt.Errorf("verify connector %s: %w", args[0], err)
			}
			if c.JSON {
				return c.PrintJSON(v)
			}

			return showKeys(c, args[0], v)
		},
	}
}

func verification(ctx context.Context, c *term.App, id string) (connectors.Verification, error) {
	settings, err := connectorSettings(c)
	if err != nil {
		return connectors.Verification{}, err
	}
	at, err := c.MadePlace()
	if err != nil {
		return connectors.Verification{}, err
	}
	s, ok := settings.Connector(id)
	if !ok {
		return connectors.Verification{}, &term.Problem{Code: fault.ExitNotFound, Err: fmt.Errorf("the settings have no connector %q", id),
			Do: "see: daycare connectors ls"}
	}
	host := chat.Host{Waiting: readOnly{at.Data}}
	conn, err := plugins.NewConnector(plugins.NewVault(func() *config.Config { return settings }), s, host,
		slog.New(slog.DiscardHandler))
	if err != nil {
		return connectors.Verification{}, err
	}
	one, ok := conn.(verifier)
	if !ok {
		return connectors.Verification{}, fmt.Errorf("a %s has no device keys to compare", s.Type)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()

	return one.Verify(ctx)
}

// spaced is a fingerprint in groups of four, as other apps show it.
func spaced(fingerprint string) string {
	var groups []string
	for g := range slices.Chunk([]byte(fingerprint), 4) {
		groups = append(groups, string(g))
	}

	return strings.Join(groups, " ")
}

func showKeys(c *term.App, id string, v connectors.Verification) error {
	c.Print("%s: %s, device %s\nfingerprint: %s\n", id, v.User, v.Device, spaced(v.Fingerprint))
	if !v.Published {
		c.Print("WARNING: the homeserver shows other users a different key for this device, or none.\n" +
			"Do not use encrypted rooms until you know why.\n")
	}
	c.Print("\n")
	var t term.Table
	t.Row("USER", "DEVICE", "NAME", "READ", "FINGERPRINT")
	for _, d := range v.Others {
		read := "yes"
		if !d.Read {
			read = "no"
		}
		t.Row(d.User, d.Device, d.Name, read, spaced(d.Fingerprint))
	}
	if err := t.Write(c.Out, c.OutStyle()); err != nil {
		return err
	}
	c.Print("\nCompare each with what the app shows there. To read only devices that you compared, list their fingerprints\n" +
		"in the settings of the connector, under verified.\n")

	return nil
}
