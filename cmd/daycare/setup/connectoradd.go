package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/config"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

func connectorsAdd(c *term.App) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add TYPE",
		Short: "Set up a connector: ask for its token, test it, and give you access",
		Long: "Set up a connector. On a terminal it asks for the token and other settings of the platform,\n" +
			"tests it, waits for your first message, asks whether that is you, and writes the entry to\n" +
			"settings.yaml; the token goes to auth.json. If the test fails, you see why and nothing is saved.\n" +
			"A running daemon starts the connector at once. Without a terminal, use flags.\n" +
			"TYPE is one of " + strings.Join(addable(), ", ") + ".",
		Example: "  daycare connectors add telegram\n" +
			"  daycare connectors add telegram --token-from-env BOT_TOKEN --allow 5550001\n" +
			"  daycare connectors add slack --token-file bot.txt --token-file app=app.txt --allow U024BE7LH\n" +
			"  daycare connectors add irc --set server=irc.libera.chat:6697 --set nick=mybot --allow ada",
		Args: term.Words(0, "a TYPE: "+strings.Join(addable(), ", ")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return addable(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			home := at.Data
			a, err := f.addition(cmd, c, home, args[0])
			if err != nil {
				return err
			}

			return a.run(cmd.Context(), c)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "your name for it (default: the TYPE)")
	flags.StringArrayVar(&f.set, "set", nil, "another setting, as `KEY=VALUE`; repeatable")
	flags.StringArrayVar(&f.fromEnv, "token-from-env", nil,
		"environment variable with the token, `NAME`, or app=NAME for a second token; read at every start")
	flags.StringArrayVar(&f.fromFile, "token-file", nil,
		"file with the token, `FILE`, or app=FILE for a second token; - is stdin; saved in auth.json")
	flags.StringArrayVar(&f.allow, "allow", nil, "`ID` of a user who has access; repeatable")

	return cmd
}

// addable are the types that can be set up by questions.
func addable() (types []string) {
	for _, name := range plugins.ConnectorTypes {
		if k, _ := plugins.ConnectorKind(name); k.Setup != nil {
			types = append(types, name)
		}
	}

	return types
}

// An addition is a connector that is being added.
type addition struct {
	home    string
	kind    connectors.Kind
	id      string
	values  []value                  // of the entry beside id, type and allow
	secrets map[string]config.Secret // by id, for auth.json
	allow   []string
	knocks  chan chat.Stranger // who wrote to it while it was tried
}

// A value is one line of an entry.
type value struct{ key, yaml string }

func (a *addition) has(key string) bool {
	for _, v := range a.values {
		if v.key == key {
			return true
		}
	}

	return false
}

// entry is the connector as text of settings.yaml.
func (a *addition) entry() string {
	text := "id: " + strconv.Quote(a.id) + "\ntype: " + a.kind.Type + "\n"
	for _, v := range a.values {
		text += v.key + ": " + v.yaml + "\n"
	}
	var ids []string
	for _, id := range a.allow {
		ids = append(ids, strconv.Quote(id))
	}

	return text + "allow: [" + strings.Join(ids, ", ") + "]\n"
}

// settings are those of the workspace as they are now, and with the connector.
func (a *addition) settings() (before, after []byte, conf *config.Config, found []finding.Finding, err error) {
	if before, err = config.Text(a.home); err != nil {
		return nil, nil, nil, nil, err
	}
	if after, err = config.Append(before, a.entry(), "connectors"); err != nil {
		return nil, nil, nil, nil, err
	}
	conf, found, err = config.LoadText(a.home, after, os.LookupEnv, plugins.ConnectorChecks...)

	return before, after, conf, found, err
}

// run asks for what is missing, tests the connector, finds out who may write to it, and
// saves it.
func (a *addition) run(ctx context.Context, c *term.App) error {
	conn, verdict, err := a.tried(ctx, c)
	if err != nil {
		return err
	}
	c.Note("%s", verdict)
	var met chat.Stranger
	switch {
	case len(a.allow) > 0 || a.has("pairing") && !c.Asks():
	case a.kind.Setup.Person != "":
		id, err := answer(c, a.kind.Setup.Person, false)
		if err != nil {
			return err
		}
		a.allow = []string{id}
	default:
		if met, err = a.meet(ctx, c, conn); err != nil {
			return err
		}
		a.allow = []string{met.From.UserID}
	}

	saved, err := a.save(ctx, c)
	if err != nil {
		return err
	}
	a.greet(ctx, conn, met)

	return a.report(c, verdict, saved)
}

// tried makes the connector and asks its platform. On a terminal it asks again for what does
// not work.
func (a *addition) tried(ctx context.Context, c *term.App) (connectors.Connector, string, error) {
	for again := false; ; again = true {
		if err := a.ask(c, again); err != nil {
			return nil, "", err
		}
		conn, err := a.connector()
		var verdict string
		if err == nil {
			c.Note("testing …")
			verdict, err = verdictOf(ctx, conn, a.kind.Type)
		}
		if err == nil {
			return conn, verdict, nil
		}

		err = &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("%w\nnothing was saved", err)}
		if ctx.Err() != nil || !c.Asks() {
			return nil, "", err
		}
		c.Report(err)
		if !c.Agrees("Try again?") {
			return nil, "", term.ErrSilent
		}
	}
}

// connector is what would run with the settings as they would be.
func (a *addition) connector() (connectors.Connector, error) {
	_, _, conf, _, err := a.settings()
	if err != nil {
		return nil, err
	}
	s, _ := conf.Connector(a.id)
	vault := plugins.NewVault(func() *config.Config { return conf.WithSecrets(a.secrets) })

	return plugins.NewConnector(vault, s, chat.Host{Household: chat.Household{Admission: a}}, slog.New(slog.DiscardHandler))
}

// save writes the secrets and the entry, or neither.
func (a *addition) save(ctx context.Context, c *term.App) (Saved, error) {
	c.TakeSignals() // from here on it is done in a moment, and as a whole
	undo := func() error { return nil }
	if len(a.secrets) > 0 {
		var err error
		if undo, err = config.KeepSecrets(a.home, a.secrets); err != nil {
			return Saved{}, fmt.Errorf("save the token: %w", err)
		}
	}

	before, after, _, found, err := a.settings()
	var saved Saved
	if err == nil {
		saved, err = SaveSettings(ctx, c, a.home, before, after, found)
	}
	if err != nil && !saved.Running {
		return saved, errors.Join(err, undo())
	}

	return saved, err
}

// report prints the result.
func (a *addition) report(c *term.App, verdict string, saved Saved) error {
	for _, f := range saved.Found {
		if f.ID == "settings-connector" {
			c.Warn("%s", f)
		}
	}

	if c.JSON {
		return c.PrintJSON(struct {
			ID      string   `json:"id"`
			Type    string   `json:"type"`
			Allow   []string `json:"allow"`
			Verdict string   `json:"verdict"`
			When    string   `json:"when"`
		}{a.id, a.kind.Type, append([]string{}, a.allow...), verdict, saved.When})
	}

	who := "nobody has access yet"
	if len(a.allow) > 0 {
		who = "access for " + strings.Join(a.allow, ", ")
	}
	c.Print("added %s: %s\n", a.id, who)
	if c.Note("%s", saved.When); !saved.Running {
		c.Note("start it with: daycare start --background")
	}

	return nil
}
