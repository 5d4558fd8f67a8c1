package commands

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
)

// handCommands are the commands by which users copy agents, take back what was said
// and edit their files.
func handCommands(c *term.App) []*cobra.Command {
	return []*cobra.Command{agentsFork(c), agentsRewind(c), agentsUndo(c), agentsDiff(c), agentsMark(c), agentsRestore(c), agentsTrash(c),
		agentsExport(c), agentsImport(c), agentsEdit(c), agentsModel(c), agentsRename(c)}
}

func agentsFork(c *term.App) *cobra.Command {
	var at int64
	var name string
	cmd := onAgent(c, "fork", "Copy an agent, to continue from any point of its conversation",
		"  daycare agents fork 0/ --name \"the other way\"\n  daycare agents fork 0/ --at 42",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			made, err := client.Folders().Fork(ctx, a.ID, at, name)
			return made, made.Handle + "  " + made.ID, err
		})
	must := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			return term.Usage(cmd, "%s: unexpected argument %q; use --at SEQ for a record, --name NAME for a name",
				cmd.CommandPath(), args[1])
		}
		return must(cmd, args)
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("at") && at < 1 {
			return term.Usage(cmd, "--at %d is not a valid SEQ; the first record is 1", at)
		}
		return run(cmd, args)
	}
	cmd.Flags().Int64Var(&at, "at", 0, "the `SEQ` of the last record to copy (default: the end of the newest turn)")
	cmd.Flags().StringVar(&name, "name", "", "its name")

	return cmd
}

func agentsRewind(c *term.App) *cobra.Command {
	var to string
	var files bool
	cmd := onAgent(c, "rewind", "Rewind the conversation; the rewound part stays in the history file",
		"  daycare agents rewind 0/              # undo the newest turn\n"+
			"  daycare agents rewind 0/ 42           # back to the record with this SEQ\n"+
			"  daycare agents rewind 0/ --to before  # back to a checkpoint\n"+
			"  daycare agents rewind 0/ --files      # the files, too",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			return ordered(ctx, client, a, control.Message{Kind: message.Rewind, Text: to}, "rewound "+a.Handle)
		})
	cmd.Use = "rewind ID [TO]"
	cmd.Args = term.Words(1, "the ID of an agent")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			if cmd.Flags().Changed("to") {
				return term.Usage(cmd, "two targets: %q and --to %q; give one", args[1], to)
			}
			to = args[1]
		}
		if err := run(cmd, args); err != nil {
			return err
		}

		return offer(cmd.Context(), c, args[0], files)
	}
	cmd.Flags().BoolVar(&files, "files", false, "also take back the files that its tools wrote since; see agents undo")
	cmd.Flags().StringVar(&to, "to", "", "the `SEQ` of a record or the name of a checkpoint (default: before the newest turn)")

	return cmd
}

func agentsMark(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "mark ID NAME", Short: "Set a checkpoint: name this point of the conversation, to rewind to it later",
		Example: "  daycare agents mark 0/ before",
		Args:    term.Words(0, "the ID of an agent", "a NAME"), ValidArgsFunction: c.Refs,
		RunE: term.Act(c, func(ctx context.Context, client *control.Client, args []string) (any, string, error) {
			a, err := client.Agent(ctx, args[0])
			if err != nil {
				return nil, "", term.About(err, "find agent", args[0])
			}
			r, err := client.Folders().Mark(ctx, a.ID, args[1])

			return r, "marked " + a.Handle + " as " + args[1], term.Wrap(err, "mark %s", a.Handle)
		}),
	}
}

// ordered posts an order and waits until the agent has carried it out, which it does
// between two turns.
func ordered(ctx context.Context, client *control.Client, a event.Agent, m control.Message, said string) (any, string, error) {
	o, err := client.Stream(ctx, a.ID, m, nil)
	switch {
	case err == nil && o.Reason == "refused":
		err = errors.New(o.Text)
	case !errors.Is(err, control.ErrNoRecord):
		return o, said, err
	}

	return nil, "", &term.Problem{Code: fault.ExitNotFound, Err: err, Do: "list the records with: daycare agents tail " + a.Handle}
}

func agentsRestore(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "restore ID", Short: "Restore a removed agent from the trash",
		Long: "Restore a removed agent from the trash, by its handle, name or id, or by its folder in\n" +
			"the trash if several match. It is the same agent, with the items that were queued for it.",
		Example: "  daycare agents restore 2/\n  daycare agents restore Ops",
		Args:    term.Words(0, "the ID of an agent in the trash"), ValidArgsFunction: c.Complete(trashed),
		RunE: term.Act(c, func(ctx context.Context, client *control.Client, args []string) (any, string, error) {
			a, err := client.Folders().Restore(ctx, args[0])
			return a, "restored " + a.Handle + "  " + a.ID, term.Wrap(err, "restore agent")
		}),
	}
}

// trashed completes the first argument with the handles of agents in the trash.
var trashed = term.Listed(inTrash, func(t event.Trashed) cobra.Completion {
	return cobra.CompletionWithDesc(cmp.Or(t.Handle, t.Name), term.OneLine(t.Title, 40))
})

func inTrash(client *control.Client, ctx context.Context) ([]event.Trashed, error) {
	return client.Folders().Trash(ctx)
}

func agentsTrash(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "trash", Short: "List removed agents",
		Example: "  daycare agents trash",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[event.Trashed]{Key: "trash", None: "the trash is empty",
			Get: inTrash,
			Table: func(list []event.Trashed) (t term.Table, _ error) {
				t.Row("HANDLE", "TYPE", "REMOVED", "NAME", "FOLDER")
				for _, e := range list {
					t.Row(cmp.Or(e.Handle, "-"), cmp.Or(e.Type, "-"), e.At.Local().Format("2006-01-02 15:04"),
						term.OneLine(cmp.Or(e.Title, "-"), 30), e.Name)
				}

				return t, nil
			}}),
	}
}
