package setup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/agents/providers/catalogue"
	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
)

// Models lists models with their sizes and prices; its subcommand fetches a newer list.
func Models(c *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models [NAME]",
		Short: "List known models, or show one",
		Long: "List known models with their context window, prices in US dollars per million tokens and thinking\n" +
			"levels. Entries under `models` in the settings take precedence. You can write NAME as the service does,\n" +
			"with the vendor in front or a date at the end.",
		Example: "  daycare models\n  daycare models anthropic/claude-opus-5.5\n  daycare models refresh",
		Args:    term.Words(1), ValidArgsFunction: c.Complete(ModelNames),
		RunE: func(_ *cobra.Command, args []string) error {
			conf, err := c.Config()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return listModels(c, models.Catalogue(conf, modelsFile(c)), conf)
			}

			return showModel(c, models.Catalogue(conf, modelsFile(c)), args[0])
		},
	}
	cmd.AddCommand(modelsRefresh(c))

	return cmd
}

// ModelNames completes the name of a model.
func ModelNames(c *term.App, _ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	if conf, err := c.Config(); err == nil && len(args) == 0 {
		for _, m := range models.Catalogue(conf, modelsFile(c)).All() {
			names = append(names, cobra.CompletionWithDesc(m.ID, m.Vendor))
		}
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}

// A modelInfo is one model in --json; prices are those of today.
type modelInfo struct {
	catalogue.Model
	Providers []string `json:"providers,omitempty"` // of the settings, that use it
}

func listModels(c *term.App, cat *catalogue.Catalogue, conf *config.Config) error {
	all := cat.All()
	users := usersOf(cat, conf)
	if c.JSON {
		list := make([]modelInfo, len(all))
		for i, m := range all {
			list[i] = modelInfo{today(m), users[m.ID]}
		}
		return c.PrintJSON(struct {
			AsOf   string      `json:"asOf"`
			Models []modelInfo `json:"models"`
		}{cat.AsOf(), list})
	}

	var t term.Table
	t.Row("MODEL", "VENDOR", "WINDOW", "ANSWER", "IMAGES", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "USED BY")
	for _, m := range all {
		p := m.PriceAt(time.Now(), 0)
		t.Row(m.ID, cmp.Or(m.Vendor, "settings"), count(m.Window), count(m.MaxOutput), yes(m.Images),
			dollars(p.Input), dollars(p.Output), dollars(p.CacheRead), dollars(p.CacheWrite), strings.Join(users[m.ID], ", "))
	}

	if err := t.Write(c.Out, c.OutStyle()); err != nil {
		return err
	}
	c.Note("US dollars per million tokens, as of %s; - means unknown; show one model: daycare models NAME", cat.AsOf())
	return nil
}

// usersOf is which providers of the settings use which model.
func usersOf(cat *catalogue.Catalogue, conf *config.Config) map[string][]string {
	users := map[string][]string{}
	for _, p := range conf.Providers {
		if m, ok := cat.Find(p.ID, p.Model); ok && !slices.Contains(users[m.ID], p.ID) {
			users[m.ID] = append(users[m.ID], p.ID)
		}
	}

	return users
}

func today(m catalogue.Model) catalogue.Model {
	m.Price = m.PriceAt(time.Now(), 0)
	return m
}

func showModel(c *term.App, cat *catalogue.Catalogue, name string) error {
	var unknown *catalogue.UnknownModel
	if err := cat.Check("", name); errors.As(err, &unknown) {
		do := "list all with: daycare models"
		if len(unknown.Near) > 0 {
			do = "similar names: " + strings.Join(unknown.Near, ", ")
		}
		return term.NotFound(do, "unknown model %q", name)
	}

	m, _ := cat.Find("", name)
	if c.JSON {
		return c.PrintJSON(modelInfo{Model: today(m)})
	}
	p := m.PriceAt(time.Now(), 0)
	c.Fields("model", m.ID, "also", strings.Join(m.Aliases, ", "), "vendor", m.Vendor,
		"window", tokens(m.Window), "answer", tokens(m.MaxOutput), "images", yes(m.Images),
		"thinking", cmp.Or(strings.Join(m.Thinking, ", "), "-"), "price", priceLine(p))
	if m.Long != nil {
		c.Fields("long    ", fmt.Sprintf("prompts over %s: %s", tokens(int(m.Long.Over)), priceLine(m.PriceAt(time.Now(), m.Long.Over+1))))
	}
	if m.Next != nil && time.Now().UTC().Format(time.DateOnly) < m.Next.From {
		c.Fields("later   ", fmt.Sprintf("from %s: %s", m.Next.From, priceLine(m.Next.Price)))
	}

	return nil
}

func priceLine(p catalogue.Price) string {
	if p == (catalogue.Price{}) {
		return "unknown; set it in the settings (models)"
	}
	return fmt.Sprintf("input %s, output %s, cache read %s, cache write %s (US dollars per million tokens)",
		dollars(p.Input), dollars(p.Output), dollars(p.CacheRead), dollars(p.CacheWrite))
}

func dollars(p *float64) string {
	if p == nil {
		return "-"
	}
	return strconv.FormatFloat(*p, 'f', -1, 64)
}

// count is a number of tokens, short: 200k, 1.05M.
func count(n int) string {
	switch {
	case n == 0:
		return "-"
	case n < 1_000_000:
		return strconv.Itoa(n/1000) + "k"
	}

	return strconv.FormatFloat(float64(n/10_000)/100, 'f', -1, 64) + "M"
}

func tokens(n int) string {
	if n == 0 {
		return "unknown"
	}
	return strconv.Itoa(n) + " tokens"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}
