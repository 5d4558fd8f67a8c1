package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/config"

	"github.com/spf13/cobra"
)

func (c *cli) serviceCommand() *cobra.Command {
	return group("service", "Keep the daemon of this workspace running, from login on",
		"  daycare service install --dry-run\n  daycare service status",
		c.serviceInstall(), c.serviceUninstall(), c.serviceStatus())
}

func (c *cli) serviceInstall() *cobra.Command {
	var dry bool
	var system string
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Have the system start the daemon at login, and again when it ends badly",
		Long: "Have the system start the daemon at login, and again when it was killed or when its\n" +
			"storage failed (exit code 75). A service does not see your shell's environment: keep\n" +
			"keys with daycare auth set.",
		Example: "  daycare service install --dry-run\n  daycare service install",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.service(system)
			if err != nil {
				return err
			}
			c.warnOfEnvironment()
			if dry {
				return c.showService(s)
			}
			return c.installService(cmd.Context(), s)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be written and run, and do nothing")
	cmd.Flags().StringVar(&system, "system", "", "systemd or launchd (default: this machine's)")
	_ = cmd.RegisterFlagCompletionFunc("system",
		cobra.FixedCompletions([]cobra.Completion{"systemd", "launchd"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *cli) service(system string) (service, error) {
	root, err := c.madeRoot()
	if err != nil {
		return service{}, err
	}
	return newService(root, system)
}

func (c *cli) showService(s service) error {
	if c.json {
		return c.printJSON(struct {
			Name     string     `json:"name"`
			Path     string     `json:"path"`
			Unit     string     `json:"unit"`
			Commands [][]string `json:"commands"`
		}{s.name, s.path, s.unit(), s.commands(true)})
	}
	c.print("# %s\n%s", s.path, s.unit())
	for _, command := range s.commands(true) {
		c.print("# then: %s\n", strings.Join(command, " "))
	}
	return nil
}

// warnOfEnvironment names the keys that this shell knows and a service will not.
func (c *cli) warnOfEnvironment() {
	conf, err := c.config()
	if err != nil {
		return // told when the daemon starts
	}
	for _, s := range conf.SecretSources() {
		if s.Source != "" && s.Source != config.AuthName && !s.File && len(s.UsedBy) > 0 {
			c.warn("a service does not see %s of this shell; keep it with: daycare auth set %s", s.Source, s.ID)
		}
	}
	if len(conf.Providers) > 0 {
		return
	}
	for _, ch := range choices() {
		if ch.keyEnv != "" && !conf.SecretEnv(ch.keyEnv).IsZero() {
			c.warn("a service does not see %s of this shell; set it up with: daycare init", ch.keyEnv)
		}
	}
}

// installService writes the unit and has it run. Again, it takes over what changed.
func (c *cli) installService(ctx context.Context, s service) error {
	before, err := os.ReadFile(s.path)
	again := err == nil && s.active(ctx)
	switch {
	case again && string(before) == s.unit():
		c.print("installed already: %s\n", s.path)
		return c.serviceAnswers(ctx, s)
	case !again:
		if err := c.nobodyRuns(s.workspace); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	root := filepath.Join(s.workspace, home)
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "logs"), 0o700), config.Ignore(root)); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	if err := os.WriteFile(s.path, []byte(s.unit()), 0o644); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	commands := s.commands(true)
	if again {
		commands = s.replacing()
	}
	for _, command := range commands {
		if err := s.run(ctx, command); err != nil {
			return &problem{code: exitFailure, err: fmt.Errorf("install service: %w", err),
				do: "the file is written: " + s.path + "; run by hand: " + strings.Join(command, " ")}
		}
	}
	c.print("installed %s\n", s.path)
	if err := c.serviceAnswers(ctx, s); err != nil {
		return err
	}
	if s.system == "systemd" {
		c.note("to have it run while you are not logged in: loginctl enable-linger")
	}
	return nil
}

// serviceAnswers waits until the daemon that the system started answers.
func (c *cli) serviceAnswers(ctx context.Context, s service) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		if client, err := c.dial(ctx, s.workspace); err == nil {
			state, err := client.Status(ctx)
			client.Close()
			if err == nil {
				c.note("the daemon runs with pid %d, and comes back when it ends badly; see: daycare service status", state.PID)
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return &problem{code: exitTimeout,
				err: fmt.Errorf("the service is installed, and the daemon does not answer after %s", startWait), do: "see why: " + s.log()}
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *cli) serviceUninstall() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Stop the service and forget it",
		Example: "  daycare service uninstall",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.service("")
			if err != nil {
				return err
			}
			if !exists(s.path) {
				return notFound("install it with: daycare service install", "no service is installed for %s", s.workspace)
			}
			return c.uninstallService(cmd.Context(), s, dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be done, and do nothing")
	return cmd
}

func (c *cli) uninstallService(ctx context.Context, s service, dry bool) error {
	do := func(command []string) {
		if dry {
			c.print("%s\n", strings.Join(command, " "))
		} else if err := s.run(ctx, command); err != nil {
			c.warn("%v", err) // it may not have been running
		}
	}
	for _, command := range s.commands(false) {
		do(command)
	}
	if dry {
		c.print("rm %s\n", s.path)
	} else if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("uninstall service: %w", err)
	}
	if s.system == "systemd" {
		do([]string{"systemctl", "--user", "daemon-reload"})
	}
	if !dry {
		c.print("removed %s\n", s.path)
	}
	return nil
}

func (c *cli) serviceStatus() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Whether the service is installed and runs",
		Example: "  daycare service status --json",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.service("")
			if err != nil {
				return err
			}
			state := s.state(cmd.Context())
			if c.json {
				return c.printJSON(struct {
					Name      string `json:"name"`
					Path      string `json:"path"`
					Installed bool   `json:"installed"`
					State     string `json:"state"`
				}{s.name, s.path, exists(s.path), state})
			}
			if !exists(s.path) {
				c.print("not installed; do it with: daycare service install\n")
				return nil
			}
			c.fields("service", s.name, "file", s.path, "state", state, "log", s.log())
			return nil
		},
	}
}
