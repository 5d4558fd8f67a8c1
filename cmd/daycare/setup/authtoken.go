package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/apitoken"
	"daycare/engine/disk"
	"daycare/engine/fault"
)

func authToken(c *term.App) *cobra.Command {
	return term.Group("token", "Manage API tokens: what a program may do, and for how long",
		"  daycare auth token create phone --scope chat\n  daycare auth token ls",
		tokenCreate(c), tokenLs(c), tokenRevoke(c))
}

// shownToken is a token as commands show it.
type shownToken struct {
	Name     string           `json:"name"`
	Token    string           `json:"token,omitempty"` // when it is created, and never again
	Scopes   []apitoken.Scope `json:"scopes"`
	Agents   []string         `json:"agents,omitempty"`
	Created  disk.Stamp       `json:"created"`
	LastUsed *time.Time       `json:"lastUsed"`
	Expires  *time.Time       `json:"expires"`
	Expired  bool             `json:"expired"`
}

func tokenCreate(c *term.App) *cobra.Command {
	var scopes, agents []string
	var expires string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an API token and print it once",
		Long: "Create an API token for control.listen and print it. Only its hash is stored, in\n" +
			".daycare/tokens.json, so it cannot be shown again. Scopes: read sees agents, histories and\n" +
			"approvals; chat talks to agents; approve answers approvals; admin does everything. Each\n" +
			"includes read. With --agent the token is limited to these agents: it sees no others and\n" +
			"cannot create agents. A message sent with a token that has neither approve nor admin is\n" +
			"treated as a guest's.",
		Example: "  daycare auth token create phone --scope chat --scope approve --expires 30d\n" +
			"  daycare auth token create display --scope read --agent 0/1",
		Args: term.Words(0, "the NAME of the token"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			rights, err := rightsOf(c, cmd, scopes, agents)
			if err != nil {
				return err
			}

			until, err := expiry(cmd, expires, time.Now())
			if err != nil {
				return err
			}
			secret, made, err := apitoken.Create(at.Data, args[0], rights, until)
			if errors.Is(err, apitoken.ErrTaken) {
				return &term.Problem{Code: fault.ExitUsage, Err: err,
					Do: "choose another name, or revoke it with: daycare auth token revoke " + args[0]}
			}
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(shownToken{Name: args[0], Token: secret, Scopes: made.Scopes,
					Agents: made.Agents, Created: made.Created, Expires: made.Expires})
			}

			c.Print("%s\n", secret)
			c.Note("save it now: it is not shown again. Send it as Authorization: Bearer TOKEN")
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&scopes, "scope", nil, "what it may do: "+apitoken.Names(apitoken.Scopes)+" (repeatable)")
	flags.StringSliceVar(&agents, "agent", nil, "limit the token to this agent: its `ID`, handle or name (repeatable)")
	flags.StringVar(&expires, "expires", "", "when it expires: a duration (12h, 30d) or a date (2026-12-31)")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.AgentRefs)
	_ = cmd.RegisterFlagCompletionFunc("scope",
		cobra.FixedCompletions([]string{"read", "chat", "approve", "admin"}, cobra.ShellCompDirectiveNoFileComp))

	return cmd
}

// rightsOf checks what --scope and --agent were given.
func rightsOf(c *term.App, cmd *cobra.Command, scopes, agents []string) (r apitoken.Rights, err error) {
	for _, s := range scopes {
		if !slices.Contains(apitoken.Scopes, apitoken.Scope(s)) {
			return r, term.Usage(cmd, "--scope %q is unknown; allowed: %s", s, apitoken.Names(apitoken.Scopes))
		}
		if !slices.Contains(r.Scopes, apitoken.Scope(s)) {
			r.Scopes = append(r.Scopes, apitoken.Scope(s))
		}
	}

	if len(r.Scopes) == 0 {
		return r, term.Usage(cmd, "say what the token may do with --scope: %s", apitoken.Names(apitoken.Scopes))
	}
	if cmd.Flags().Changed("agent") && len(agents) == 0 {
		return r, term.Usage(cmd, "--agent is empty; name an agent, or leave it out for all agents")
	}

	r.Agents, err = agentIDs(cmd.Context(), c, agents)
	return r, err
}

// agentIDs are the ids that refs stand for; nil for no refs.
func agentIDs(ctx context.Context, c *term.App, refs []string) (ids []string, err error) {
	if len(refs) == 0 {
		return nil, nil
	}
	client, err := c.Reader(ctx)
	if err != nil {
		return nil, err
	}

	for _, ref := range refs {
		agent, err := client.Agent(ctx, ref)
		if err != nil {
			return nil, term.About(err, "find agent", ref)
		}
		if !slices.Contains(ids, agent.ID) {
			ids = append(ids, agent.ID)
		}
	}

	return ids, nil
}

// expiry reads what --expires was given; "" is never.
func expiry(cmd *cobra.Command, s string, now time.Time) (*time.Time, error) {
	if s == "" {
		return nil, nil
	}
	at, err := time.ParseInLocation(time.DateOnly, s, time.Local)
	if err != nil {
		var d time.Duration
		if d, err = term.Length(s); err == nil {
			at = now.Add(d)
		}
	}
	if err != nil || !at.After(now) {
		return nil, term.Usage(cmd, "--expires %q is neither a duration (12h, 30d) nor a future date (2026-12-31)", s)
	}

	at = at.UTC().Truncate(time.Second)
	return &at, nil
}

func tokenLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List API tokens with their scopes, agents and times, never the tokens themselves",
		Example: "  daycare auth token ls --json",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := tokenList(c)
			if err != nil {
				return err
			}
			return term.Listing[shownToken]{Key: "tokens", Table: tokenTable,
				None: "there are no tokens; create one with: daycare auth token create NAME --scope read"}.Show(c, list)
		},
	}
}

func tokenTable(list []shownToken) (t term.Table, _ error) {
	t.Row("NAME", "SCOPES", "AGENTS", "CREATED", "LAST USED", "EXPIRES")
	now := time.Now()
	for _, k := range list {
		t.Row(k.Name, apitoken.Names(k.Scopes), cmp.Or(strings.Join(k.Agents, ", "), "all"),
			term.Ago(k.Created.Time, now), term.AgoPtr(k.LastUsed, now), k.expiry(now))
	}

	return t, nil
}

// expiry says for users when a token stops working.
func (k shownToken) expiry(now time.Time) string {
	switch {
	case k.Expires == nil:
		return "never"
	case k.Expired:
		return "expired " + term.Ago(*k.Expires, now)
	}

	return "in " + term.Span(k.Expires.Sub(now))
}

// tokenList are the tokens of the workspace by name.
func tokenList(c *term.App) ([]shownToken, error) {
	at, err := c.MadePlace()
	if err != nil {
		return nil, err
	}
	tokens, err := apitoken.List(at.Data)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}

	used := apitoken.Used(at.Data)
	list := []shownToken{}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		k := tokens[name]
		shown := shownToken{Name: name, Scopes: k.Scopes, Agents: k.Agents,
			Created: k.Created, Expires: k.Expires, Expired: k.Expired(time.Now())}
		if at, ok := used[name]; ok && !at.Before(k.Created.Time) { // not of an earlier token with this name
			shown.LastUsed = &at
		}
		list = append(list, shown)
	}

	return list, nil
}

func tokenRevoke(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Revoke an API token; its open connections end at once",
		Example: "  daycare auth token revoke phone",
		Args:    term.Words(0, "the NAME of the token"), ValidArgsFunction: tokenNames(c),
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			err = apitoken.Revoke(at.Data, args[0])
			if errors.Is(err, apitoken.ErrUnknown) {
				return term.NotFound("list them with: daycare auth token ls", "there is no token %q", args[0])
			}
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(struct {
					Revoked string `json:"revoked"`
				}{args[0]})
			}

			c.Print("revoked %s\n", args[0])
			return nil
		},
	}
}

// tokenNames returns what completes the name of a token.
func tokenNames(c *term.App) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		list, err := tokenList(c)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, k := range list {
			names = append(names, k.Name)
		}

		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
