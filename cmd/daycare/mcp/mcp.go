package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/tools/mcp"
)

// Command is the group of commands about MCP servers.
func Command(c *term.App) *cobra.Command {
	return term.Group("mcp", "Add, list and test MCP servers",
		"  daycare mcp add files -- npx -y @modelcontextprotocol/server-filesystem .\n  daycare mcp ls\n  daycare mcp test files",
		ls(c), add(c), rm(c), test(c), login(c), trust(c), logs(c), serve(c))
}

func ls(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List MCP servers, their state and tools",
		Example: "  daycare mcp ls --json",
		Args:    term.Words(0),
		PreRun:  func(*cobra.Command, []string) { warnOfProject(c) },
		RunE: term.List(c, term.Listing[event.Service]{Key: "servers", What: "MCP servers",
			None: "there are no MCP servers in settings.yaml; add one with: daycare mcp add",
			Get: func(client *control.Client, ctx context.Context) ([]event.Service, error) {
				s, err := client.Status(ctx)
				return s.MCP, err
			},
			Table: func(list []event.Service) (t term.Table, _ error) {
				t.Row("ID", "TYPE", "STATE", "TOOLS")
				for _, s := range list {
					t.Row(s.ID, s.Type, s.State, term.Cause(term.Join("  ", s.Detail, s.LastError), 300))
				}
				return t, nil
			}}),
	}
}

func test(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "test ID",
		Short: "Start an MCP server and list the tools that it offers now",
		Long: "Start an MCP server from the settings as the daemon would, in its sandbox, list the tools that it\n" +
			"offers, and stop it. Nothing is saved, and no tool is called.",
		Example: "  daycare mcp test files",
		Args:    term.Words(0, "the ID of an MCP server"), ValidArgsFunction: c.Complete(ids),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := known(c, args[0]); err != nil {
				return err
			}
			at, err := c.Place()
			if err != nil {
				return err
			}

			c.Note("starting …")
			list, log, err := daemon.TryMCP(cmd.Context(), at, args[0], c.Warn)
			if err != nil {
				c.Warn("%s", log)
				return &term.Problem{Code: fault.ExitFailure, Err: err, Do: "daycare mcp logs " + args[0]}
			}
			return printTools(c, list)
		},
	}
}

// printTools prints definitions; what a server says is cleaned.
func printTools(c *term.App, list []mcp.Definition) error {
	return term.Listing[mcp.Definition]{Key: "tools", Table: func(list []mcp.Definition) (t term.Table, _ error) {
		t.Row("TOOL", "SHA256", "DESCRIPTION")
		for _, d := range list {
			t.Row(d.Name, fmt.Sprintf("%.12s", d.SHA256), term.OneLine(d.Description, 80))
		}
		return t, nil
	}}.Show(c, list)
}

func trust(c *term.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "trust ID | .mcp.json",
		Short: "Review what an MCP server, or the workspace's .mcp.json, changed, and use it",
		Long: "Show how an MCP server's descriptions of its tools differ from the pinned ones, and pin the new\n" +
			"descriptions after you agree. Until then, agents cannot use changed or new tools. Descriptions go into the\n" +
			"agents' prompts: check them for hidden instructions.\n\n" +
			"With .mcp.json, show the servers that this file in the workspace lists, and use them after you agree. If\n" +
			"the file changes, daycare uses none of them until you trust it again.",
		Example: "  daycare mcp trust files\n  daycare mcp trust .mcp.json",
		Args:    term.Words(0, "the ID of an MCP server"), ValidArgsFunction: c.Complete(ids),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == config.ProjectName {
				return trustProject(cmd, c, yes)
			}
			home, err := known(c, args[0])
			if err != nil {
				return err
			}
			dir := filepath.Join(home, daemon.MCPDir)
			catalogue, err := mcp.ReadCatalogue(dir, args[0])
			if err != nil {
				return err
			}
			if catalogue == nil || catalogue.Pending == nil {
				c.Note("nothing changed: agents already have the tools of %s as it describes them", args[0])
				return nil
			}
			review(c, catalogue)
			if !yes && !c.Yes("Let agents have these tools?") {
				return &term.Problem{Code: fault.ExitFailure, Err: errors.New("nothing was changed"), Do: "skip the question with --yes"}
			}
			vol := disk.NewVolume(home)
			write := func(path string, data []byte) error { return vol.WriteFile("mcp", path, data) }
			if err := mcp.Trust(dir, args[0], write); err != nil {
				return err
			}
			c.Note("agents have them from their next turn on")
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// review prints what changed, whole: it is what an owner decides about.
func review(c *term.App, catalogue *mcp.Catalogue) {
	added, changed, gone := catalogue.Changes()
	was, is := catalogue.Tools, catalogue.Pending
	find := func(list []mcp.Definition, name string) mcp.Definition {
		i := slices.IndexFunc(list, func(d mcp.Definition) bool { return d.Name == name })
		return list[i]
	}
	show := func(title string, d mcp.Definition) {
		c.Print("%s %s\n", c.OutStyle().Dim(title), d.Name)
		c.Print("    %s\n    %s\n", d.Description, d.Schema)
	}
	for _, name := range changed {
		show("was    ", find(was, name))
		show("is now ", find(is, name))
	}
	for _, name := range added {
		show("new    ", find(is, name))
	}
	for _, name := range gone {
		c.Print("%s %s\n", c.OutStyle().Dim("gone   "), name)
	}
}

func logs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "logs ID",
		Short:   "Show what an MCP server wrote to its standard error, and how it ended",
		Example: "  daycare mcp logs files",
		Args:    term.Words(0, "the ID of an MCP server"), ValidArgsFunction: c.Complete(ids),
		RunE: func(_ *cobra.Command, args []string) error {
			home, err := known(c, args[0])
			if err != nil {
				return err
			}
			data, _, err := beneath.Own(filepath.Join(home, daemon.MCPDir, args[0]+".log"), 1<<20)
			if errors.Is(err, fs.ErrNotExist) {
				c.Note("nothing yet: it has not been started, or wrote nothing")
				return nil
			}
			if err != nil {
				return fmt.Errorf("read the log: %w", err)
			}
			c.Print("%s", data)
			return nil
		},
	}
}

// known is the .daycare folder, if the settings have the server.
func known(c *term.App, id string) (home string, err error) {
	conf, err := c.Config()
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(conf.MCP.Servers, func(s config.MCPServer) bool { return s.ID == id }) {
		return "", &term.Problem{Code: fault.ExitNotFound, Err: fmt.Errorf("there is no MCP server %q in the settings", id),
			Do: "see which there are: daycare mcp ls"}
	}
	at, err := c.Place()
	return at.Data, err
}

// ids completes the ids of servers.
func ids(c *term.App, _ *cobra.Command, args []string, _ string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
	if conf, err := c.Config(); err == nil && len(args) == 0 {
		for _, s := range conf.MCP.Servers {
			list = append(list, s.ID)
		}
	}

	return list, cobra.ShellCompDirectiveNoFileComp
}
