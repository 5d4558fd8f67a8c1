package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

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
			if dry {
				return c.showService(s)
			}
			if err := c.nobodyRuns(s.workspace); err != nil {
				return err
			}
			return c.installService(cmd.Context(), s)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be written and run, and do nothing")
	cmd.Flags().StringVar(&system, "system", "", "systemd or launchd (default: this machine's)")
	_ = cmd.RegisterFlagCompletionFunc("system", cobra.FixedCompletions([]cobra.Completion{"systemd", "launchd"}, cobra.ShellCompDirectiveNoFileComp))
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

func (c *cli) installService(ctx context.Context, s service) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	if err := os.WriteFile(s.path, []byte(s.unit()), 0o644); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	for _, command := range s.commands(true) {
		if err := s.run(ctx, command); err != nil {
			return &problem{code: exitFailure, err: fmt.Errorf("install service: %w", err),
				do: "the file is written: " + s.path + "; run by hand: " + strings.Join(command, " ")}
		}
	}
	c.print("installed %s\n", s.path)
	c.note("the daemon runs and comes back; see: daycare service status")
	if s.system == "systemd" {
		c.note("to have it run while you are not logged in: loginctl enable-linger")
	}
	return nil
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
			for _, command := range s.commands(false) {
				if dry {
					c.print("%s\n", strings.Join(command, " "))
				} else if err := s.run(cmd.Context(), command); err != nil {
					c.warn("%v", err) // it may not have been running
				}
			}
			if dry {
				c.print("rm %s\n", s.path)
				return nil
			}
			if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("uninstall service: %w", err)
			}
			c.print("removed %s\n", s.path)
			return nil
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be done, and do nothing")
	return cmd
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
			state := "unknown"
			if s.system == "systemd" {
				out, _ := exec.CommandContext(cmd.Context(), "systemctl", "--user", "is-active", s.name+".service").Output() // it fails for "inactive" too
				state = orElse(strings.TrimSpace(string(out)), "unknown")
			} else if s.run(cmd.Context(), []string{"launchctl", "print", "gui/" + strconv.Itoa(os.Getuid()) + "/" + s.name}) == nil {
				state = "active"
			}
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
			c.fields("service", s.name, "file", s.path, "state", state)
			return nil
		},
	}
}
