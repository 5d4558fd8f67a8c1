package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// Slash is the group of commands about the commands that users wrote as files.
func Slash(c *term.App) *cobra.Command {
	return term.Group("commands", "List your own slash commands, or show one",
		"  daycare commands ls\n  daycare commands show review main.go", slashLs(c), slashShow(c))
}

func slashLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List your slash commands",
		Long: "List your slash commands: the file .daycare/commands/review.md defines /review, in the\n" +
			"UI, in chats, and in daycare chat and send. Files in .claude/commands work too.",
		Example: "  daycare commands ls",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[control.CommandInfo]{Key: "commands",
			None: "no commands; write a message to .daycare/commands/NAME.md, and /NAME sends it",
			Get:  (*control.Client).Commands,
			Table: func(list []control.CommandInfo) (t term.Table, _ error) {
				t.Row("COMMAND", "ARGUMENTS", "DESCRIPTION", "FILE")
				for _, x := range list {
					t.Row("/"+x.Name, x.Arguments, term.OneLine(x.Description, 60), x.File)
				}
				return t, nil
			}}),
	}
}

func slashShow(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME [ARGUMENTS…]", Short: "Print the message that a command sends",
		Example: "  daycare commands show review main.go",
		Args:    term.Words(-1, "the NAME of a command"), ValidArgsFunction: c.Complete(slashNames),
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (expanded, error) {
			name := strings.TrimPrefix(args[0], "/")
			text, err := client.Expand(ctx, name, strings.Join(args[1:], " "))
			if err != nil {
				return expanded{}, term.About(err, "show", "/"+name)
			}
			return expanded{text}, nil
		}, func(e expanded) error {
			c.Print("%s\n", e.Text)
			return nil
		}),
	}
}

type expanded struct {
	Text string `json:"text"`
}

// slashNames completes the names of commands.
func slashNames(c *term.App, cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // a file, mostly
	}
	return term.Listed((*control.Client).Commands, func(x control.CommandInfo) cobra.Completion {
		return cobra.CompletionWithDesc(x.Name, x.Description)
	})(c, cmd, args, typed)
}
