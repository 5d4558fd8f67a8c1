package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// Permissions is the group of commands that answer requests, and give and revoke rights.
func Permissions(c *term.App) *cobra.Command {
	cmd := term.Group("permissions", "Review and answer approval requests",
		"  daycare permissions ls\n  daycare permissions allow tz4a98xx --once",
		permissionsLs(c), permissionsShow(c), permissionsAllow(c), permissionsDeny(c), permissionsGrants(c),
		permissionsGrant(c), permissionsRevoke(c),
		permissionsProfile(c), permissionsWhy(c))

	return cmd
}

func permissionsLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls [ID]",
		Short:   "List pending approvals, or those of one agent",
		Example: "  daycare permissions ls\n  daycare permissions ls 0/",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return permissionsGrants(c).RunE(cmd, args)
			}
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}

			asks, err := client.Permissions(cmd.Context())
			if err != nil {
				return fmt.Errorf("list permissions: %w", err)
			}
			if c.JSON {
				return c.PrintJSON(struct {
					Permissions []event.Ask `json:"permissions"`
				}{append([]event.Ask{}, asks...)})
			}
			if len(asks) == 0 {
				c.Note("no pending approvals")
				return nil
			}

			handles := show.Handles(cmd.Context(), client, asks...)
			for i, a := range asks {
				if i > 0 {
					c.Print("\n")
				}
				show.Ask(c.Out, c.OutStyle(), a, handles)
			}

			return nil
		},
	}
}

func permissionsShow(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show TOKEN",
		Short:   "Show one approval request: what would run, where, and what each answer allows",
		Example: "  daycare permissions show tz4a98xx",
		Args:    term.Words(0, "the TOKEN of an approval request"), ValidArgsFunction: c.Complete(requestTokens),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			asks, err := client.Permissions(cmd.Context())
			if err != nil {
				return fmt.Errorf("list permissions: %w", err)
			}

			tokens := make([]string, len(asks))
			for i, a := range asks {
				tokens[i] = a.Token
			}
			n, err := byPrefix("request", tokens, args[0], "daycare permissions ls")
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(asks[n])
			}

			show.Ask(c.Out, c.OutStyle(), asks[n], show.Handles(cmd.Context(), client, asks[n]))
			return nil
		},
	}
}

func permissionsAllow(c *term.App) *cobra.Command {
	var once, prefix bool
	cmd := &cobra.Command{
		Use:   "allow TOKEN",
		Short: "Approve a request: exactly this from now on, --once, or --prefix",
		Long: "Approve a request. Without a flag, exactly this request is allowed from now on; a\n" +
			"command that names a script needs a new approval when the script changes. --once allows this\n" +
			"call only. --prefix allows every command that begins with the words shown by `permissions\n" +
			"show`, with any further words but no other command, redirection or variable in the line.\n" +
			"To withdraw a permission, use `daycare permissions revoke`.",
		Example: "  daycare permissions allow tz4a98xx --once\n  daycare permissions allow tz4a98xx --prefix",
		Args:    term.Words(0, "the TOKEN of an approval request"), ValidArgsFunction: c.Complete(requestTokens),
		RunE: func(cmd *cobra.Command, args []string) error {
			if once {
				return decide(cmd.Context(), c, args[0], "once")
			}
			if prefix {
				return decide(cmd.Context(), c, args[0], "prefix")
			}

			return decide(cmd.Context(), c, args[0], "always")
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "allow this call only")
	cmd.Flags().BoolVar(&prefix, "prefix", false, "allow every command that begins with the same words")
	cmd.MarkFlagsMutuallyExclusive("once", "prefix")

	return cmd
}

func permissionsDeny(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "deny TOKEN",
		Short:   "Deny a request",
		Example: "  daycare permissions deny tz4a98xx",
		Args:    term.Words(0, "the TOKEN of an approval request"), ValidArgsFunction: c.Complete(requestTokens),
		RunE: func(cmd *cobra.Command, args []string) error {
			return decide(cmd.Context(), c, args[0], "deny")
		},
	}
}

func decide(ctx context.Context, c *term.App, typed, decision string) error {
	client, err := c.Daemon(ctx)
	if err != nil {
		return err
	}
	ask, err := findAsk(ctx, client, typed)
	if err != nil {
		return err
	}

	token := ask.Token
	if err := client.Decide(ctx, token, decision, ""); err != nil {
		return fmt.Errorf("answer %s: %w", token, err)
	}
	if c.JSON {
		return c.PrintJSON(struct {
			Token    string `json:"token"`
			Decision string `json:"decision"`
		}{token, decision})
	}
	if i := slices.IndexFunc(ask.Choices, func(c event.Choice) bool { return c.Decision == decision }); show.IsBudget(ask) && i >= 0 {
		c.Print("%s: %s\n", token, ask.Choices[i].Text)
		return nil
	}

	c.Print("%s: %s\n", token, map[string]string{
		"once": "allowed once", "always": "allowed from now on",
		"prefix": "allowed from now on, with any words that follow", "deny": "denied"}[decision])
	return nil
}

// findAsk finds a request by its token or the beginning of it. One that is not in the
// queue goes through as typed: the daemon knows who answered it.
func findAsk(ctx context.Context, client *control.Client, typed string) (event.Ask, error) {
	asks, err := client.Permissions(ctx)
	if err != nil {
		return event.Ask{}, fmt.Errorf("list permissions: %w", err)
	}
	var tokens []string
	for _, a := range asks {
		tokens = append(tokens, a.Token)
	}

	n, err := byPrefix("request", tokens, typed, "")
	if code, _ := term.Explain(err); code == fault.ExitNotFound {
		return event.Ask{Token: typed}, nil
	}
	if err != nil {
		return event.Ask{}, err
	}

	return asks[n], nil
}

// requestTokens completes the tokens of requests that wait.
var requestTokens = term.Listed((*control.Client).Permissions, func(a event.Ask) cobra.Completion {
	return cobra.CompletionWithDesc(a.Token, term.OneLine(a.Tag, 60))
})
