package movein

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// A kind is a program whose home can be imported.
type kind struct {
	read func(*home)
	what string // the home, in words
}

var kinds = map[string]kind{
	"openclaw": {openclaw, "OpenClaw: ~/.openclaw, or a workspace folder of it"},
	"claude":   {claude, "Claude Code: ~/.claude, or the folder of a project"},
	"picoclaw": {picoclaw, "picoclaw: ~/.picoclaw, or its workspace folder"},
	"daycare":  {daycare, "another workspace of daycare"},
}

// options are how an import is done.
type options struct{ dry, yes, enable bool }

// Import returns the command that imports the files of another program.
func Import(c *term.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "import KIND DIR",
		Short: "Import from OpenClaw, Claude Code or picoclaw, or from another workspace",
		Long: "Import prompts, memory, skills, slash commands, tasks and conversations from another program.\n" +
			"It first lists what it imports and where to, and what it skips and why; then it asks.\n" +
			"It overwrites nothing, and only reads DIR. Keys, tokens, allow lists and permissions are\n" +
			"never imported. Tasks stay disabled until you enable them. Run it again to import what is\n" +
			"new.\n\nKIND is one of\n" + kindList(),
		Example: "  daycare import openclaw ~/.openclaw --dry-run\n  daycare import claude ~/.claude\n" +
			"  daycare import daycare ../old --yes",
		Args: imports,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return slices.Sorted(maps.Keys(kinds)), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), c, kinds[args[0]], args[1], o)
		},
	}
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "list what would be imported, without changing anything")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.enable, "enable", false, "enable the tasks that are enabled in the other program")

	return cmd
}

func kindList() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, kinds[name].what)
	}

	return strings.TrimRight(b.String(), "\n")
}

// imports checks the arguments. One that is a file is meant for agents import.
func imports(cmd *cobra.Command, args []string) error {
	names := strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
	if err := term.Words(0, "a KIND ("+names+")", "the DIR to read")(cmd, args); err != nil {
		if len(args) == 1 && kinds[args[0]].read == nil {
			return &term.Problem{Code: fault.ExitUsage, Err: err,
				Do: "to import an exported agent: daycare agents import " + args[0]}
		}
		return err
	}
	if kinds[args[0]].read == nil {
		return term.Usage(cmd, "%q is unknown; allowed: %s", args[0], names)
	}

	return nil
}

func run(ctx context.Context, c *term.App, k kind, dir string, o options) error {
	at, err := c.MadePlace()
	if err != nil {
		return err
	}
	h, err := openHome(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return term.NotFound("give the folder with the files of the other program", "there is no folder %s", dir)
	case errors.Is(err, syscall.ENOTDIR):
		return term.NotFound("give the folder with the files of the other program", "%s is not a folder", dir)
	case err != nil:
		return fmt.Errorf("import %s: %w", dir, err)
	}
	defer h.close()
	if h.dir == at.Dir || h.dir == at.Data {
		return &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s is this workspace", dir),
			Do: "choose another workspace with --workspace"}
	}

	k.read(h)
	if len(h.items) == 0 {
		return term.NotFound("expected: "+k.what, "%s contains nothing that can be imported", dir)
	}
	w, err := openHere(ctx, c, at, !o.dry)
	if err != nil {
		return err
	}
	defer w.close()
	w.enable = o.enable
	rows := plan(w, h.items)
	if o.dry {
		return report(c, rows)
	}

	return takeThem(c, w, h.items, rows, o)
}

// takeThem asks for confirmation, imports and reports.
func takeThem(c *term.App, w *here, items []*item, rows []Row, o options) error {
	if !c.JSON {
		if err := table(c, rows); err != nil {
			return err
		}
	}

	switch {
	case count(rows, stateNew) == 0:
		c.Note("nothing new to import")
	case !o.yes && !c.Asks():
		return &term.Problem{Code: fault.ExitUsage, Err: errors.New("import: cannot ask for confirmation without a terminal"),
			Do: "confirm with --yes"}
	case o.yes || c.Agrees(fmt.Sprintf("Import %s?", term.Plural(count(rows, stateNew), "new item", "new items"))):
		if err := carryOut(w, items, rows); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	default:
		c.Note("nothing was imported")
		return nil
	}

	return finish(c, rows)
}

// finish prints the results. It returns an error if an item failed.
func finish(c *term.App, rows []Row) error {
	if c.JSON {
		if err := c.PrintJSON(result{rows}); err != nil {
			return err
		}
	} else {
		c.Print("%s\n", sums(rows))
		followUp(c, rows)
	}
	if n := count(rows, stateFailed); n > 0 {
		for _, r := range rows {
			if r.State == stateFailed {
				c.Warn("%s: %s", r.From, r.Why)
			}
		}
		return &term.Problem{Code: fault.ExitFailure,
			Err: fmt.Errorf("%s could not be imported", term.Plural(n, "item", "items")),
			Do:  "fix the cause and run the import again: it skips what is already imported"}
	}

	return nil
}

// followUp prints what to do next.
func followUp(c *term.App, rows []Row) {
	taken := map[string]bool{}
	for _, r := range rows {
		taken[r.What] = taken[r.What] || r.State == stateTaken
	}
	if taken["task"] || taken["heartbeat"] {
		c.Note("imported tasks are disabled unless you gave --enable; see: daycare cron ls, daycare heartbeat ls")
	}
	if taken["agent"] {
		c.Note("do not run the other workspace as well: both would answer the same chats")
	}
	if taken["conversation"] || taken["agent"] {
		c.Note("agents: daycare agents ls")
	}
}

// A result is the output of an import with --json.
type result struct {
	Items []Row `json:"items"`
}

func report(c *term.App, rows []Row) error {
	if c.JSON {
		return c.PrintJSON(result{rows})
	}
	if err := table(c, rows); err != nil {
		return err
	}

	c.Print("%s\n", sums(rows))
	c.Note("nothing was changed")

	return nil
}

// sums counts the rows by their state.
func sums(rows []Row) string {
	var parts []string
	for _, s := range []struct{ state, words string }{{stateNew, "%d new"}, {stateTaken, "%d imported"},
		{stateThere, "%d exist"}, {stateSkipped, "%d skipped"}, {stateFailed, "%d failed"}} {
		if n := count(rows, s.state); n > 0 {
			parts = append(parts, fmt.Sprintf(s.words, n))
		}
	}

	return strings.Join(parts, ", ")
}

func count(rows []Row, state string) (n int) {
	for _, r := range rows {
		if r.State == state {
			n++
		}
	}

	return n
}

// stateWords are the states as shown to users.
var stateWords = map[string]string{stateTaken: "imported", stateThere: "exists"}

// shown is how many rows in a row of one kind and state are shown; the rest are counted.
const shown = 20

func table(c *term.App, rows []Row) error {
	t := term.Table{{"WHAT", "FROM", "TO", "RESULT"}}
	run, before := 0, Row{}
	flush := func() {
		if run > shown {
			t.Row(before.What, fmt.Sprintf("… and %d more", run-shown), "", cmp.Or(stateWords[before.State], before.State))
		}
	}
	for _, r := range rows {
		if r.What != before.What || r.State != before.State {
			flush()
			run = 0
		}
		before = r
		if run++; run > shown {
			continue
		}

		said := cmp.Or(stateWords[r.State], r.State)
		if r.Why != "" {
			said += ": " + r.Why
		}
		to := "-"
		if r.To != "" {
			to = workspace.Home + "/" + r.To
		}

		t.Row(r.What, r.From, to, said)
	}

	flush()
	return t.Write(c.Out, c.OutStyle())
}
