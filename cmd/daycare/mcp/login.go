package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
	"daycare/engine/fault"
	"daycare/tools/mcp"
)

// loginIn bounds how long a user may take to log in.
const loginIn = 10 * time.Minute

func login(c *term.App) *cobra.Command {
	var l browser
	var scopes []string
	cmd := &cobra.Command{
		Use:   "login ID",
		Short: "Log in to an MCP server with a browser",
		Long: "Log in to an MCP server that requires OAuth: open an address in your browser, wait for the redirect to\n" +
			"this machine, and save the tokens in auth.json. daycare renews them automatically. On a machine without a\n" +
			"browser, use --no-browser: open the address elsewhere and paste the address that the browser ends at, even\n" +
			"though the browser shows an error there.",
		Example: "  daycare mcp login hub\n  daycare mcp login hub --no-browser",
		Args:    term.Words(0, "the ID of an MCP server"), ValidArgsFunction: c.Complete(ids),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := known(c, args[0]); err != nil {
				return err
			}
			at, err := c.Place()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), loginIn)
			defer cancel()
			l.app = c
			redirect, stop, err := l.listen(ctx)
			if err != nil {
				return err
			}
			defer stop()
			list, err := daemon.LoginMCP(ctx, at, args[0], mcp.Asker{Redirect: redirect, Scopes: scopes, Ask: l.ask}, c.Warn)
			if err != nil {
				return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("log in to %s: %w", args[0], err),
					Do: "try again: daycare mcp login " + args[0]}
			}
			c.Note("logged in to %s, which has %d tools; the tokens are in auth.json", args[0], len(list))
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&l.none, "no-browser", false, "only print the address, and read the one that the browser ends at")
	f.IntVar(&l.port, "port", 0, "the port of the redirect address, if the service requires a fixed one")
	f.StringSliceVar(&scopes, "scope", nil, "a scope to request in addition to those that the service asks for")
	return cmd
}

// A browser has the user log in with one.
type browser struct {
	app     *term.App
	none    bool
	port    int
	answers chan *url.URL // where it was sent to
}

// listen waits for the browser on a port of this machine alone (RFC 8252, 7.3).
func (b *browser) listen(ctx context.Context) (redirect string, stop func(), err error) {
	var conf net.ListenConfig
	l, err := conf.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", b.port))
	if err != nil {
		return "", nil, fmt.Errorf("wait for the browser: %w", err)
	}
	b.answers = make(chan *url.URL, 1)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Method != http.MethodGet || r.URL.Path != "/callback" || !q.Has("state") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "daycare received the answer. You can close this page and return to the terminal.")
		select {
		case b.answers <- r.URL:
		default: // it has one
		}
	})}
	go server.Serve(l)
	return "http://" + l.Addr().String() + "/callback", func() { server.Close() }, nil
}

// ask shows an address, and waits for where the browser is sent to.
func (b *browser) ask(ctx context.Context, address string) (*url.URL, error) {
	b.app.Print("Open this address to log in:\n\n  %s\n\n", address)
	if b.none {
		b.app.Print("Then paste the address that the browser ends at: ")
		go b.paste()
	} else if err := term.OpenInBrowser(address); err != nil {
		b.app.Note("no browser could be opened (%v); open the address yourself", err)
	}
	select {
	case answer := <-b.answers:
		return answer, nil
	case <-ctx.Done():
		return nil, errors.New("no login within " + loginIn.String())
	}
}

// paste reads the address of the user.
func (b *browser) paste() {
	lines := bufio.NewScanner(b.app.In)
	for lines.Scan() {
		answer, err := url.Parse(strings.TrimSpace(lines.Text()))
		if err != nil || !answer.Query().Has("state") {
			b.app.Note("this is not the final address: that one contains code= and state=")
			continue
		}
		b.answers <- answer
		return
	}
}
