package commands

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

func configSet(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Change one setting",
		Long: "Change or add one value in settings.yaml; comments and everything else stay as they are.\n" +
			"VALUE is YAML on one line. An invalid value is rejected with the reason. A running daemon\n" +
			"applies it at once.",
		Example: "  daycare config set budget.perDay.usd 5\n  daycare config set connectors.telegram.allow '[\"5550001\"]'",
		Args:    term.Words(0, "a KEY", "a VALUE"), ValidArgsFunction: c.Complete(settingKeys),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := settingsHome(c)
			if err != nil {
				return err
			}
			keys := strings.Split(args[0], ".")
			if slices.Contains(keys, "") {
				return &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%q is not a key", args[0]),
					Do: "keys are names with dots between them, such as budget.perDay.usd"}
			}

			before, err := config.Text(home)
			if err != nil {
				return err
			}
			after, found, err := changedSettings(home, before, args[1], keys)
			if err != nil {
				return err
			}

			return saveSettings(cmd.Context(), c, home, before, after, found, args[0]+" is "+args[1])
		},
	}
}

// changedSettings is the settings with a value changed, and what is wrong with them. Text
// that is not as it should be for YAML, or for the setting, is put in quotes.
func changedSettings(home string, before []byte, value string, keys []string) (after []byte, found []finding.Finding, err error) {
	for _, v := range []string{value, strconv.Quote(value)} {
		text, setErr := config.Set(before, v, keys...)
		if setErr != nil {
			if after == nil {
				err = cmp.Or(err, setErr)
			}
			continue
		}

		conf, wrong, loadErr := config.LoadText(home, text, os.LookupEnv, plugins.ConnectorChecks...)
		if loadErr == nil && secret(conf, keys) {
			return nil, nil, &term.Problem{Code: fault.ExitUsage,
				Err: errors.New("a secret must not be an argument: other users of this machine could see it"),
				Do:  "save it with: daycare auth set " + keys[0]}
		}
		if after == nil || loadErr == nil {
			after, found, err = text, wrong, nil
		}
		if loadErr == nil {
			break
		}
	}

	return after, found, err
}

// secret reports a setting that must not be shown.
func secret(conf *config.Config, keys []string) bool {
	value, err := settingAt(conf.Masked(), strings.Join(keys, "."))
	return err == nil && value == config.NewSecret("x").String() && !slices.Contains(keys, "options")
}

// saveSettings writes settings that are right, and prints when they apply.
func saveSettings(ctx context.Context, c *term.App, home string, before, after []byte, found []finding.Finding, done string) error {
	saved, err := setup.SaveSettings(ctx, c, home, before, after, found)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(struct {
			Written bool   `json:"written"`
			When    string `json:"when"`
		}{true, saved.When})
	}

	c.Print("%s\n", done)
	c.Note("%s", saved.When)
	return nil
}

func configEdit(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "edit", Short: "Edit the settings, checked before they are saved",
		Long: "Edit a copy of settings.yaml in $EDITOR. When you save, daycare checks the copy and replaces the file\n" +
			"in one step. If there is a mistake, or the file has changed since you opened it, the file stays as it is.",
		Example: "  daycare config edit",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := settingsHome(c)
			if err != nil {
				return err
			}
			return editSettings(cmd.Context(), c, home)
		},
	}
}

func editSettings(ctx context.Context, c *term.App, home string) error {
	before, err := config.Text(home)
	if err != nil {
		return err
	}
	path, err := copyFor(config.Name, before)
	if err != nil {
		return err
	}

	for {
		after, err := edit(ctx, c, path)
		if errors.Is(err, errNoEditor) {
			removeCopy(path)
			return noEditor(filepath.Join(home, config.Name))
		}
		if err != nil {
			return fmt.Errorf("edit settings: %w; your copy is %s", err, path)
		}
		if bytes.Equal(before, after) {
			removeCopy(path)
			c.Note("no changes")
			return nil
		}

		_, found, _ := config.LoadText(home, after, os.LookupEnv, plugins.ConnectorChecks...) // found says what is wrong
		err = saveSettings(ctx, c, home, before, after, found, "saved "+config.Name)
		if err == nil {
			removeCopy(path)
			return nil
		}
		if !c.Asks() || !c.Yes("edit again? [Y/n] ") {
			return fmt.Errorf("%w; your copy is %s", err, path)
		}
	}
}
