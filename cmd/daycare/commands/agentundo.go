package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/changes"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// agentsDiff shows what the tools of an agent wrote.
func agentsDiff(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "diff ID [TURN]", Short: "Show what an agent's file tools changed, by turn",
		Long: "Show what an agent's file tools (write, edit, apply_patch) changed, turn by turn, or only in the turn\n" +
			"with the id TURN. Changes made by commands are not included; a dry run shows those, too.",
		Example: "  daycare agents diff 0/\n  daycare agents diff 0/ k3f9…",
		Args:    term.Words(1, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := findUndo(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return u.diff(args[1:])
		},
	}
}

func agentsUndo(c *term.App) *cobra.Command {
	var all, merge bool
	cmd := &cobra.Command{
		Use: "undo ID [PATH…]", Short: "Take back files that an agent wrote in turns that were rewound",
		Long: "Take back what an agent's file tools wrote in the rewound part of the conversation. Without PATH or\n" +
			"--all, list these files and whether each can be taken back. --all takes back the files that nobody else\n" +
			"changed. If someone changed a file between two writes of the agent, take it back by name; that change is\n" +
			"lost. If someone changed it afterwards, --merge keeps that change if it touches other lines. If the\n" +
			"command is killed, every file is whole, old or new; run it again to finish.",
		Example: "  daycare agents rewind 0/\n  daycare agents undo 0/\n  daycare agents undo 0/ --all",
		Args:    term.Words(-1, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 1 {
				return term.Usage(cmd, "name the files, or give --all")
			}
			u, err := findUndo(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if all || len(args) > 1 {
				return u.take(args[1:], merge)
			}
			takes, err := u.Takes(0)
			if err != nil {
				return err
			}
			return u.list(takes)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "take back all files that nobody else changed")
	cmd.Flags().BoolVar(&merge, "merge", false, "keep what others changed afterwards, if it touches other lines")

	return cmd
}

// offer offers to take back the files that rewound turns wrote: now, or with --files, or by a command.
func offer(ctx context.Context, c *term.App, ref string, sure bool) error {
	u, err := findUndo(ctx, c, ref)
	if err != nil {
		return err
	}
	takes, err := u.Takes(0)
	takes = slices.DeleteFunc(takes, func(t changes.Take) bool { return t.Standing == changes.Before })
	if err != nil || len(takes) == 0 || c.JSON && !sure {
		return err
	}
	if !sure && c.Asks() {
		if err := u.list(takes); err != nil {
			return err
		}
		sure = c.Agrees("Take back the files that nobody else changed?")
	}
	if !sure {
		c.Note("%s that it wrote since can be taken back: daycare agents undo %s", term.Plural(len(takes), "file", "files"), u.agent.Handle)
		return nil
	}

	return u.take(nil, false)
}

// An undoing is what a command takes back of an agent's files.
type undoing struct {
	changes.Undoing
	app   *term.App
	agent event.Agent
}

// findUndo finds an agent's list of written files. Taking back that a kill cut is finished.
func findUndo(ctx context.Context, c *term.App, ref string) (u undoing, err error) {
	u.app = c
	at, err := c.MadePlace()
	if err != nil {
		return u, err
	}
	client, err := c.Reader(ctx)
	if err != nil {
		return u, err
	}
	if u.agent, err = client.Agent(ctx, ref); err != nil {
		return u, term.About(err, "find agent", ref)
	}
	if err := onlyThere(ctx, client, u.agent, "daycare agents diff or undo "+u.agent.Handle); err != nil {
		return u, err
	}
	u.Undoing = changes.UndoingOf(disk.NewVolume(at.Data), at, u.agent.ID)
	cut, err := u.Complete()
	if cut && err == nil {
		c.Note("finished an interrupted take-back")
	}

	return u, err
}

// standings say how a file stands.
var standings = map[changes.Standing]string{
	changes.Ready: "can be taken back", changes.Before: "is as it was before",
	changes.Between: "someone else changed it in between: take it back by name; that change is lost, too",
	changes.Since:   "someone else changed it since",
	changes.Again:   "the agent wrote it again since", changes.Gone: "its earlier content was not kept",
}

func (u undoing) list(takes []changes.Take) error {
	if u.app.JSON {
		type row struct {
			Path     string           `json:"path"`
			Standing changes.Standing `json:"standing"`
			Turns    []string         `json:"turns"`
		}
		rows := []row{}
		for _, t := range takes {
			rows = append(rows, row{u.Shown(t.File()), t.Standing, t.Turns})
		}
		return u.app.PrintJSON(map[string]any{"agent": u.agent.ID, "files": rows})
	}
	if len(takes) == 0 {
		u.app.Note("no rewound turn wrote files")
		return nil
	}
	var t term.Table
	t.Row("FILE", "WRITTEN IN", "STANDS")
	for _, one := range takes {
		stands := standings[one.Standing]
		if one.Mergeable() {
			stands += ": --merge keeps that"
		}
		t.Row(u.Shown(one.File()), term.Plural(len(one.Turns), "turn", "turns"), stands)
	}

	return t.Write(u.app.Out, u.app.OutStyle())
}

// take takes files back; without any, those that nobody else changed.
func (u undoing) take(paths []string, merge bool) error {
	results, err := u.TakeBack(paths, merge)
	var none *changes.NoFile
	switch {
	case errors.As(err, &none):
		return term.NotFound("list the files with: daycare agents undo "+u.agent.Handle, "%v", err)
	case errors.Is(err, changes.ErrBusy):
		return &term.Problem{Code: fault.ExitFailure, Err: err, Do: "try again when it has ended"}
	case err != nil:
		return term.Wrap(err, "take back files of %s", u.agent.Handle)
	}
	type row struct {
		Path    string          `json:"path"`
		Outcome changes.Outcome `json:"outcome"`
		Why     string          `json:"why,omitempty"`
	}
	rows := []row{}
	for _, r := range results {
		rows = append(rows, row{u.Shown(r.File()), r.Outcome, r.Why})
	}
	refused := changes.Refusals(results)
	if u.app.JSON {
		err = u.app.PrintJSON(map[string]any{"results": rows})
	}
	for _, r := range rows {
		if !u.app.JSON {
			u.app.Print("%s\n", strings.TrimRight(fmt.Sprintf("%-10s %s  %s", words[r.Outcome], r.Path, r.Why), " "))
		}
	}
	if len(rows) == 0 {
		u.app.Note("nothing to take back")
	}
	if len(refused) > 0 {
		err = errors.Join(err, &term.Problem{Code: fault.ExitFailure,
			Do:  "see the state of each file: daycare agents undo " + u.agent.Handle,
			Err: fmt.Errorf("%s not taken back", term.Plural(len(refused), "file was", "files were"))})
	}

	return err
}

// words are outcomes as users read them.
var words = map[changes.Outcome]string{changes.Done: "taken back", changes.Already: "as before", changes.Refused: "left"}

// diff shows what was written, of one turn or of all.
func (u undoing) diff(turn []string) error {
	written, err := u.Store.Written()
	if err != nil {
		return err
	}
	if len(turn) > 0 {
		written = slices.DeleteFunc(written, func(w changes.Written) bool { return w.Turn != turn[0] })
	}
	if len(turn) > 0 && len(written) == 0 {
		return term.NotFound("see the turns with files: daycare agents diff "+u.agent.Handle, "no turn %q wrote files", turn[0])
	}
	type row struct {
		changes.Written
		Diff string `json:"diff"`
	}
	rows := []row{}
	for _, w := range written {
		rows = append(rows, row{w, u.text(w)})
	}
	if u.app.JSON {
		return u.app.PrintJSON(map[string]any{"agent": u.agent.ID, "written": rows})
	}
	last := ""
	for _, r := range rows {
		if r.Turn != last {
			u.app.Print("%s\n", u.app.OutStyle().Bold(fmt.Sprintf("turn %s  %s", r.Turn, r.At.Local().Format("2006-01-02 15:04"))))
			last = r.Turn
		}
		u.app.Print("%s", r.Diff)
	}
	if len(rows) == 0 {
		u.app.Note("its tools wrote no files")
	}

	return nil
}

// maxShown bounds a file that is shown as a diff, in bytes.
const maxShown = 512 << 10

// text returns a change as a diff, or describes one that has no diff.
func (u undoing) text(w changes.Written) string {
	name := u.Shown(w.File())
	before, err := u.content(w.Before)
	after, err2 := u.content(w.After)
	if err = errors.Join(err, err2); err != nil {
		return fmt.Sprintf("  %s: %v\n", name, err)
	}
	if !utf8.ValidString(before) || !utf8.ValidString(after) || len(before)+len(after) > maxShown {
		return fmt.Sprintf("  %s: %s -> %s\n", name, term.Size(int64(len(before))), term.Size(int64(len(after))))
	}

	return udiff.Unified("a/"+name, "b/"+name, before, after)
}

func (u undoing) content(s changes.State) (string, error) {
	switch {
	case s.Other != "":
		return "", fmt.Errorf("its earlier content was not kept: %s", s.Other)
	case s.Missing():
		return "", nil
	}
	data, err := u.Store.Get(s)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("its earlier content is no longer kept")
	}

	return string(data), err
}
