package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"daycare/cmd/daycare/term"
	"daycare/engine/changes"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// A rehearsal is a dry run that a command is about.
type rehearsal struct {
	app    *term.App
	client *control.Client
	copy   changes.Copy
	agent  event.Agent // without an id: it was removed
}

// findRehearsal finds the dry run of an agent, "": the newest. An apply that was cut is finished.
func findRehearsal(ctx context.Context, c *term.App, ref string) (r rehearsal, err error) {
	at, err := c.MadePlace()
	if err != nil {
		return r, err
	}

	r.app = c
	if r.client, err = c.Reader(ctx); err != nil {
		return r, err
	}

	copies, err := listed(c, at)
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
		return r, term.NotFound("start one with: daycare chat --dry-run TEXT", "there is no dry run")
	}

	r.copy = copies[0]
	if ref == "" {
		r.agent, _ = r.client.Agent(ctx, r.copy.Agent) // it may be gone; the copy is not
	}
	if changes.Pending(r.copy.Dir) {
		if err := r.copy.Resume(); err != nil {
			return r, err
		}
		c.Note("finished an interrupted apply")
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
		r.app.Print("%s\n", strings.TrimRight(fmt.Sprintf("%-8s %s  %s", verb(one), one.Path, one.Why), " "))
	}
	for _, one := range byName {
		r.app.Print("left     %s  runs something later, or tells programs what to run: apply it by name\n", one.Path)
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
		do = "merge both changes with: daycare changes apply --merge PATH"
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
		r.app.Note("%s is read-only now; remove it with: daycare agents rm %s   (or end its dry run with: "+
			"daycare permissions profile %s default)", name, name, name)
	}

	return nil
}
