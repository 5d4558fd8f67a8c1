package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
)

// agentsModel shows or changes the model that answers for an agent.
func agentsModel(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "model ID [MODEL]", Short: "Show or change the model of an agent",
		Long: "Show the model that an agent uses. With MODEL, switch to it from the next turn on: MODEL is a model\n" +
			"that a provider in the settings serves, the id of a provider (for its model), or PROVIDER/MODEL.\n" +
			"\"default\" returns to the settings. The conversation continues unchanged.",
		Example: "  daycare agents model 0/\n  daycare agents model 0/ claude-opus-5-5\n  daycare agents model 0/ local/qwen3",
		Args:    term.Words(1, "the ID of an agent"), ValidArgsFunction: c.Complete(refsThenModels),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			a, err := client.Agent(cmd.Context(), args[0])
			if err != nil {
				return term.About(err, "find agent", args[0])
			}

			typed := ""
			if len(args) > 1 {
				typed = args[1]
			}
			choice, err := client.Folders().Switch(cmd.Context(), a.ID, typed)
			if err != nil {
				return fmt.Errorf("%s: %w", a.Handle, err)
			}
			if c.JSON {
				return c.PrintJSON(choice)
			}

			c.Print("%s\n", show.Choice(a.Handle, choice, typed != ""))
			return nil
		},
	}
}

// refsThenModels completes an agent, then a model.
func refsThenModels(c *term.App, cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return c.Refs(cmd, args, typed)
	}
	return setup.ModelNames(c, cmd, nil, typed)
}
