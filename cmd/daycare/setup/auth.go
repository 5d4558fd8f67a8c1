package setup

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// Auth is the group of commands that keep secrets of providers and connectors, and tokens of the API.
func Auth(c *term.App) *cobra.Command {
	return term.Group("auth", "Manage secrets (keys of model services, tokens of connectors) and tokens of the API",
		"  daycare auth set telegram\n  daycare auth ls",
		authSet(c), authLs(c), authRm(c), authToken(c))
}

func authSet(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "set ID",
		Short: "Save a secret in auth.json, read from the terminal or stdin",
		Long: "Save a secret in .daycare/auth.json, which only you can read. ID is the id of the\n" +
			"provider or connector that needs it. Type the secret, which is not shown, or pipe it to stdin. It is\n" +
			"never an argument, because other users of the machine can see arguments.\n" +
			"An environment variable takes precedence over the file.",
		Example: "  daycare auth set claude\n  pass show claude | daycare auth set claude",
		Args:    term.Words(-1, "the ID of the secret"), ValidArgsFunction: c.Complete(secretIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return term.Usage(cmd, "the secret is not an argument: it is read from the terminal or stdin")
			}
			at, err := c.MadePlace()
			if err != nil {
				return err
			}

			secret, err := readSecret(c, args[0])
			if err != nil {
				return err
			}
			if err := config.SetSecret(at.Data, args[0], secret); err != nil {
				return fmt.Errorf("save the secret %s: %w", args[0], err)
			}

			return secretKept(c, at, args[0])
		},
	}
}

// maxSecret bounds what is read from stdin, in bytes.
const maxSecret = 64 << 10

// readSecret asks for a secret, or reads all of stdin.
func readSecret(c *term.App, id string) (config.Secret, error) {
	text := ""
	var err error
	switch {
	case term.IsTerminal(c.In) && c.NoInput:
		return config.Secret{}, &term.Problem{Code: fault.ExitUsage, Err: errors.New("cannot prompt for the secret: not a terminal"),
			Do: "pipe the secret into the command"}
	case term.IsTerminal(c.In):
		text, err = c.Hidden("Secret for " + id + " (not shown)")
	default:
		var data []byte
		data, err = io.ReadAll(io.LimitReader(c.In, maxSecret+1))
		text = string(data)
	}

	if err != nil {
		return config.Secret{}, fmt.Errorf("read the secret: %w", err)
	}

	return asSecret(text)
}

// asSecret is a text as a secret.
func asSecret(text string) (config.Secret, error) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxSecret || strings.ContainsAny(text, "\n\x00") {
		return config.Secret{}, &term.Problem{Code: fault.ExitUsage,
			Err: errors.New("the secret must be a single non-empty line")}
	}

	return config.NewSecret(text), nil
}

// secretKept says what becomes of it: whether a variable hides it, and that a
// running daemon has to be notified.
func secretKept(c *term.App, at workspace.Place, id string) error {
	s := config.SecretSource{ID: id, Source: config.AuthName, File: true}
	conf, err := c.Config()
	if err != nil {
		return err
	}

	for _, known := range conf.SecretSources() {
		if known.ID == id {
			s = known
		}
	}

	if c.JSON {
		return c.PrintJSON(s)
	}

	c.Print("saved %s in %s\n", id, filepath.Join(at.Data, config.AuthName))
	if s.Source != config.AuthName {
		c.Warn("it is not used while %s is set: the environment takes precedence", s.Source)
	}
	if disk.Held(at.Lock()) {
		c.Note("a running daemon uses it from the next request on")
	}

	return nil
}

func authLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List secrets and where each comes from, never their values",
		Example: "  daycare auth ls --json",
		Args:    term.Words(0),
		RunE: func(*cobra.Command, []string) error {
			if _, err := c.MadePlace(); err != nil {
				return err
			}
			conf, err := c.Config()
			if err != nil {
				return err
			}

			return term.Listing[config.SecretSource]{Key: "secrets", None: "no secrets; save one with: daycare auth set ID",
				Table: func(list []config.SecretSource) (t term.Table, _ error) {
					t.Row("ID", "FROM", "USED BY")
					for _, s := range list {
						t.Row(s.ID, secretFrom(s), strings.Join(s.UsedBy, ", "))
					}
					return t, nil
				}}.Show(c, conf.SecretSources())
		},
	}
}

func secretFrom(s config.SecretSource) string {
	switch {
	case s.Missing():
		return "missing"
	case s.Source == config.AuthName:
		return s.Source
	case s.File:
		return s.Source + " (overrides " + config.AuthName + ")"
	}

	return s.Source
}

func authRm(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "rm ID",
		Short:   "Remove a secret from auth.json",
		Example: "  daycare auth rm telegram",
		Args:    term.Words(0, "the ID of the secret"), ValidArgsFunction: c.Complete(secretIDs),
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			err = config.RemoveSecret(at.Data, args[0])
			if errors.Is(err, config.ErrNoSecret) {
				return term.NotFound("list them with: daycare auth ls", "there is no secret %q in %s", args[0], config.AuthName)
			}
			if err != nil {
				return fmt.Errorf("remove the secret %s: %w", args[0], err)
			}
			if c.JSON {
				return c.PrintJSON(struct {
					Removed string `json:"removed"`
				}{args[0]})
			}

			c.Print("removed %s\n", args[0])
			return nil
		},
	}
}

// secretIDs completes the ids of secrets.
func secretIDs(c *term.App, _ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	conf, err := c.Config()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []cobra.Completion
	for _, s := range conf.SecretSources() {
		ids = append(ids, s.ID)
	}

	return ids, cobra.ShellCompDirectiveNoFileComp
}
