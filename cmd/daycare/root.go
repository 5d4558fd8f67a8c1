package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
)

// cli is what all commands share: the streams, the global flags, the wiring.
type cli struct {
	wiring
	stdin          io.Reader
	stdout, stderr io.Writer // data; talk

	workspace string // --workspace
	json      bool
	noInput   bool

	signals      chan os.Signal
	signalsTaken atomic.Bool
	leaving      atomic.Pointer[func()] // to be called before a signal ends the program
}

// newRoot builds the tree of commands. Building is all it does: `daycare version`
// must not pay for what other commands need.
func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "daycare",
		Short: "Long-lived agents from a directory of plain files",
		Long: "daycare runs long-lived agents from a directory of plain files.\n" +
			"Everything it knows is in .daycare: read it, edit it, copy it.\n\n" +
			"Without a command, on a terminal, it opens the full-screen UI.",
		Example:           "  daycare init && daycare chat hello",
		Args:              noSuchCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.tui(cmd) },
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
	}
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(cmd, "%s", err)
	})
	flags := root.PersistentFlags()
	flags.StringVar(&c.workspace, "workspace", "",
		"the `DIR` that holds .daycare (default: the nearest one upwards, else the current one)")
	flags.BoolVar(&c.json, "json", false, "print JSON: one object, or one a line for streams")
	flags.BoolVar(&c.noInput, "no-input", false, "never ask anything")
	// Flags named like files or folders complete as such.
	_ = root.MarkPersistentFlagDirname("workspace")

	addGroup(root, "Talk to agents:", c.chatCommand(), c.sendCommand(), c.permissionsCommand(), c.whyCommand())
	addGroup(root, "Look at agents, and change them:",
		c.agentsCommand(), c.inboxCommand(), c.toolsCommand(), c.subagentsCommand(), c.skillsCommand(), c.cronCommand(),
		c.heartbeatCommand())
	addGroup(root, "Run the daemon:",
		c.startCommand(), c.stopCommand(), c.statusCommand(), c.reloadCommand(), c.logsCommand(), c.serviceCommand())
	addGroup(root, "Set up:",
		c.initCommand(), c.authCommand(), c.providersCommand(), c.modelsCommand(), c.connectorsCommand(), c.costCommand())
	addGroup(root, "Check and clean:",
		c.doctorCommand(), c.validateCommand(), c.schemaCommand(), c.gcCommand(), c.benchCommand(), c.chaosCommand())
	root.AddCommand(c.versionCommand(), c.manCommand(), c.completionCommand())
	root.SetHelpCommand(helpCommand())
	return root
}

// addGroup adds commands that help lists together under title.
func addGroup(root *cobra.Command, title string, cmds ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range cmds {
		cmd.GroupID = title
		root.AddCommand(cmd)
	}
}

// group is a command that only holds others.
func group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subs...)
	return cmd
}

// noSuchCommand is the Args of commands that take none: a word there is a
// command that does not exist.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	do := "see: " + cmd.CommandPath() + " --help"
	cmd.SuggestionsMinimumDistance = 2
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		do = "did you mean " + strings.Join(names, ", ") + "?"
	}
	return &problem{code: exitUsage, err: fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0]), do: do}
}

// words checks the positional arguments: the names of those that must be there,
// and how many more there may be (-1: any number).
func words(extra int, must ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(must):
			return usage(cmd, "%s needs %s", cmd.CommandPath(), must[len(args)])
		case extra >= 0 && len(args) > len(must)+extra:
			return usage(cmd, "%s does not know what to do with %q", cmd.CommandPath(), args[len(must)+extra])
		}
		return nil
	}
}
