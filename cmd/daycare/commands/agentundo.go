package commands

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/changes"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/record"
)

// agentsDiff shows what the tools of an agent wrote.
func agentsDiff(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "diff ID [TURN]", Short: "Show what an agent's file tools changed, by turn",
		Long: "Show what an agent's file tools (write, edit, apply_patch) changed in the files, turn by turn: of all turns, or\n" +
			"of the one with the id TURN. What commands changed is not part of it; a dry run has that, too.",
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
		Long: "Take back files that an agent's file tools wrote in the part of the conversation that was rewound. Without PATH\n" +
			"and --all, list these files and how they stand. --all takes back those that nobody else changed; a file that\n" +
			"someone changed between two writes of the agent is taken back by its name, and loses that change. One that was\n" +
			"changed since keeps the change with --merge, if the lines differ. A kill at any moment leaves each file whole;\n" +
			"the same command does the rest.",
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
			takes, err := u.takes(cmd.Context())
			if err != nil {
				return err
			}
			if !all && len(args) == 1 {
				return u.list(takes)
			}
			chosen, err := u.chosen(takes, args[1:])
			if err != nil {
				return err
			}
			return u.take(chosen, merge)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "take back all files that nobody else changed")
	cmd.Flags().BoolVar(&merge, "merge", false, "keep what others changed since, where the lines differ")

	return cmd
}

// offer offers to take back the files that rewound turns wrote: now, or with --files, or by a command.
func offer(ctx context.Context, c *term.App, ref string, sure bool) error {
	u, err := findUndo(ctx, c, ref)
	if err != nil {
		return err
	}
	takes, err := u.takes(ctx)
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
	ready, err := u.chosen(takes, nil)
	if err != nil {
		return err
	}

	return u.take(ready, false)
}

// An undoing is what a command takes back of an agent's files.
type undoing struct {
	app    *term.App
	client *control.Client
	agent  event.Agent
	root   string // the workspace
	store  changes.Store
}

// findUndo finds an agent's list of written files. Taking back that a kill cut is finished.
func findUndo(ctx context.Context, c *term.App, ref string) (u undoing, err error) {
	u.app = c
	if u.root, err = c.MadeRoot(); err != nil {
		return u, err
	}
	if u.client, err = c.Reader(ctx); err != nil {
		return u, err
	}
	if u.agent, err = u.client.Agent(ctx, ref); err != nil {
		return u, term.About(err, "find agent", ref)
	}
	home := filepath.Join(u.root, ".daycare")
	u.store = changes.Undo(disk.NewVolume(home), filepath.Join(home, "agents", u.agent.ID))
	if changes.Pending(u.store.Dir) {
		if _, err := u.store.TakeBack(nil, false); err != nil {
			return u, err
		}
		c.Note("taking back that was interrupted is finished")
	}

	return u, nil
}

// maxRecords bounds what is read of a history.
const maxRecords = 100_000

// takes lists the files that rewound turns wrote.
func (u undoing) takes(ctx context.Context) ([]changes.Take, error) {
	written, err := u.store.Written()
	if err != nil || len(written) == 0 {
		return nil, err
	}
	lines, err := show.Newest(ctx, u.client, u.agent.ID, maxRecords)
	if err != nil {
		return nil, err
	}
	var p rewound
	for _, line := range lines {
		if e, err := record.Decode(line); err == nil {
			p.add(e)
		}
	}

	return changes.Back(written, p.has)
}

// rewound is which tool calls of a history are rewound.
type rewound struct {
	calls map[string]int64 // seq of the answer that made a call
	spans [][2]int64       // what rewinds took out: from the first record after, up to the rewind
}

func (p *rewound) add(e *record.Entry) {
	switch r := e.Rec.(type) {
	case *record.Assistant:
		for _, call := range r.ToolCalls {
			if p.calls == nil {
				p.calls = map[string]int64{}
			}
			p.calls[call.ID] = e.Seq
		}
	case *record.Rewind:
		p.spans = append(p.spans, [2]int64{r.To + 1, e.Seq})
	}
}

// has reports whether the call that wrote a file is rewound.
func (p *rewound) has(w changes.Written) bool {
	seq, known := p.calls[w.Call]
	return known && slices.ContainsFunc(p.spans, func(s [2]int64) bool { return s[0] <= seq && seq < s[1] })
}

// shown is how a path is named to users: from the workspace, if it is in there.
func (u undoing) shown(file string) string {
	if rel, err := filepath.Rel(u.root, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

// standings say how a file stands.
var standings = map[changes.Standing]string{
	changes.Ready: "can be taken back", changes.Before: "is as it was before",
	changes.Between: "someone else changed it in between: name it to lose that, too",
	changes.Since:   "someone else changed it since: --merge keeps that",
	changes.Again:   "the agent wrote it again since", changes.Gone: "what it held is not kept",
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
			rows = append(rows, row{u.shown(file(t)), t.Standing, t.Turns})
		}
		return u.app.PrintJSON(map[string]any{"agent": u.agent.ID, "files": rows})
	}
	if len(takes) == 0 {
		u.app.Note("no file was written in a turn that is rewound")
		return nil
	}
	var t term.Table
	t.Row("FILE", "WRITTEN IN", "STANDS")
	for _, one := range takes {
		t.Row(term.Clean(u.shown(file(one))), term.Plural(len(one.Turns), "turn", "turns"), standings[one.Standing])
	}

	return t.Write(u.app.Out, u.app.OutStyle())
}

func file(t changes.Take) string { return filepath.Join(t.Folder, filepath.FromSlash(t.Path)) }

// chosen are the files that words name; without words those that nobody else changed.
func (u undoing) chosen(takes []changes.Take, words []string) (out []changes.Take, err error) {
	if len(words) == 0 {
		return slices.DeleteFunc(slices.Clone(takes), func(t changes.Take) bool { return t.Standing != changes.Ready }), nil
	}
	for _, word := range words {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(u.root, path)
		}
		i := slices.IndexFunc(takes, func(t changes.Take) bool { return u.shown(file(t)) == u.shown(path) || file(t) == path })
		if i < 0 {
			return nil, term.NotFound("list the files with: daycare agents undo "+u.agent.Handle, "no rewound turn wrote %s", word)
		}
		out = append(out, takes[i])
	}

	return out, nil
}

// take takes files back.
func (u undoing) take(takes []changes.Take, merge bool) error {
	results, err := u.store.TakeBack(takes, merge)
	if errors.Is(err, changes.ErrBusy) {
		return &term.Problem{Code: fault.ExitFailure, Err: err, Do: "try again when it has ended"}
	}
	if err != nil {
		return term.Wrap(err, "take back files of %s", u.agent.Handle)
	}
	type row struct {
		Path    string          `json:"path"`
		Outcome changes.Outcome `json:"outcome"`
		Why     string          `json:"why,omitempty"`
	}
	rows := []row{}
	for _, r := range results {
		rows = append(rows, row{u.shown(filepath.Join(r.Folder, filepath.FromSlash(r.Path))), r.Outcome, r.Why})
	}
	refused := changes.Refusals(results)
	if u.app.JSON {
		err = u.app.PrintJSON(map[string]any{"results": rows})
	}
	for _, r := range rows {
		if !u.app.JSON {
			u.app.Print("%s\n", term.Clean(strings.TrimRight(fmt.Sprintf("%-10s %s  %s", words[r.Outcome], r.Path, r.Why), " ")))
		}
	}
	if len(rows) == 0 {
		u.app.Note("nothing to take back")
	}
	if len(refused) > 0 {
		err = errors.Join(err, &term.Problem{Code: fault.ExitFailure, Do: "see how they stand: daycare agents undo " + u.agent.Handle,
			Err: fmt.Errorf("%s not taken back", term.Plural(len(refused), "file was", "files were"))})
	}

	return err
}

// words are outcomes as users read them.
var words = map[changes.Outcome]string{changes.Done: "taken back", changes.Already: "as before", changes.Refused: "left"}

// diff shows what was written, of one turn or of all.
func (u undoing) diff(turn []string) error {
	written, err := u.store.Written()
	if err != nil {
		return err
	}
	if len(turn) > 0 {
		written = slices.DeleteFunc(written, func(w changes.Written) bool { return w.Turn != turn[0] })
	}
	if len(turn) > 0 && len(written) == 0 {
		return term.NotFound("see the turns with files: daycare agents diff "+u.agent.Handle, "no file was written in a turn %q", turn[0])
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
		u.app.Print("%s", term.Clean(r.Diff))
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
	name := u.shown(w.File())
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
		return "", fmt.Errorf("what it held is not kept: %s", s.Other)
	case s.Missing():
		return "", nil
	}
	data, err := u.store.Get(s)

	return string(data), err
}
