package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/agents/providers/catalogue"
	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/lan"
	"daycare/engine/workspace"
)

// maxModelsFile bounds it, in bytes.
const maxModelsFile = 32 << 20

// modelsFile is its path in this workspace; "" without a workspace.
func modelsFile(c *term.App) string {
	at, err := c.Place()
	if err != nil {
		return ""
	}
	path := filepath.Join(at.Data, models.FileName)
	if _, err := models.ReadFetched(path); err != nil {
		c.Warn("%s is ignored: %v; fetch it again with: daycare models refresh", path, err)
	}

	return path
}

// refreshed is what daycare models refresh prints with --json.
type refreshed struct {
	Source  string                 `json:"source"`
	AsOf    string                 `json:"asOf"`
	Models  int                    `json:"models"`
	Changes []catalogue.Difference `json:"changes"`
	Kept    bool                   `json:"kept"` // it is active
}

func modelsRefresh(c *term.App) *cobra.Command {
	var from string
	var dry, yes, reset bool
	cmd := &cobra.Command{
		Use:   "refresh",
		Short: "Fetch a newer list of models, and show its changes before they apply",
		Long: "Fetch a list of models with their context windows and prices, from modelsURL in the settings or from\n" +
			"another URL or file, and show how it differs from the current list. If you agree, or with --yes, daycare\n" +
			"saves it in .daycare/models.json. The list is in daycare's own format or in OpenRouter's (/api/v1/models).\n" +
			"Models in the settings take precedence. daycare sends no key, and only this command fetches a list.",
		Example: "  daycare models refresh\n  daycare models refresh --from models.json --yes\n  daycare models refresh --reset",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			path := filepath.Join(at.Data, models.FileName)
			if reset {
				return forgetModels(cmd.Context(), c, at, path)
			}

			conf, err := c.Config()
			if err != nil {
				return err
			}
			source := cmp.Or(from, conf.ModelsURL)
			data, err := fetchModels(cmd.Context(), source)
			if err != nil {
				return err
			}

			newer, err := catalogue.ReadNewer(data, source, time.Now())
			if err != nil {
				return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("the list from %s is not used: %w", source, err),
					Do: "name another one with --from; the list of models is unchanged"}
			}

			return keepModels(cmd.Context(), c, at, path, models.Catalogue(conf, path), newer, dry, yes)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "fetch the list from this `URL` or file")
	flags.BoolVar(&dry, "dry-run", false, "show the changes without applying them")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	flags.BoolVar(&reset, "reset", false, "go back to the built-in list")
	cmd.MarkFlagsMutuallyExclusive("reset", "from")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes", "reset")

	return cmd
}

// fetchModels reads a list from a file or an address.
func fetchModels(ctx context.Context, source string) ([]byte, error) {
	u, err := url.Parse(source)
	if err != nil || u.Scheme == "" {
		data, err := os.ReadFile(source)
		if errors.Is(err, os.ErrNotExist) {
			return nil, term.NotFound("", "there is no file %s", source)
		}
		return data, err
	}

	if u.Scheme != "https" && (u.Scheme != "http" || !lan.Loopback(u.Hostname())) {
		return nil, &term.Problem{Code: fault.ExitFailure,
			Err: fmt.Errorf("fetch %s: prices are accepted over https only", source),
			Do:  "download it yourself, and name the file with --from"}
	}

	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, err
	}

	req.Header.Set("User-Agent", "daycare")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("fetch the list of models: %w", err),
			Do: "check the network; the list of models is unchanged"}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxModelsFile+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("fetch %s: %s", source, resp.Status),
			Do: "set modelsURL in the settings, or name another with --from"}
	case err != nil:
		return nil, fmt.Errorf("fetch %s: %w", source, err)
	case len(data) > maxModelsFile:
		return nil, fmt.Errorf("fetch %s: it is longer than %d MiB", source, maxModelsFile>>20)
	}

	return data, nil
}

// keepModels shows what a list changes, and keeps it if the user wants that.
func keepModels(ctx context.Context, c *term.App, at workspace.Place, path string, now *catalogue.Catalogue, newer *catalogue.Newer,
	dry, yes bool) error {
	r := refreshed{Source: newer.Source, AsOf: newer.AsOf, Models: len(newer.Models), Changes: now.Compare(newer)}
	if r.Changes == nil {
		r.Changes = []catalogue.Difference{}
	}
	if !c.JSON {
		showChanges(c, r)
	}

	switch {
	case dry || len(r.Changes) == 0:
	case !yes && (c.NoInput || !term.IsTerminal(c.In)):
		return &term.Problem{Code: fault.ExitFailure,
			Err: errors.New("nothing was changed: cannot ask for confirmation without a terminal"),
			Do:  "apply the list without asking: --yes"}
	case yes || c.Yes("use it? [Y/n] "):
		data, err := json.MarshalIndent(newer, "", " ")
		if err == nil {
			err = disk.NewVolume(at.Data).WriteFile("models", path, append(data, '\n'))
		}
		if err != nil {
			return fmt.Errorf("save the list: %w", err)
		}
		r.Kept = true
		reloadModels(ctx, c, at)
	}

	if c.JSON {
		return c.PrintJSON(r)
	}
	if r.Kept {
		c.Print("the new list is active, saved in %s; undo with: daycare models refresh --reset\n", path)
	}

	return nil
}

// maxShown bounds what is listed of the changes.
const maxShown = 40

func showChanges(c *term.App, r refreshed) {
	c.Print("%d models, as of %s, from %s\n", r.Models, r.AsOf, r.Source)
	fresh, shown := 0, 0
	for _, d := range r.Changes {
		if d.New {
			fresh++
			continue
		}
		if shown++; shown <= maxShown {
			c.Print("changed  %s: %s\n", d.ID, strings.Join(d.What, ", "))
		}
	}

	if shown > maxShown {
		c.Print("         and %d more; list all with --json\n", shown-maxShown)
	}
	switch {
	case len(r.Changes) == 0:
		c.Print("no changes\n")
	case fresh > 0:
		c.Print("new      %d models\n", fresh)
	}
}

// forgetModels goes back to the list of the program.
func forgetModels(ctx context.Context, c *term.App, at workspace.Place, path string) error {
	if err := disk.NewVolume(at.Data).Remove("models", path); err != nil {
		return fmt.Errorf("remove the list: %w", err)
	}
	reloadModels(ctx, c, at)
	c.Print("the built-in list is active\n")

	return nil
}

// reloadModels has a running daemon read the list.
func reloadModels(ctx context.Context, c *term.App, at workspace.Place) {
	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) {
		return
	}
	if err == nil {
		_, err = client.Reload(ctx)
	}
	if err != nil {
		c.Warn("the running daemon has not loaded it: %v; restart the daemon", err)
	}
}
