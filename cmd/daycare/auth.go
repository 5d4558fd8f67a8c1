package main

import (
	"daycare/engine/workspace"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"daycare/engine/config"
	"daycare/engine/disk"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (c *cli) authCommand() *cobra.Command {
	return group("auth", "Manage secrets (keys of model services, tokens of connectors) and tokens of the API",
		"  daycare auth set telegram\n  daycare auth ls",
		c.authSet(), c.authLs(), c.authRm(), authToken(c))
}

func (c *cli) authSet() *cobra.Command {
	return &cobra.Command{
		Use:   "set ID",
		Short: "Keep a secret in auth.json; it is read from the terminal or stdin",
		Long: "Keep a secret in .daycare/auth.json, which is readable by you alone. ID is the id of\n" +
			"the provider or connector that needs it. The secret is typed without being shown, or\n" +
			"read from stdin; never an argument, which other users of the machine could see.\n" +
			"An environment variable wins over the file.",
		Example: "  daycare auth set claude\n  pass show claude | daycare auth set claude",
		Args:    words(-1, "the ID of the secret"), ValidArgsFunction: c.secretIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "the secret is not an argument: it is read from the terminal or stdin")
			}
			root, err := c.madeRoot()
			if err != nil {
				return err
			}
			secret, err := c.readSecret(args[0])
			if err != nil {
				return err
			}
			if err := config.SetSecret(filepath.Join(root, home), args[0], secret); err != nil {
				return fmt.Errorf("keep the secret %s: %w", args[0], err)
			}
			return c.secretKept(root, args[0])
		},
	}
}

// maxSecret bounds what is read from stdin, in bytes.
const maxSecret = 64 << 10

// readSecret asks for a secret, or reads all of stdin.
func (c *cli) readSecret(id string) (config.Secret, error) {
	text := ""
	var err error
	switch {
	case isTerminal(c.stdin) && c.noInput:
		return config.Secret{}, &problem{code: exitUsage, err: errors.New("there is nobody to type the secret"),
			do: "pipe it into the command"}
	case isTerminal(c.stdin):
		text, err = c.hidden("Secret for " + id + " (not shown)")
	default:
		var data []byte
		data, err = io.ReadAll(io.LimitReader(c.stdin, maxSecret+1))
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
		return config.Secret{}, &problem{code: exitUsage, err: errors.New("the secret must be one line of text that is not empty")}
	}
	return config.NewSecret(text), nil
}

// hidden asks on the terminal for a line that is not shown. Whatever ends the program
// meanwhile leaves a terminal behind that shows what is typed.
func (c *cli) hidden(prompt string) (string, error) {
	f, ok := c.stdin.(*os.File)
	if !ok {
		return "", errors.New("there is no terminal")
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", err
	}
	restore := func() {
		_ = term.Restore(int(f.Fd()), before) // the program ends; nobody is left to be told
		fmt.Fprintln(c.stderr)
	}
	c.leaving.Store(&restore)
	defer c.leaving.Store(nil)
	fmt.Fprint(c.stderr, prompt+": ")
	data, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(c.stderr)
	if errors.Is(err, io.EOF) {
		err = errInterrupted
	}
	return string(data), err
}

// secretKept says what becomes of it: whether a variable hides it, and that a
// running daemon has to be told.
func (c *cli) secretKept(root, id string) error {
	s := config.SecretSource{ID: id, Source: config.AuthName, File: true}
	conf, err := c.config()
	if err != nil {
		return err
	}
	for _, known := range conf.SecretSources() {
		if known.ID == id {
			s = known
		}
	}
	if c.json {
		return c.printJSON(s)
	}
	c.print("kept %s in %s\n", id, filepath.Join(root, home, config.AuthName))
	if s.Source != config.AuthName {
		c.warn("it is not used as long as %s is set: the environment wins", s.Source)
	}
	if disk.Held(workspace.Lock(root)) {
		c.note("a running daemon uses it from its next request on")
	}
	return nil
}

func (c *cli) authLs() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the secrets and where each comes from, never what they are",
		Example: "  daycare auth ls --json",
		Args:    words(0),
		RunE: func(*cobra.Command, []string) error {
			if _, err := c.madeRoot(); err != nil {
				return err
			}
			conf, err := c.config()
			if err != nil {
				return err
			}
			list := conf.SecretSources()
			if c.json {
				return c.printJSON(struct {
					Secrets []config.SecretSource `json:"secrets"`
				}{list})
			}
			if len(list) == 0 {
				c.note("no secrets are kept or asked for; keep one with: daycare auth set ID")
				return nil
			}
			var t table
			t.row("ID", "FROM", "USED BY")
			for _, s := range list {
				t.row(s.ID, secretFrom(s), strings.Join(s.UsedBy, ", "))
			}
			return t.write(c.stdout, c.data())
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
		return s.Source + " (wins over " + config.AuthName + ")"
	}
	return s.Source
}

func (c *cli) authRm() *cobra.Command {
	return &cobra.Command{
		Use:     "rm ID",
		Aliases: []string{"remove"},
		Short:   "Remove a secret from auth.json",
		Example: "  daycare auth rm telegram",
		Args:    words(0, "the ID of the secret"), ValidArgsFunction: c.secretIDs,
		RunE: func(_ *cobra.Command, args []string) error {
			root, err := c.madeRoot()
			if err != nil {
				return err
			}
			err = config.RemoveSecret(filepath.Join(root, home), args[0])
			if errors.Is(err, config.ErrNoSecret) {
				return notFound("list them with: daycare auth ls", "there is no secret %q in %s", args[0], config.AuthName)
			}
			if err != nil {
				return fmt.Errorf("remove the secret %s: %w", args[0], err)
			}
			if c.json {
				return c.printJSON(struct {
					Removed string `json:"removed"`
				}{args[0]})
			}
			c.print("removed %s\n", args[0])
			return nil
		},
	}
}

// secretIDs completes the ids of secrets.
func (c *cli) secretIDs(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	conf, err := c.config()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []cobra.Completion
	for _, s := range conf.SecretSources() {
		ids = append(ids, s.ID)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
