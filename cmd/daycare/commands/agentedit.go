package commands

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/folders"
)

// agentsEdit opens a file of an agent in an editor, on a copy, and puts it in place when it is right.
func agentsEdit(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "edit ID [FILE]", Short: "Edit a file of an agent in $EDITOR, checked before it is saved",
		Long: "Edit descriptor.json (default), state.json or history.jsonl of an agent in $EDITOR.\n" +
			"You edit a copy. When you save, daycare checks it and replaces the file in one step. If the file has\n" +
			"changed since you opened it, daycare overwrites nothing and keeps your copy.",
		Example:           "  daycare agents edit 0/ state.json",
		Args:              term.Words(1, "the ID of an agent"),
		ValidArgsFunction: c.RefsThen("descriptor.json", "state.json", "history.jsonl"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			name := "descriptor.json"
			if len(args) > 1 {
				name = filepath.Base(args[1])
			}

			return editAgent(cmd.Context(), c, client, args[0], name)
		},
	}
}

func editAgent(ctx context.Context, c *term.App, client *control.Client, ref, name string) error {
	if _, err := folders.CheckFile(name, nil); err != nil { // some are only read
		return err
	}
	a, err := client.Agent(ctx, ref)
	if err != nil {
		return term.About(err, "find agent", ref)
	}
	before, hash, err := client.Folders().ReadFile(ctx, a.ID, name)
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", name, a.Handle, err)
	}

	path, err := copyFor(name, before)
	if err != nil {
		return err
	}

	for {
		after, err := edit(ctx, c, path)
		if err != nil {
			return leftEditor(c, err, path, before, a.ID)
		}
		if bytes.Equal(before, after) {
			removeCopy(path)
			c.Note("no changes")
			return nil
		}

		err = client.Folders().WriteFile(ctx, a.ID, name, after, hash)
		if err == nil {
			removeCopy(path)
			c.Print("saved %s of %s; it takes effect with the next turn\n", name, a.Handle)
			return nil
		}

		again, err := notSaved(c, err, path)
		if !again {
			return err
		}
	}
}

// agentsRename changes the name in the descriptor of an agent.
func agentsRename(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "rename ID NAME", Short: "Give an agent another name",
		Long: "Give an agent another name; its handle and its id stay. Other agents find it by the new name.\n" +
			"An empty NAME gives an agent of a chat the name back that it has without one.",
		Example: "  daycare agents rename 1/ \"release notes\"\n  daycare agents rename 1/ \"\"",
		Args:    term.Words(-1, "the ID of an agent", "a NAME"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			client, err := c.Reader(ctx)
			if err != nil {
				return err
			}
			a, err := client.Agent(ctx, args[0])
			if err != nil {
				return term.About(err, "find agent", args[0])
			}

			if err := client.Folders().Rename(ctx, a, strings.TrimSpace(strings.Join(args[1:], " "))); err != nil {
				return fmt.Errorf("rename %s: %w", a.Handle, err)
			}
			if client, err = c.Reader(ctx); err != nil { // what reads the files has read the old name
				return err
			}
			if a, err = client.Agent(ctx, a.ID); err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(a)
			}
			c.Print("%s  %s\n", a.Handle, a.Name)

			return nil
		},
	}
}

// copyFor makes the copy of a file that an editor gets, in a folder of its own.
func copyFor(name string, content []byte) (path string, err error) {
	dir, err := os.MkdirTemp("", "daycare-edit-")
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", name, err)
	}

	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("copy %s: %w", name, err)
	}

	return path, nil
}

func removeCopy(path string) { os.RemoveAll(filepath.Dir(path)) }

// leftEditor is the error of an editor that failed. A copy in which something was changed
// is kept.
func leftEditor(c *term.App, err error, path string, before []byte, agent string) error {
	name := filepath.Base(path)
	if now, readErr := os.ReadFile(path); readErr != nil || !bytes.Equal(now, before) {
		return fmt.Errorf("edit %s: %w; your copy is %s", name, err, path)
	}
	removeCopy(path)
	at, rootErr := c.MadePlace()
	if errors.Is(err, errNoEditor) && rootErr == nil {
		return noEditor(filepath.Join(at.Data, "agents", agent, name))
	}

	return fmt.Errorf("edit %s: %w", name, err)
}

// notSaved says why an edit was refused, and asks a user whether to continue.
func notSaved(c *term.App, err error, path string) (again bool, _ error) {
	var unfit *control.Unfit
	var conflict *control.Conflict
	switch {
	case errors.As(err, &unfit) && c.JSON:
		return false, &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("nothing was saved: %w", unfit), Do: "your copy is " + path}
	case errors.As(err, &unfit):
		for _, f := range unfit.Findings {
			f.File = path
			c.Warn("%s", f.Error())
		}
		if !c.NoInput && term.IsTerminal(c.In) && c.Yes("edit again? [Y/n] ") {
			return true, nil
		}
		return false, &term.Problem{Code: fault.ExitFailure, Err: errors.New("nothing was saved"), Do: "your copy is " + path}
	case errors.As(err, &conflict):
		return false, &term.Problem{Code: fault.ExitFailure,
			Err: errors.New("the file changed on disk while you edited it; nothing was overwritten"),
			Do:  "your copy is " + path}
	}

	return false, fmt.Errorf("save: %w; your copy is %s", err, path)
}

// edit runs the editor on a file and reads what it left.
func edit(ctx context.Context, c *term.App, path string) ([]byte, error) {
	editor, err := editorOf(c)
	if err != nil {
		return nil, err
	}
	if err := runEditor(ctx, editor, path); err != nil {
		return nil, err
	}

	return os.ReadFile(path)
}

var errNoEditor = errors.New("there is no terminal for an editor")

// noEditor is the error for a file that no editor can be opened on.
func noEditor(path string) error {
	return &term.Problem{Code: fault.ExitUsage, Err: errNoEditor, Do: "edit the file itself, " + path + "; or set EDITOR"}
}

// editorOf returns the user's editor, vi if they chose none. A chosen one may
// be a program that needs no terminal.
func editorOf(c *term.App) (string, error) {
	if editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")); editor != "" {
		return editor, nil
	}
	if !term.IsTerminal(c.In) || !term.IsTerminal(c.Out) {
		return "", errNoEditor
	}

	return "vi", nil
}
