package commands

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// Web opens the page in a browser, and manages the browsers that are logged in.
func Web(c *term.App) *cobra.Command {
	var stay bool
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Open the web page: all agents, approvals, files and costs in a browser",
		Long: "Open the web page in your browser and print its address. daycare starts the daemon if it is not\n" +
			"running; from then on the daemon serves the page. The address has a login token that works once and for\n" +
			"5 minutes; the browser stays logged in for 30 days. For a browser on another machine, see docs/web.md.",
		Example: "  daycare web\n  daycare web --no-open\n  daycare web ls",
		Args:    term.NoSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return openPage(cmd.Context(), c, stay) },
	}
	cmd.Flags().BoolVar(&stay, "no-open", false, "only print the address")
	cmd.AddCommand(webLs(c), webEnd(c))
	return cmd
}

// openPage has the daemon serve the page, and shows it.
func openPage(ctx context.Context, c *term.App, stay bool) error {
	at, err := c.Place()
	if err != nil {
		return err
	}
	if err := setup.EnsureHome(c, at); err != nil {
		return err
	}
	if err := EnsureDaemon(ctx, c, at); err != nil {
		return err
	}
	client, err := c.Daemon(ctx)
	if err != nil {
		return err
	}
	page, err := client.OpenPage(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(page)
	}

	c.Print("%s\n", page.URL)
	if stay {
		return nil
	}
	if why := noBrowser(page.Address); why != "" {
		c.Note("%s open this address within 5 minutes", why)
		return nil
	}
	if err := term.OpenInBrowser(page.URL); err != nil {
		c.Warn("no browser was opened: %v\nopen this address within 5 minutes", err)
	}

	return nil
}

// noBrowser says why no browser can be opened here; "": one can.
func noBrowser(address string) string {
	if os.Getenv("SSH_CONNECTION") != "" {
		port := "PORT"
		if u, err := url.Parse(address); err == nil {
			port = cmp.Or(u.Port(), port)
		}
		return fmt.Sprintf("no browser is opened over SSH; on your own machine, run: ssh -L %s:127.0.0.1:%s HOST, then", port, port)
	}
	if runtime.GOOS != "darwin" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return "there is no display here:"
	}

	return ""
}

func webLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the browsers that are logged in",
		Example: "  daycare web ls\n  daycare web ls --json",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[control.Session]{Key: "sessions", None: "no browser is logged in",
			Get: (*control.Client).Sessions,
			Table: func(list []control.Session) (term.Table, error) {
				var t term.Table
				now := time.Now()
				t.Row("NAME", "LOGGED IN", "LAST USED", "EXPIRES")
				for _, s := range list {
					t.Row(s.Name, term.AgoPtr(s.CreatedAt, now), term.AgoPtr(s.LastAt, now), "in "+term.Span(s.ExpiresAt.Sub(now)))
				}
				return t, nil
			}}),
	}
}

func webEnd(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:               "end NAME",
		Short:             "Log a browser out; its open connections end at once",
		Example:           "  daycare web end web-firefox-1c9e04a2",
		Args:              term.Words(0, "the NAME of a session"),
		ValidArgsFunction: c.Complete(sessionNames),
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (ended, error) {
			return ended{args[0]}, client.EndSession(ctx, args[0])
		}, func(e ended) error {
			c.Print("logged out %s\n", e.Ended)
			return nil
		}),
	}
}

type ended struct {
	Ended string `json:"ended"`
}

// sessionNames completes the name of a session.
var sessionNames = term.Listed((*control.Client).Sessions, func(s control.Session) cobra.Completion { return s.Name })
