package lab

import (
	"cmp"
	"context"
	"encoding/json"
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
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/record"
)

// Changes shows what a dry run did, and applies or drops it.
func Changes(c *term.App) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "changes [PATH…]", Short: "Show what an agent changed in a dry run, and what it did not send",
		Long: "Show what an agent changed in its copy of the folder since the dry run began (chat --dry-run, or the\n" +
			"profile dry-run), as a diff, and the calls that were recorded instead of made. With PATH, only these files\n" +
			"and folders. Changes in .git are not part of it.",
		Example: "  daycare chat --dry-run rename the option in all files\n" +
			"  daycare changes\n  daycare changes apply --all",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := findRehearsal(cmd.Context(), c, agent)
			if err != nil {
				return err
			}
			return r.show(cmd.Context(), args)
		},
	}
	cmd.PersistentFlags().StringVar(&agent, "agent", "", "the `ID` of the agent whose dry run is meant (default: the newest dry run)")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.AgentRefs)
	cmd.AddCommand(changesList(c), changesApply(c, &agent), changesDrop(c, &agent))

	return cmd
}

func changesApply(c *term.App, agent *string) *cobra.Command {
	var all, merge bool
	cmd := &cobra.Command{
		Use: "apply --all|PATH…", Short: "Apply changes of a dry run to your files",
		Long: "Apply changes of a dry run to the folder that was copied. A file that changed there meanwhile is left alone,\n" +
			"or, with --merge, gets both changes if they do not touch the same lines. What it overwrites is kept in the\n" +
			"folder of the copy. A kill at any moment leaves each file whole, as it was or as it becomes; the next\n" +
			"daycare changes does the rest.\n\n" +
			"--all leaves out files that run something later, or that tell programs what to run, such as .envrc or\n" +
			"AGENTS.md: name them. The exit code is 1 if a change was not applied.",
		Example: "  daycare changes apply --all\n  daycare changes apply src/main.go docs\n  daycare changes apply --merge README.md",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return term.Usage(cmd, "name the files to apply, or give --all")
			}
			r, err := findRehearsal(cmd.Context(), c, *agent)
			if err != nil {
				return err
			}
			return r.apply(cmd.Context(), args, merge)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "apply all changes")
	cmd.Flags().BoolVar(&merge, "merge", false, "merge texts that changed on both sides")

	return cmd
}

func changesDrop(c *term.App, agent *string) *cobra.Command {
	var sure bool
	cmd := &cobra.Command{
		Use: "drop", Short: "Drop a dry run: remove the copy with all changes that were not applied",
		Example: "  daycare changes drop --yes",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := findRehearsal(cmd.Context(), c, *agent)
			if err != nil {
				return err
			}
			return r.drop(cmd.Context(), sure)
		},
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "drop without asking")

	return cmd
}

func changesList(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the dry runs of the workspace",
		Example: "  daycare changes ls",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := c.MadeRoot()
			if err != nil {
				return err
			}
			copies, err := listed(c, root)
			if err != nil {
				return err
			}
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			type row struct {
				Agent string `json:"agent"`
				changes.Copy
				Files int `json:"files"`
			}
			rows := []row{}
			for _, one := range copies {
				list, err := one.Changes(cmd.Context())
				if err != nil {
					return err
				}
				rows = append(rows, row{handle(cmd.Context(), client, one.Agent), one, len(list)})
			}
			if c.JSON {
				return c.PrintJSON(map[string]any{"dryRuns": rows})
			}
			if len(rows) == 0 {
				c.Note("there are no dry runs; begin one with: daycare chat --dry-run TEXT")
				return nil
			}
			var t term.Table
			t.Row("AGENT", "BEGAN", "FILES", "COPY OF")
			for _, r := range rows {
				t.Row(r.Agent, r.At.Local().Format("2006-01-02 15:04"), fmt.Sprint(r.Files), r.Of)
			}
			return t.Write(c.Out, c.OutStyle())
		},
	}
}

// listed are the dry runs of a workspace, the newest first. What is wrong with others is a warning.
func listed(c *term.App, root string) ([]changes.Copy, error) {
	shelf, err := changes.List(root)
	for _, broken := range shelf.Broken {
		c.Warn("a dry run is left out: %v", broken)
	}

	return shelf.Copies, err
}

// handle is how an agent is named to users; its id, if it is gone.
func handle(ctx context.Context, client *control.Client, id string) string {
	a, err := client.Agent(ctx, id)
	if err != nil {
		return id
	}
	return a.Handle
}

// A rehearsal is a dry run that a command is about.
type rehearsal struct {
	app    *term.App
	client *control.Client
	copy   changes.Copy
	agent  event.Agent // without an id: it was removed
}

// findRehearsal finds the dry run of an agent, "": the newest. An apply that was cut is finished.
func findRehearsal(ctx context.Context, c *term.App, ref string) (r rehearsal, err error) {
	root, err := c.MadeRoot()
	if err != nil {
		return r, err
	}
	r.app = c
	if r.client, err = c.Reader(ctx); err != nil {
		return r, err
	}
	copies, err := listed(c, root)
	if err != nil {
		return r, err
	}
	if ref != "" {
		id := ref // of an agent that is gone
		if r.agent, err = r.client.Agent(ctx, ref); err == nil {
			id = r.agent.ID
		}
		copies = slices.DeleteFunc(copies, func(one changes.Copy) bool { return one.Agent != id })
		if err != nil && len(copies) == 0 {
			return r, term.About(err, "find agent", ref)
		}
	}
	if len(copies) == 0 {
		return r, term.NotFound("begin one with: daycare chat --dry-run TEXT", "there is no dry run")
	}
	r.copy = copies[0]
	if ref == "" {
		r.agent, _ = r.client.Agent(ctx, r.copy.Agent) // it may be gone; the copy is not
	}
	if changes.Pending(r.copy.Dir) {
		if err := r.copy.Resume(); err != nil {
			return r, err
		}
		c.Note("an apply that was interrupted is finished")
	}

	return r, nil
}

// chosen are the changes of these files and folders; without words all.
func (r rehearsal) chosen(ctx context.Context, words []string) ([]changes.Change, error) {
	list, err := r.copy.Changes(ctx)
	if err != nil || len(words) == 0 {
		return list, err
	}
	var out []changes.Change
	for _, word := range words {
		path, err := r.inFolder(word)
		if err != nil {
			return nil, err
		}
		n := len(out)
		for _, one := range list {
			if path == "." || one.Path == path || strings.HasPrefix(one.Path, path+"/") {
				out = append(out, one)
			}
		}
		if len(out) == n {
			return nil, term.NotFound("list the changes with: daycare changes", "nothing changed at %s", word)
		}
	}
	slices.SortFunc(out, func(a, b changes.Change) int { return strings.Compare(a.Path, b.Path) })

	return slices.Compact(out), nil
}

// inFolder is a path that a user typed, as the copy has it: from the copied folder, where that has
// it, or as a path of the machine.
func (r rehearsal) inFolder(word string) (string, error) {
	path := filepath.Clean(word)
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(r.copy.Of, path)
		if err != nil || !filepath.IsLocal(rel) {
			return "", term.NotFound("", "%s is not in %s", word, r.copy.Of)
		}
		path = rel
	}
	return filepath.ToSlash(path), nil
}

// A shown change is one with its diff.
type shown struct {
	changes.Change
	Kind string `json:"kind"`
	Why  string `json:"why,omitempty"` // it does not fit
	Diff string `json:"diff,omitempty"`
}

func (r rehearsal) show(ctx context.Context, words []string) error {
	list, err := r.chosen(ctx, words)
	if err != nil {
		return err
	}
	calls, err := r.notDone(ctx)
	if err != nil {
		return err
	}
	all := []shown{}
	for _, one := range list {
		s := shown{Change: one, Kind: one.Kind(), Why: one.Why()}
		if s.Diff, err = r.diff(one); err != nil {
			return err
		}
		all = append(all, s)
	}
	if r.app.JSON {
		return r.app.PrintJSON(map[string]any{"agent": r.copy.Agent, "of": r.copy.Of, "changes": all, "calls": calls})
	}
	style := r.app.OutStyle()
	for _, s := range all {
		r.app.Print("%s\n", style.Bold(term.Clean(fmt.Sprintf("%s %s", s.Kind, s.Path)))+note(s))
		r.app.Print("%s", term.Clean(s.Diff))
	}
	for _, one := range calls {
		r.app.Print("%s %s\n", style.Bold("not done"), term.Clean(one.String()))
	}
	r.app.Print("%s, %s\n", term.Plural(len(all), "file differs", "files differ"),
		term.Plural(len(calls), "call was not made", "calls were not made"))

	return nil
}

// note is what stands beside the name of a change.
func note(s shown) string {
	var notes []string
	if s.Why != "" {
		notes = append(notes, s.Why)
	}
	if s.Later {
		notes = append(notes, "runs something later, or tells programs what to run: apply it by its name")
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// diff is a change as users read it.
func (r rehearsal) diff(one changes.Change) (string, error) {
	before, now, there, err := r.copy.Contents(one)
	if err != nil || one.Now.Other != "" {
		return "", err
	}
	if before == nil && !one.Base.Missing() {
		before = there // what was copied is not kept
	}
	if !utf8.Valid(before) || !utf8.Valid(now) || len(before)+len(now) > maxShown {
		return fmt.Sprintf("  %s -> %s\n", amount(one.Base, before), amount(one.Now, now)), nil
	}
	text := udiff.Unified("a/"+one.Path, "b/"+one.Path, string(before), string(now))
	if one.Base.Mode != one.Now.Mode && !one.Base.Missing() && !one.Now.Missing() {
		text = fmt.Sprintf("  mode %04o -> %04o\n", one.Base.Mode, one.Now.Mode) + text
	}

	return text, nil
}

// maxShown bounds a file that is shown as a diff, in bytes.
const maxShown = 512 << 10

func amount(s changes.State, content []byte) string {
	if s.Missing() {
		return "nothing"
	}
	return term.Size(int64(len(content)))
}

// A call is one that was recorded and not made.
type call struct {
	Agent     string          `json:"agent"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

func (c call) String() string { return show.Call(c.Tool, c.Arguments) }

// notDone lists the calls of the dry run that were not made, those of the agents that it started
// included.
func (r rehearsal) notDone(ctx context.Context) ([]call, error) {
	list := []call{}
	if r.agent.ID == "" {
		return list, nil
	}
	family, err := r.client.Family(ctx, r.agent.ID)
	if err != nil {
		return nil, err
	}
	s := session{client: r.client}
	for _, a := range family {
		entries, err := s.history(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		made := map[string]record.ToolCall{}
		for _, e := range entries {
			if e.At.Before(r.copy.At.Time) {
				continue
			}
			switch rec := e.Rec.(type) {
			case *record.Assistant:
				for _, one := range rec.ToolCalls {
					made[one.ID] = one
				}
			case *record.ToolResult:
				if one, ok := made[rec.ToolCallID]; ok && strings.HasPrefix(rec.Output.Text, record.NotDone) {
					list = append(list, call{a.Handle, one.Name, one.Arguments})
				}
			}
		}
	}

	return list, nil
}

func (r rehearsal) apply(ctx context.Context, words []string, merge bool) error {
	list, err := r.chosen(ctx, words)
	if err != nil {
		return err
	}
	var byName []changes.Change
	if len(words) == 0 {
		byName = slices.DeleteFunc(slices.Clone(list), func(one changes.Change) bool { return !one.Later })
		list = slices.DeleteFunc(list, func(one changes.Change) bool { return one.Later })
	}
	results, err := r.copy.Apply(ctx, list, merge)
	if errors.Is(err, changes.ErrBusy) {
		return &term.Problem{Code: fault.ExitFailure, Err: err, Do: "try again when it has ended"}
	}
	if err != nil {
		return term.Wrap(err, "apply changes")
	}
	refused := changes.Refusals(results)
	if r.app.JSON {
		return errors.Join(r.app.PrintJSON(map[string]any{"results": outcomes(results), "left": paths(byName)}), unapplied(refused))
	}
	for _, one := range results {
		r.app.Print("%s\n", term.Clean(strings.TrimRight(fmt.Sprintf("%-8s %s  %s", verb(one), one.Path, one.Why), " ")))
	}
	for _, one := range byName {
		r.app.Print("%s\n", term.Clean(fmt.Sprintf("%-8s %s  runs something later, or tells programs what to run: apply it by its name",
			"left", one.Path)))
	}
	if len(results)+len(byName) == 0 {
		r.app.Note("nothing differs")
	}

	return unapplied(refused)
}

func unapplied(refused []changes.Result) error {
	if len(refused) == 0 {
		return nil
	}
	do := "look at it with: daycare changes PATH"
	if slices.ContainsFunc(refused, func(one changes.Result) bool { return one.Why == changes.Meanwhile }) {
		do = "take both changes with: daycare changes apply --merge PATH"
	}
	return &term.Problem{Code: fault.ExitFailure, Do: do,
		Err: fmt.Errorf("%s not applied", term.Plural(len(refused), "change was", "changes were"))}
}

func verb(r changes.Result) string {
	switch {
	case r.Outcome == changes.Refused:
		return "left"
	case r.To.Missing():
		return "removed"
	case r.From.Missing():
		return "added"
	}
	return "changed"
}

type outcome struct {
	Path    string          `json:"path"`
	Outcome changes.Outcome `json:"outcome"`
	Why     string          `json:"why,omitempty"`
}

func outcomes(results []changes.Result) []outcome {
	out := []outcome{}
	for _, one := range results {
		out = append(out, outcome{one.Path, one.Outcome, one.Why})
	}
	return out
}

func paths(list []changes.Change) []string {
	out := []string{}
	for _, one := range list {
		out = append(out, one.Path)
	}
	return out
}

func (r rehearsal) drop(ctx context.Context, sure bool) error {
	list, err := r.copy.Changes(ctx)
	if err != nil {
		return err
	}
	name := cmp.Or(r.agent.Handle, r.copy.Agent)
	if !sure && len(list) > 0 {
		if !r.app.Asks() {
			return &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s would be lost",
				term.Plural(len(list), "change", "changes")), Do: "drop them with: daycare changes drop --yes"}
		}
		if !r.app.Agrees(fmt.Sprintf("Drop %s of %s?", term.Plural(len(list), "change", "changes"), name)) {
			return nil
		}
	}
	if err := r.copy.Remove(); err != nil {
		return err
	}
	if r.app.JSON {
		return r.app.PrintJSON(map[string]any{"dropped": len(list), "agent": r.copy.Agent})
	}
	r.app.Print("dropped %s\n", term.Plural(len(list), "change", "changes"))
	if r.agent.ID != "" {
		r.app.Note("%s only reads now; remove it with: daycare agents rm %s   (or end its dry run with: "+
			"daycare permissions profile %s default)", name, name, name)
	}

	return nil
}
