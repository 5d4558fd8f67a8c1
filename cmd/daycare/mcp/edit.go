package mcp

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/fault"
)

// A draft is a server as the flags of add describe it.
type draft struct {
	url, dir             string
	env, headers         map[string]string
	read, write, network []string
	off                  bool
}

func add(c *term.App) *cobra.Command {
	var d draft
	cmd := &cobra.Command{
		Use:   "add ID [--url URL | -- COMMAND…]",
		Short: "Add an MCP server to the settings",
		Long: "Add an MCP server to settings.yaml: a program that daycare starts, or a service at an address.\n" +
			"A program runs in a sandbox: it can change its private folder, and reaches no network unless\n" +
			"you name hosts. Write ${NAME} for a secret (daycare auth set NAME). A running daemon picks it up.",
		Example: "  daycare mcp add files --dir . -- npx -y @modelcontextprotocol/server-filesystem .\n" +
			"  daycare mcp add hub --url https://mcp.example.com/mcp --header 'Authorization=Bearer ${hub}'",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && d.url == "" {
				return term.Usage(cmd, "name the program behind --, or the address with --url")
			}
			home, before, err := settings(c)
			if err != nil {
				return err
			}
			after, err := config.Append(before, d.entry(args[0], args[1:]), "mcp", "servers")
			if err != nil {
				return err
			}
			return save(cmd, c, home, before, after, "added "+args[0]+"; test it with: daycare mcp test "+args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&d.url, "url", "", "the address of a service")
	f.StringVar(&d.dir, "dir", "", "where the program starts, relative to the workspace; it can change this folder")
	f.StringToStringVar(&d.env, "env", nil, "a variable for the program, `NAME=VALUE`")
	f.StringToStringVar(&d.headers, "header", nil, "a header for the service, `NAME=VALUE`")
	f.StringSliceVar(&d.read, "read", nil, "a file or folder that the program can read")
	f.StringSliceVar(&d.write, "write", nil, "a file or folder that the program can change")
	f.StringSliceVar(&d.network, "network", nil, "a host that the program can reach")
	f.BoolVar(&d.off, "no-sandbox", false, "run the program without a sandbox: it can do whatever you can do")
	return cmd
}

// entry is the server as a line of settings.yaml.
func (d draft) entry(id string, argv []string) string {
	parts := []string{"id: " + strconv.Quote(id)}
	text := func(key, value string) {
		if value != "" {
			parts = append(parts, key+": "+strconv.Quote(value))
		}
	}
	if len(argv) > 0 {
		text("command", argv[0])
		parts = append(parts, list("args", argv[1:])...)
	}
	text("url", d.url)
	text("workingDir", d.dir)
	parts = append(append(parts, pairs("env", d.env)...), pairs("headers", d.headers)...)
	var sandbox []string
	if d.off {
		sandbox = append(sandbox, "off: true")
	}
	sandbox = append(append(append(sandbox, list("read", d.read)...), list("write", d.write)...), list("network", d.network)...)
	if len(sandbox) > 0 {
		parts = append(parts, "sandbox: { "+strings.Join(sandbox, ", ")+" }")
	}

	return strings.Join(parts, "\n")
}

func list(key string, values []string) []string {
	if len(values) == 0 {
		return nil
	}
	var quoted []string
	for _, v := range values {
		quoted = append(quoted, strconv.Quote(v))
	}

	return []string{key + ": [" + strings.Join(quoted, ", ") + "]"}
}

func pairs(key string, values map[string]string) []string {
	if len(values) == 0 {
		return nil
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, strconv.Quote(name)+": "+strconv.Quote(values[name]))
	}

	return []string{key + ": { " + strings.Join(all, ", ") + " }"}
}

func rm(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "rm ID",
		Short:   "Remove an MCP server from the settings",
		Long:    "Remove an MCP server from settings.yaml. Its pinned tools and its log stay in .daycare/mcp.",
		Example: "  daycare mcp rm files",
		Args:    term.Words(0, "the ID of an MCP server"), ValidArgsFunction: c.Complete(ids),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := known(c, args[0]); err != nil {
				return err
			}
			home, before, err := settings(c)
			if err != nil {
				return err
			}
			after, err := config.Remove(before, "mcp", "servers", args[0])
			if err != nil && ofProject(c, args[0]) {
				return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("%s is in %s", args[0], config.ProjectName),
					Do: "remove it there, then: daycare mcp trust " + config.ProjectName}
			}
			if err != nil {
				return err
			}
			return save(cmd, c, home, before, after, "removed "+args[0])
		},
	}
}

// settings are the .daycare folder and its settings.
func settings(c *term.App) (home string, before []byte, err error) {
	at, err := c.MadePlace()
	if err != nil {
		return "", nil, err
	}
	home = at.Data
	before, err = config.Text(home)
	return home, before, err
}

// save writes the settings if they are right, and says when they apply.
func save(cmd *cobra.Command, c *term.App, home string, before, after []byte, done string) error {
	_, found, err := config.LoadText(home, after, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil && len(found) == 0 {
		return err
	}
	saved, err := setup.SaveSettings(cmd.Context(), c, home, before, after, found)
	if err != nil {
		return fmt.Errorf("change settings.yaml: %w", err)
	}
	c.Note("%s; %s", done, saved.When)
	return nil
}
