package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/version"
	"daycare/engine/disk"
	"daycare/engine/workspace"
	"daycare/tools/shell/sandbox"
)

func (c *cli) startCommand() *cobra.Command {
	var background bool
	var listen string
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run the daemon, in the foreground or with --background",
		Long: "Run the daemon in the foreground. Ctrl-C or SIGTERM ends it in order: connectors\n" +
			"stop taking, agents end or suspend their turn, answers go out. A second Ctrl-C\n" +
			"quits at once; that is safe, what was acknowledged is on disk.",
		Example: "  daycare start --background",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := c.root()
			if err != nil {
				return err
			}
			if err := c.ensureHome(root); err != nil {
				return err
			}
			if err := c.nobodyRuns(root); err != nil {
				return err
			}
			c.cautionHome(root)
			if background {
				c.warnOfSettings() // in the foreground the log shows it
				return c.startBackground(cmd.Context(), root, listen)
			}
			return c.startForeground(cmd.Context(), daemon.Options{Workspace: root, Listen: listen})
		},
	}
	cmd.Flags().BoolVar(&background, "background", false, "detach, wait until it answers, print its pid")
	cmd.Flags().StringVar(&listen, "listen", "", "also serve the API at `ADDR` (HOST:PORT); needs control.token in settings")
	return cmd
}

// ensureHome makes .daycare where it is missing, and says so.
func (c *cli) ensureHome(root string) error {
	if exists(filepath.Join(root, home)) {
		return nil
	}
	if _, err := makeHome(root); err != nil {
		return err
	}
	c.note("made %s", filepath.Join(root, home))
	return nil
}

// nobodyRuns is an error that says who holds the workspace.
func (c *cli) nobodyRuns(root string) error {
	if !disk.Held(workspace.Lock(root)) {
		return nil
	}
	if h, err := disk.ReadHolder(workspace.Lock(root)); err == nil && h.PID > 0 && !h.Alive() {
		return nil // it was killed a moment ago, and what it started is about to go as well
	}
	return alreadyRunning(root)
}

func alreadyRunning(root string) error {
	holder, err := disk.ReadHolder(workspace.Lock(root))
	if err != nil || holder.PID == 0 {
		return &problem{code: exitFailure,
			err: fmt.Errorf("another daycare is starting in %s", root),
			do:  "see what it does with: daycare status"}
	}
	return &problem{code: exitFailure,
		err: fmt.Errorf("daycare runs already in %s: pid %d, since %s (%s)", root, holder.PID,
			holder.StartedAt.Local().Format("2006-01-02 15:04:05"), ago(holder.StartedAt.Time, time.Now())),
		do: "stop it with: daycare stop"}
}

// startForeground runs until a signal, then shuts down in order; a second signal
// leaves everything as it is.
func (c *cli) startForeground(ctx context.Context, o daemon.Options) error {
	signals := c.takeSignals()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- c.start(ctx, o, func(b daemon.Banner) { c.showBanner(o, b) })
	}()
	for stopping := false; ; {
		select {
		case err := <-done:
			return c.startEnded(o, err, stopping)
		case <-signals:
			if stopping {
				return errInterrupted
			}
			stopping = true
			c.warn("stopping; once more quits at once")
			cancel()
		}
	}
}

func (c *cli) startEnded(o daemon.Options, err error, stopping bool) error {
	switch {
	case errors.Is(err, disk.ErrLocked):
		return alreadyRunning(o.Workspace)
	case stopping && errors.Is(err, context.Canceled):
		return nil
	case err == nil:
		c.note("stopped")
	}
	return err
}

// showBanner says what runs and why. It is talk, not data; --json makes it one
// object on stdout for scripts that wait for it.
func (c *cli) showBanner(o daemon.Options, b daemon.Banner) {
	if c.json {
		if err := c.printJSON(struct {
			PID       int    `json:"pid"`
			Workspace string `json:"workspace"`
			Socket    string `json:"socket"`
			Listen    string `json:"listen,omitempty"`
			Model     string `json:"model"`
		}{os.Getpid(), o.Workspace, b.Socket, b.Listen, b.Model}); err != nil {
			c.warn("%v", err)
		}
		return
	}
	s := c.talk()
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(c.stderr, "%s %s\n", s.dim(fmt.Sprintf("%-11s", name)), clean(value))
		}
	}
	fmt.Fprintln(c.stderr, s.bold("daycare "+version.Number)+s.dim(fmt.Sprintf("  pid %d", os.Getpid())))
	line("workspace", o.Workspace)
	line("settings", cmp.Or(b.Settings, "none: defaults"))
	line("socket", b.Socket)
	line("listen", b.Listen)
	line("agents", fmt.Sprintf("%d, %s waiting", b.Agents, plural(b.Waiting, "item", "items")))
	line("connectors", cmp.Or(strings.Join(b.Connectors, ", "), "none beside the command line"))
	line("model", strings.TrimSpace(b.Model+"  "+parens(join(", ", b.Provider, b.Why))))
	for _, n := range b.Notes {
		line("note", n)
	}
	line("stop", "Ctrl-C, or: daycare stop")
	c.cautionSandbox()
}

// cautionSandbox says what commands cannot do here because their sandbox is a narrow one.
func (c *cli) cautionSandbox() {
	conf, err := c.config()
	if err != nil {
		return // said already
	}
	if r, err := runner(conf); err == nil && r != nil && r.Level == sandbox.Landlock && !r.HasView() {
		c.warn("%s\n%s", narrow, narrowRemedy)
	}
}

func parens(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// join joins the parts that are not empty.
func join(sep string, parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, sep)
}
