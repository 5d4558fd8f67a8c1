package term

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"daycare/engine/control"
)

// A run is what a command does.
type run = func(*cobra.Command, []string) error

// Read is a command that reads: get asks the daemon, or the files if none runs, and show
// prints the answer. With --json the answer is printed as it is.
func Read[T any](c *App, get func(context.Context, *control.Client, []string) (T, error), show func(T) error) run {
	return func(cmd *cobra.Command, args []string) error {
		client, err := c.Reader(cmd.Context())
		if err != nil {
			return err
		}
		v, err := get(cmd.Context(), client, args)
		if err != nil {
			return err
		}

		if c.JSON {
			return c.PrintJSON(v)
		}
		return show(v)
	}
}

// A Listing is what is special about a command that lists things.
type Listing[T any] struct {
	Key   string // of the list in JSON
	What  string // what is listed, in an error; "": the key
	None  string // a note instead of a table without rows; "": the table
	Get   func(*control.Client, context.Context) ([]T, error)
	Table func([]T) (Table, error)
}

// List is a command that reads a list: a table, or with --json an object with the list.
func List[T any](c *App, l Listing[T]) run {
	return func(cmd *cobra.Command, _ []string) error {
		client, err := c.Reader(cmd.Context())
		if err != nil {
			return err
		}
		list, err := l.Get(client, cmd.Context())
		if err != nil {
			return fmt.Errorf("list %s: %w", cmp.Or(l.What, l.Key), err)
		}
		return l.Show(c, list)
	}
}

// Show prints a list, for commands that read it in another way.
func (l Listing[T]) Show(c *App, list []T) error {
	if c.JSON {
		return c.PrintJSON(map[string][]T{l.Key: append([]T{}, list...)})
	}
	if len(list) == 0 && l.None != "" {
		c.Note("%s", l.None)
		return nil
	}

	t, err := l.Table(list)
	if err != nil {
		return err
	}

	return t.Write(c.Out, c.OutStyle())
}

// Act is a command that has the daemon do something. do returns the result, which --json
// prints, and a sentence about it.
func Act(c *App, do func(ctx context.Context, client *control.Client, args []string) (result any, said string, err error)) run {
	return func(cmd *cobra.Command, args []string) error {
		client, err := c.Daemon(cmd.Context())
		if err != nil {
			return err
		}
		result, said, err := do(cmd.Context(), client, args)
		if err != nil {
			return err
		}

		if c.JSON {
			return c.PrintJSON(result)
		}
		c.Print("%s\n", Clean(said))
		return nil
	}
}
