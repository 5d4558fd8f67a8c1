package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/changes"
	"daycare/engine/control"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// Changes shows what a dry run did, and applies or drops it.
func Changes(c *term.App) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "changes [PATH…]", Short: "Show what an agent changed in a dry run, and what it did not send",
		Long: "Show a diff of what an agent changed in its copy of the folder since the dry run began (chat --dry-run,\n" +
			"or the profile dry-run), and the calls that were recorded instead of made. With PATH, show only these\n" +
			"files and folders. Changes in .git are not included.",
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
		Long: "Apply changes of a dry run to the original folder. A file that has changed there since is left alone\n" +
			"or, with --merge, gets both changes if they do not touch the same lines. Overwritten content is kept in\n" +
			"the folder of the copy. If the command is killed, every file is whole, old or new; the next daycare\n" +
			"changes finishes the work.\n\n" +
			"--all leaves out files that run something later, or that tell programs what to run, such as .envrc or\n" +
			"AGENTS.md: apply those by name. The exit code is 1 if a change was not applied.",
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
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			copies, err := listed(c, at)
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
				c.Note("there are no dry runs; start one with: daycare chat --dry-run TEXT")
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
func listed(c *term.App, at workspace.Place) ([]changes.Copy, error) {
	shelf, err := changes.List(at)
	for _, broken := range shelf.Broken {
		c.Warn("skipped a dry run: %v", broken)
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
		r.app.Print("%s%s\n%s", style.Bold(fmt.Sprintf("%s %s", s.Kind, s.Path)), note(s), s.Diff)
	}
	for _, one := range calls {
		r.app.Print("%s %s\n", style.Bold("not done"), one.String())
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
		notes = append(notes, "runs something later, or tells programs what to run: apply it by name")
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
