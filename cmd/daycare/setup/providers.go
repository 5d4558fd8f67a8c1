package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/agents/providers"
	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/workspace"
)

// Providers is the group of commands that list the model services in use, and try them.
func Providers(c *term.App) *cobra.Command {
	return term.Group("providers", "List and test model services",
		"  daycare providers ls\n  daycare providers test", providersLs(c), providersTest(c))
}

// A providerInfo is one model service in --json.
type providerInfo struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Model   string `json:"model"`
	BaseURL string `json:"baseURL,omitempty"`
	Key     bool   `json:"key"` // there is one
	Why     string `json:"why"` // where it comes from
}

func providersLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List model services in the order in which they are tried",
		Long: "List model services in the order in which daycare tries them: those of the running daemon, with its\n" +
			"keys, or else those that a daemon started here would use.",
		Example: "  daycare providers ls",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.WarnOfSettings()
			list, daemon, err := listProviders(cmd.Context(), c)
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(struct {
					Providers []providerInfo `json:"providers"`
				}{list})
			}

			var t term.Table
			t.Row("ID", "TYPE", "MODEL", "KEY", "ADDRESS", "FROM")
			for _, p := range list {
				t.Row(p.ID, p.Type, p.Model, yes(p.Key), cmp.Or(p.BaseURL, "the vendor's"), p.Why)
			}

			if err := t.Write(c.Out, c.OutStyle()); err != nil {
				return err
			}
			if daemon {
				c.Note("as the running daemon uses them")
			}

			return nil
		},
	}
}

// listProviders lists the providers as the daemon uses them, and says so; without one,
// as a daemon would that is started from this shell.
func listProviders(ctx context.Context, c *term.App) (list []providerInfo, daemon bool, err error) {
	at, err := c.Place()
	if err != nil {
		return nil, false, err
	}
	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) {
		conf, err := c.Config()
		if err != nil {
			return nil, false, err
		}
		for _, p := range conf.Choose(ctx, config.Ollama) {
			list = append(list, providerInfo{p.ID, p.Type, p.Model, config.HideLogin(p.BaseURL), !p.APIKey.IsZero(), p.Why})
		}
		return list, false, nil
	}
	if err != nil {
		return nil, false, err
	}

	theirs, err := client.Providers(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("list providers: %w", err)
	}
	for _, p := range theirs {
		list = append(list, providerInfo{p.ID, p.Type, p.Model, p.BaseURL, p.Key, p.Detail})
	}

	if what, do := Missed(ctx, at, theirs); what != "" {
		c.Warn("warning: %s\n%s", what, do)
	}

	return list, true, nil
}

func providersTest(c *term.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "test [ID…]",
		Short: "Test each model service with a one-word request",
		Long: "Test each model service, or those named, with a one-word request, and print how long it\n" +
			"took or what is wrong. It costs a few dozen tokens.",
		Example: "  daycare providers test\n  daycare providers test claude --timeout 10s",
		Args:    term.Words(-1), ValidArgsFunction: c.Complete(providerIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.WarnOfSettings()
			conf, err := c.Config()
			if err != nil {
				return err
			}

			list, err := named(conf.Choose(cmd.Context(), config.Ollama), args)
			if err != nil {
				return err
			}

			at, err := c.Place()
			if err != nil {
				return err
			}
			if client, err := c.Dial(cmd.Context(), at); err == nil {
				WarnOfMissed(cmd.Context(), c, at, client)
			}

			return testProviders(cmd.Context(), c, models.Catalogue(conf, modelsFile(c)), at, list, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", trialTime, "time limit for each service")

	return cmd
}

// providerIDs completes the ids of providers that are not on the line yet.
func providerIDs(c *term.App, cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var ids []cobra.Completion
	if conf, err := c.Config(); err == nil {
		for _, p := range conf.Choose(cmd.Context(), nil) {
			if !slices.Contains(args, p.ID) {
				ids = append(ids, cobra.CompletionWithDesc(p.ID, p.Model))
			}
		}
	}

	return ids, cobra.ShellCompDirectiveNoFileComp
}

// named are the providers with the ids; all without any.
func named(all []config.Provider, ids []string) ([]config.Provider, error) {
	if len(ids) == 0 {
		return all, nil
	}
	var some []config.Provider
	for _, id := range ids {
		found := false
		for _, p := range all {
			if p.ID == id {
				some, found = append(some, p), true
			}
		}
		if !found {
			return nil, term.NotFound("list them with: daycare providers ls", "no provider %q", id)
		}
	}

	return some, nil
}

// trialTime bounds the test of a provider that nobody gave a time.
const trialTime = 30 * time.Second

// TestProvider is daycare providers test with one id. An error is about the id.
func TestProvider(ctx context.Context, c *term.App, id string) (any, error) {
	conf, err := c.Config()
	if err != nil {
		return nil, err
	}
	list, err := named(conf.Choose(ctx, config.Ollama), []string{id})
	if err != nil {
		return nil, err
	}
	at, err := c.Place()
	if err != nil {
		return nil, err
	}

	return try(ctx, models.Catalogue(conf, modelsFile(c)), at, list[0], trialTime), nil
}

// A trial is how one provider did.
type trial struct {
	ID      string  `json:"id"`
	Model   string  `json:"model"`
	OK      bool    `json:"ok"`
	FirstMS int64   `json:"firstMs,omitempty"` // to the first piece of the answer
	MS      int64   `json:"ms"`
	Cost    float64 `json:"cost"`
	Answer  string  `json:"answer,omitempty"`
	Error   string  `json:"error,omitempty"`
	Remedy  string  `json:"remedy,omitempty"`
}

func testProviders(ctx context.Context, c *term.App, cat pricer, at workspace.Place, list []config.Provider, timeout time.Duration) error {
	var failed error
	var tried struct {
		Providers []trial `json:"providers"`
	}
	for _, p := range list {
		t := try(ctx, cat, at, p, timeout)
		if !t.OK {
			failed = term.ErrSilent
		}
		if tried.Providers = append(tried.Providers, t); !c.JSON {
			showTrial(c, t)
		}
	}

	if c.JSON {
		return errors.Join(c.PrintJSON(tried), failed)
	}

	return failed
}

func showTrial(c *term.App, t trial) {
	s := c.OutStyle()
	if !t.OK {
		c.Print("%s  %s  %s: %s\n", s.Red("failed"), t.ID, t.Model, t.Error)
		if t.Remedy != "" {
			c.Print("        %s\n", s.Dim("→ "+t.Remedy))
		}
		return
	}
	c.Print("ok      %s  %s  first word after %d ms, done after %d ms, %s\n", t.ID, t.Model, t.FirstMS, t.MS, term.Money(t.Cost))
}

// A pricer knows what calls cost.
type pricer interface {
	Cost(provider, model string, u providers.Usage, at time.Time) (usd float64, known bool)
}

// try makes one request, and none again.
func try(ctx context.Context, cat pricer, at workspace.Place, p config.Provider, timeout time.Duration) trial {
	t := trial{ID: p.ID, Model: p.Model}
	made, err := plugins.NewProvider(at, p, p.APIKey.Reveal)
	if err != nil {
		t.Error, t.Remedy = err.Error(), "correct the settings of this provider"
		return t
	}

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req := &providers.Request{MaxTokens: 256, Foreground: true, Messages: []*providers.Message{
		{Role: providers.User, Parts: []providers.Part{providers.Text{Text: "Answer with the one word: ready"}}}}}
	began := time.Now()
	var answer strings.Builder
	for ev := range made.Stream(ctx, req) {
		if t.FirstMS == 0 {
			t.FirstMS = passed(began)
		}
		switch ev := ev.(type) {
		case providers.ContentDelta:
			answer.WriteString(ev.Text)
		case providers.Complete:
			t.OK = true
			t.Model = cmp.Or(ev.Model, p.Model)
			t.Cost, _ = cat.Cost(p.ID, t.Model, ev.Usage, began)
		case providers.Error:
			t.Error, t.Remedy = diagnose(p, ev.Err, timeout)
		}
	}

	t.MS, t.Answer = passed(began), term.OneLine(answer.String(), 80)
	return t
}

// passed is how many milliseconds have passed, 1 or more.
func passed(since time.Time) int64 { return max(1, time.Since(since).Milliseconds()) }

// diagnose says what went wrong with a provider, and what to do about it.
func diagnose(p config.Provider, err error, timeout time.Duration) (what, remedy string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s",
			timeout), "check the network and the address; a local server may be loading its model: --timeout 2m"
	}
	f := providers.Classify(p.ID, err)
	switch f.Kind {
	case providers.NoKey: // it says what to do itself
	case providers.Down:
		remedy = "start the server, or correct baseURL in the settings"
	case providers.Auth:
		remedy = "set its key with: daycare auth set " + p.ID + "; or check the account's credit"
	case providers.Busy:
		remedy = "the service is busy, or the account is at its limit: try again later"
	case providers.Broken:
		remedy = "check the network, and baseURL in the settings"
	case providers.Overflow:
		remedy = "the model's context window is too small"
	default:
		remedy = "check model, baseURL and options in the settings; list models with: daycare models"
	}

	return f.Error(), remedy
}
