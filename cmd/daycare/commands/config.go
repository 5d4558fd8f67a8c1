package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/config"
)

// Config is the group of commands that read and change settings.yaml.
func Config(c *term.App) *cobra.Command {
	return term.Group("config", "Read and change the settings",
		"  daycare config get budget\n  daycare config set budget.perDay.usd 5\n  daycare config edit",
		configGet(c), configSet(c), configPath(c), configEdit(c))
}

func configPath(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "path", Short: "Print the path of the settings",
		Example: "  daycare config path",
		Args:    term.Words(0),
		RunE: func(*cobra.Command, []string) error {
			home, err := settingsHome(c)
			if err != nil {
				return err
			}
			path := filepath.Join(home, config.Name)
			if c.JSON {
				return c.PrintJSON(struct {
					Path   string `json:"path"`
					Exists bool   `json:"exists"`
				}{path, term.Exists(path)})
			}

			c.Print("%s\n", path)
			return nil
		},
	}
}

// settingsHome is the .daycare that the settings are in.
func settingsHome(c *term.App) (string, error) {
	at, err := c.MadePlace()
	return at.Data, err
}

func configGet(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "get [KEY]", Short: "Print the effective value of a setting, or of all settings",
		Long: "Print the effective value of a setting, including defaults and what the environment sets. KEY is the\n" +
			"path from the top, with dots; an entry of a list is named by its id. Secrets are not shown.",
		Example: "  daycare config get agents.queue\n  daycare config get providers.claude.model\n  daycare config get --json",
		Args:    term.Words(1), ValidArgsFunction: c.Complete(settingKeys),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := settingsInForce(c, cmd)
			if err != nil {
				return err
			}
			value := all
			if len(args) > 0 {
				if value, err = settingAt(all, args[0]); err != nil {
					return err
				}
			}
			if c.JSON {
				return c.PrintJSON(value)
			}

			return printSetting(c, value)
		},
	}
}

// settingsInForce asks the daemon, or without one reads the files as a daemon would.
func settingsInForce(c *term.App, cmd *cobra.Command) (all any, err error) {
	client, err := c.Reader(cmd.Context())
	if err != nil {
		return nil, err
	}
	raw, err := client.Config(cmd.Context())
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}

	return all, nil
}

// settingAt is the part of the settings that a key leads to.
func settingAt(all any, key string) (any, error) {
	at := all
	var path []string
	for _, name := range strings.Split(key, ".") {
		next, there := below(at)[name]
		if !there {
			do := "see: daycare config get " + strings.Join(path, ".")
			if names := keysOf(at); len(names) > 0 {
				do = "there are: " + strings.Join(names, ", ")
			}
			return nil, term.NotFound(strings.TrimSpace(do), "unknown setting %q", strings.Join(append(path, name), "."))
		}
		at, path = next, append(path, name)
	}

	return at, nil
}

// below is what a part of the settings holds, by name: entries of lists by their id.
func below(at any) map[string]any {
	switch at := at.(type) {
	case map[string]any:
		return at
	case []any:
		named := map[string]any{}
		for i, e := range at {
			if m, ok := e.(map[string]any); ok {
				if id, ok := m["id"].(string); ok {
					named[id] = e
					continue
				}
			}
			named[fmt.Sprint(i)] = e
		}
		return named
	}

	return nil
}

func keysOf(at any) (names []string) {
	for name := range below(at) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// printSetting prints single values as they are and all else as YAML.
func printSetting(c *term.App, value any) error {
	switch value.(type) {
	case map[string]any, []any:
	case nil:
		c.Print("\n")
		return nil
	default:
		c.Print("%v\n", value)
		return nil
	}

	text, err := config.YAML(value)
	if err != nil {
		return fmt.Errorf("print settings: %w", err)
	}
	c.Print("%s", text)

	return nil
}

// settingKeys completes keys, one name after the other.
func settingKeys(c *term.App, cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	at, err := c.Place()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	conf, _, err := config.Load(at.Data, os.LookupEnv)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // what is wrong is not said while a line is typed
	}

	values, before := conf.Masked(), ""
	if dot := strings.LastIndexByte(typed, '.'); dot >= 0 {
		if values, err = settingAt(values, typed[:dot]); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		before = typed[:dot+1]
	}

	var keys []cobra.Completion
	for _, name := range keysOf(values) {
		keys = append(keys, before+name)
	}

	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
