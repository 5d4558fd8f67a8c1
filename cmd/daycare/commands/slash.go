package commands

import (
	"fmt"
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			list, err := client.Commands(cmd.Context())
			if err != nil {
				return fmt.Errorf("list commands: %w", err)
			}
			if c.JSON {
				return c.PrintJSON(struct {
					Commands []control.CommandInfo `json:"commands"`
				}{append([]control.CommandInfo{}, list...)})
			}
			if len(list) == 0 {
				c.Note("no commands; write a message to .daycare/commands/NAME.md, and /NAME sends it")
				return nil
			}

			var t term.Table
			t.Row("COMMAND", "ARGUMENTS", "DESCRIPTION", "FILE")
			for _, x := range list {
				t.Row("/"+x.Name, x.Arguments, term.OneLine(x.Description, 60), x.File)
			}

			return t.Write(c.Out, c.OutStyle())
		},
	}
}

func slashShow(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME [ARGUMENTS…]", Short: "Print the message that a command sends",
		Example: "  daycare commands show review main.go",
		Args:    term.Words(-1, "the NAME of a command"), ValidArgsFunction: c.Complete(slashNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(args[0], "/")
			text, err := client.Expand(cmd.Context(), name, strings.Join(args[1:], " "))
			if err != nil {
				return term.About(err, "show", "/"+name)
			}
			if c.JSON {
				return c.PrintJSON(struct {
					Text string `json:"text"`
				}{text})
			}

			c.Print("%s\n", term.Clean(text))
			return nil
		},
	}
}

// slashNames completes the names of commands.
func slashNames(c *term.App, cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // a file, mostly
	}
	client, err := c.Reader(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	list, err := client.Commands(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, x := range list {
		names = append(names, cobra.CompletionWithDesc(x.Name, x.Description))
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}
