package term

import (
	"context"
	"strings"

	"daycare/engine/control"

	"github.com/spf13/cobra"
)

// Refs completes the first argument with agents.
func (c *App) Refs(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.AgentRefs(cmd, args, typed)
}

// RefsThen completes the first argument with agents, the second with one of the words.
func (c *App) RefsThen(words ...cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		return c.Refs(cmd, args, typed)
	}
}

// OneOf completes a flag that has only these values.
func OneOf(words ...cobra.Completion) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// AgentRefs lists what can be typed for agents: all their handles, and the names that
// begin with what was typed and stand for one agent. Names with a colon are left out:
// bash takes them for two words.
func (c *App) AgentRefs(cmd *cobra.Command, _ []string, typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	client, err := c.Reader(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // errors cannot be shown while a line is being typed
	}
	agents, err := client.Agents(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	named := map[string]int{}
	for _, a := range agents {
		out = append(out, cobra.CompletionWithDesc(a.Handle, OneLine(a.Name, 40)))
		named[a.Name]++
	}

	for _, a := range agents {
		if typed != "" && strings.HasPrefix(a.Name, typed) && named[a.Name] == 1 && !strings.ContainsAny(a.Name, ":\t\r\n") {
			out = append(out, cobra.CompletionWithDesc(a.Name, a.Handle))
		}
	}

	return out, cobra.ShellCompDirectiveNoFileComp
}

// A Completion lists what can be typed for an argument.
type Completion func(app *App, cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// Listed completes the first argument with what the daemon lists; what cannot be read completes nothing.
func Listed[T any](list func(*control.Client, context.Context) ([]T, error), word func(T) cobra.Completion) Completion {
	return func(app *App, cmd *cobra.Command, args []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		client, err := app.Reader(cmd.Context())
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := list(client, cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		for _, one := range all {
			out = append(out, word(one))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// Complete makes a completion of this App.
func (c *App) Complete(f Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f(c, cmd, args, typed)
	}
}
