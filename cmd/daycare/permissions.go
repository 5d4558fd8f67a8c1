package main

import (
	"context"
	"fmt"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"

	"github.com/spf13/cobra"
)

func (c *cli) permissionsCommand() *cobra.Command {
	cmd := group("permissions", "What agents ask to be allowed, and the answers",
		"  daycare permissions ls\n  daycare permissions allow tz4a98xx --once",
		c.permissionsLs(), c.permissionsAllow(), c.permissionsDeny(), c.permissionsGrants(), c.permissionsRevoke())
	cmd.Aliases = []string{"permission"}
	return cmd
}

func (c *cli) permissionsLs() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "What waits for an answer",
		Example: "  daycare permissions ls",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			asks, err := client.Permissions(cmd.Context())
			if err != nil {
				return fmt.Errorf("list permissions: %w", err)
			}
			if c.json {
				return c.printJSON(struct {
					Permissions []event.Ask `json:"permissions"`
				}{append([]event.Ask{}, asks...)})
			}
			if len(asks) == 0 {
				c.note("nobody asks for anything")
				return nil
			}
			return askTable(asks, handlesByID(cmd.Context(), client), time.Now()).write(c.stdout, c.data())
		},
	}
}

func askTable(asks []event.Ask, handles map[string]string, now time.Time) table {
	var t table
	t.row("TOKEN", "AGENT", "PERMISSION", "ASKED", "EXPIRES", "REQUEST", "REASON")
	for _, a := range asks {
		t.row(a.Token, orElse(handles[a.AgentID], a.AgentID), oneLine(a.Tag, 40), ago(a.AskedAt, now),
			"in "+span(a.ExpiresAt.Sub(now)), oneLine(a.Request, 60), oneLine(a.Reason, 60))
	}
	return t
}

// handlesByID names agents the short way; on trouble by their ids.
func handlesByID(ctx context.Context, client *control.Client) map[string]string {
	out := map[string]string{}
	agents, err := client.Agents(ctx)
	if err != nil {
		return out
	}
	for _, a := range agents {
		out[a.ID] = a.Handle
	}
	return out
}

func (c *cli) permissionsAllow() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "allow TOKEN",
		Short: "Allow what an agent asks: from now on, or --once",
		Long: "Allow what an agent asks. The right stays with the agent (it can be revoked), unless\n" +
			"--once is said: then exactly the call that was asked about is allowed, one time.",
		Example: "  daycare permissions allow tz4a98xx --once",
		Args:    words(0, "the TOKEN of a request"), ValidArgsFunction: c.tokens,
		RunE: func(cmd *cobra.Command, args []string) error {
			if once {
				return c.decide(cmd.Context(), args[0], "once")
			}
			return c.decide(cmd.Context(), args[0], "always")
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "this one call only")
	return cmd
}

func (c *cli) permissionsDeny() *cobra.Command {
	return &cobra.Command{
		Use:     "deny TOKEN",
		Short:   "Deny what an agent asks",
		Example: "  daycare permissions deny tz4a98xx",
		Args:    words(0, "the TOKEN of a request"), ValidArgsFunction: c.tokens,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.decide(cmd.Context(), args[0], "deny")
		},
	}
}

func (c *cli) decide(ctx context.Context, typed, decision string) error {
	client, err := c.daemon(ctx)
	if err != nil {
		return err
	}
	token, err := findAsk(ctx, client, typed)
	if err != nil {
		return err
	}
	if err := client.Decide(ctx, token, decision, ""); err != nil {
		return fmt.Errorf("answer %s: %w", token, err)
	}
	if c.json {
		return c.printJSON(struct {
			Token    string `json:"token"`
			Decision string `json:"decision"`
		}{token, decision})
	}
	c.print("%s: %s\n", token, map[string]string{
		"once": "allowed this once", "always": "allowed from now on", "deny": "denied"}[decision])
	return nil
}

// findAsk completes a token. One that is not in the queue goes through as typed:
// the daemon knows who answered it.
func findAsk(ctx context.Context, client *control.Client, typed string) (string, error) {
	asks, err := client.Permissions(ctx)
	if err != nil {
		return "", fmt.Errorf("list permissions: %w", err)
	}
	var tokens []string
	for _, a := range asks {
		tokens = append(tokens, a.Token)
	}
	n, err := byPrefix("request", tokens, typed, "")
	if code, _ := explain(err); code == exitNotFound {
		return typed, nil
	}
	if err != nil {
		return "", err
	}
	return tokens[n], nil
}

// tokens completes the tokens of requests that wait.
func (c *cli) tokens(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	client, err := c.reader(cmd.Context())
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	asks, err := client.Permissions(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, a := range asks {
		out = append(out, cobra.CompletionWithDesc(a.Token, oneLine(a.Tag, 60)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
