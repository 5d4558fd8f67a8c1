package main

import (
	"github.com/spf13/cobra"

	"daycare/cmd/daycare/bench"
	"daycare/cmd/daycare/chaos"
	"daycare/cmd/daycare/cluster"
	"daycare/cmd/daycare/commands"
	"daycare/cmd/daycare/doctor"
	"daycare/cmd/daycare/lab"
	"daycare/cmd/daycare/man"
	"daycare/cmd/daycare/mcp"
	"daycare/cmd/daycare/movein"
	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/talk"
	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/upkeep"
)

// newRoot builds the tree of commands. Building is all it does: `daycare version`
// must not pay for what other commands need.
func newRoot(c *term.App) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "daycare",
		Short: "Run long-lived agents from a directory of plain files",
		Long: "daycare runs long-lived LLM agents from a directory of plain files.\n" +
			"It keeps everything in .daycare, in files that you can read, edit and copy.\n\n" +
			"Without a command, on a terminal, it opens the full-screen view.",
		Example: "  daycare init && daycare chat hello",
		Args:    term.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return printVersion(c)
			}
			return tui(c, cmd)
		},
		DisableAutoGenTag: true,
	}
	c.Attach(root)
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the version")

	addGroup(root, "Talk to agents:", talk.Chat(c), talk.Send(c), commands.Web(c), acpCommand(c), commands.Permissions(c), commands.Why(c))
	addGroup(root, "Manage agents:",
		commands.Agents(c), commands.Inbox(c), commands.Tools(c), commands.SubAgents(c), commands.Skills(c),
		commands.Slash(c), commands.Hooks(c), commands.Cron(c), commands.Heartbeat(c))
	addGroup(root, "Run the daemon:",
		startCommand(c), commands.Stop(c), commands.Restart(c), commands.Status(c), commands.Workspaces(c),
		commands.Reload(c), commands.Logs(c), setup.Service(c), cluster.Command(c))
	addGroup(root, "Set up:",
		setup.Init(c), setup.Auth(c), setup.Providers(c), setup.Models(c), setup.Connectors(c), mcp.Command(c), commands.Config(c),
		commands.Cost(c))
	addGroup(root, "Check and clean:",
		doctor.Command(c), doctor.ValidateCommand(c), doctor.SchemaCommand(c), doctor.CollectCommand(c), bench.Command(c), chaos.Command(c))
	addGroup(root, "Try agents out:", lab.Test(c), lab.Replay(c), lab.Batch(c), lab.Simulate(c), lab.Changes(c))
	addGroup(root, "Keep it:", upkeep.Backup(c), upkeep.Restore(c), movein.Import(c), upkeep.Update(c), upkeep.Uninstall(c))
	root.AddCommand(versionCommand(c), man.Command(c), completionCommand(c))
	root.SetHelpCommand(helpCommand())
	addSynonyms(root)
	addShortcuts(root, commands.Shortcuts(c))
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

// synonyms are the names under which users look for a command that other tools have, too.
var synonyms = map[string][]string{
	"ls": {"list", "ps"}, "show": {"inspect", "view"}, "new": {"create"}, "add": {"create", "new"}, "rm": {"remove", "delete"},
	"allow": {"approve"}, "tail": {"logs"}, "chat": {"ask", "run"}, "gc": {"prune"}, "permissions": {"permission"},
}

// addSynonyms gives each command its synonyms, but for names that a command beside it has.
func addSynonyms(parent *cobra.Command) {
	taken := map[string]bool{}
	for _, cmd := range parent.Commands() {
		taken[cmd.Name()] = true
	}
	for _, cmd := range parent.Commands() {
		for _, name := range synonyms[cmd.Name()] {
			if !taken[name] {
				cmd.Aliases = append(cmd.Aliases, name)
				taken[name] = true
			}
		}
		addSynonyms(cmd)
	}
}

// addShortcuts adds commands about agents to the root as well, under their names and
// synonyms, without listing them in the help.
func addShortcuts(root *cobra.Command, cmds map[string]*cobra.Command) {
	for name, cmd := range cmds {
		cmd.Hidden, cmd.Aliases = true, synonyms[name]
		root.AddCommand(cmd)
	}
}
