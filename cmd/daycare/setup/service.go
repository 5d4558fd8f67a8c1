package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// Service is the group of commands that have the system start the daemon at login.
func Service(c *term.App) *cobra.Command {
	return term.Group("service", "Run the daemon of this workspace as a service",
		"  daycare service install --dry-run\n  daycare service status",
		serviceInstall(c), serviceUninstall(c), serviceStatus(c))
}

func serviceInstall(c *term.App) *cobra.Command {
	var dry bool
	var which scope
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install a service that starts the daemon at login and restarts it on failure",
		Long: "Install a service that starts the daemon at login, and restarts it when it is killed or its\n" +
			"storage fails (exit code 75). A service does not see your shell's environment: save keys\n" +
			"with daycare auth set.\n\n" +
			"With --system it starts at boot, as a separate user (systemd; needs root).\n" +
			"Its workspace is " + systemWorkspace + ", or the one given with --workspace; save its keys in a file\n" +
			"in " + systemKeys + " that only root can read.",
		Example: "  daycare service install --dry-run\n  daycare service install\n" +
			"  daycare service install --system --dry-run\n  sudo daycare service install --system",
		Args: which.args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := which.service(c)
			if err == nil {
				err = s.expressible()
			}
			switch {
			case err != nil:
				return err
			case which.wide && dry:
				return showSystem(c, s)
			case which.wide:
				return installSystem(cmd.Context(), c, s)
			}

			warnOfEnvironment(c)
			if dry {
				return showService(c, s)
			}
			return installService(cmd.Context(), c, s)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be written and run, without doing it")
	cmd.Flags().StringVar(&which.manager, "manager", "", "systemd or launchd (default: this machine's)")
	which.define(cmd)
	_ = cmd.RegisterFlagCompletionFunc("manager",
		cobra.FixedCompletions([]cobra.Completion{"systemd", "launchd"}, cobra.ShellCompDirectiveNoFileComp))

	return cmd
}

// A scope says whose service is meant: that of this user, or one of the whole machine.
type scope struct {
	wide    bool
	user    string // that a system service runs as
	manager string // systemd or launchd, "" is this machine's
}

func (s *scope) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.wide, "system", false, "a system service, not a service of this user")
	cmd.Flags().StringVar(&s.user, "user", systemUser, "the `NAME` of the user that a system service runs as")
}

// args checks the arguments. --system NAME once named the manager, and still does.
func (s *scope) args(cmd *cobra.Command, args []string) error {
	if s.wide && len(args) == 1 {
		s.wide, s.manager = false, args[0]
		return nil
	}
	if err := term.Words(0)(cmd, args); err != nil {
		return err
	}
	if !s.wide && cmd.Flag("user").Changed {
		return term.Usage(cmd, "--user needs --system")
	}

	return nil
}

// service is the service that is meant.
func (s *scope) service(c *term.App) (service, error) {
	if !s.wide {
		return thisService(c, s.manager)
	}
	dir, err := filepath.Abs(cmp.Or(c.Workspace, systemWorkspace))
	if err != nil {
		return service{}, fmt.Errorf("find workspace: %w", err)
	}

	at := workspace.At(dir)
	if c.Data != "" {
		if at, err = c.Place(); err != nil {
			return service{}, err
		}
	}

	return newSystemService(at, s.user)
}

func thisService(c *term.App, system string) (service, error) {
	at, err := c.MadePlace()
	if err != nil {
		return service{}, err
	}

	return newService(at, system)
}

func showService(c *term.App, s service) error {
	if c.JSON {
		return c.PrintJSON(struct {
			Name     string     `json:"name"`
			Path     string     `json:"path"`
			Unit     string     `json:"unit"`
			Commands [][]string `json:"commands"`
		}{s.name, s.path, s.unit(), s.commands(true)})
	}

	c.Print("# %s\n%s", s.path, s.unit())
	for _, command := range s.commands(true) {
		c.Print("# then: %s\n", strings.Join(command, " "))
	}

	return nil
}

// warnOfEnvironment names the keys that this shell knows and a service will not.
func warnOfEnvironment(c *term.App) {
	conf, err := c.Config()
	if err != nil {
		return // told when the daemon starts
	}

	for _, s := range conf.SecretSources() {
		if s.Source != "" && s.Source != config.AuthName && !s.File && len(s.UsedBy) > 0 {
			c.Warn("a service does not see %s of this shell; save it with: daycare auth set %s", s.Source, s.ID)
		}
	}

	if len(conf.Providers) > 0 {
		return
	}

	for _, ch := range choices() {
		if ch.keyEnv != "" && !conf.SecretEnv(ch.keyEnv).IsZero() {
			c.Warn("a service does not see %s of this shell; set it up with: daycare init", ch.keyEnv)
		}
	}
}

// installService writes the unit and has it run. Again, it takes over what changed.
func installService(ctx context.Context, c *term.App, s service) error {
	before, err := os.ReadFile(s.path)
	again := err == nil && s.active(ctx)
	switch {
	case again && string(before) == s.unit():
		c.Print("already installed: %s\n", s.path)
		return serviceAnswers(ctx, c, s)
	case !again:
		if err := c.NobodyRuns(s.at); err != nil {
			return err
		}
	}

	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(s.at.Data, "logs"), 0o700), config.Ignore(s.at.Data)); err != nil {
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
			return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("install service: %w", err),
				Do: "the file is written: " + s.path + "; run by hand: " + strings.Join(command, " ")}
		}
	}

	c.Print("installed %s\n", s.path)
	if err := serviceAnswers(ctx, c, s); err != nil {
		return err
	}
	if s.system == "systemd" {
		c.Note("to keep it running while you are logged out: loginctl enable-linger")
	}

	return nil
}

// RestartService restarts the daemon of a workspace by the service manager, if that keeps it
// running. A listen flag cannot be given to a service.
func RestartService(ctx context.Context, c *term.App, at workspace.Place, listen bool) (kept bool, err error) {
	s, kept := keeperOf(ctx, at)
	if !kept {
		return false, nil
	}
	if s.user != "" && os.Geteuid() != 0 {
		return true, &term.Problem{Code: fault.ExitDenied, Err: fmt.Errorf("%s is a system service", s.name),
			Do: "run: sudo systemctl restart " + s.name}
	}
	if listen {
		return true, &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s starts the daemon, without --listen", s.name),
			Do: "set control.listen in settings.yaml instead"}
	}

	for _, command := range s.replacing() {
		if err := s.run(ctx, command); err != nil {
			return true, fmt.Errorf("restart the service: %w", err)
		}
	}

	return true, serviceAnswers(ctx, c, s)
}

// keeperOf is the service that keeps the daemon of a workspace running, of this user or of the
// machine. Where there is no service manager, none does.
func keeperOf(ctx context.Context, at workspace.Place) (service, bool) {
	if s, err := newService(at, ""); err == nil && term.Exists(s.path) && s.active(ctx) {
		return s, true
	}
	s, err := newSystemService(at, systemUser)
	return s, err == nil && term.Exists(s.path) && s.active(ctx)
}

// serviceAnswers waits until the daemon that the system started answers.
func serviceAnswers(ctx context.Context, c *term.App, s service) error {
	ctx, cancel := context.WithTimeout(ctx, term.StartWait)
	defer cancel()
	for {
		if client, err := c.Dial(ctx, s.at); err == nil {
			state, err := client.Status(ctx)
			client.Close()
			if err == nil {
				c.Note("the daemon is running, pid %d, and restarts on failure; see: %s", state.PID, s.look())
				return nil
			}
		}

		select {
		case <-ctx.Done():
			return &term.Problem{Code: fault.ExitTimeout,
				Err: fmt.Errorf("the service is installed, but the daemon did not answer within %s", term.StartWait),
				Do:  "see the log: " + s.log()}
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func serviceUninstall(c *term.App) *cobra.Command {
	var dry bool
	var which scope
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Stop and remove the service",
		Example: "  daycare service uninstall\n  sudo daycare service uninstall --system",
		Args:    which.args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := which.service(c)
			if err != nil {
				return err
			}
			if !term.Exists(s.path) {
				return term.NotFound("install it with: daycare service install", "no service is installed for %s", s.at.Dir)
			}
			if which.wide {
				return uninstallSystem(cmd.Context(), c, s, dry)
			}

			return uninstallService(cmd.Context(), c, s, dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be done, without doing it")
	which.define(cmd)

	return cmd
}

func uninstallService(ctx context.Context, c *term.App, s service, dry bool) error {
	do := func(command []string) {
		if dry {
			c.Print("%s\n", strings.Join(command, " "))
		} else if err := s.run(ctx, command); err != nil {
			c.Warn("%v", err) // it may not have been running
		}
	}
	for _, command := range s.commands(false) {
		do(command)
	}

	if dry {
		c.Print("rm %s\n", s.path)
	} else if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("uninstall service: %w", err)
	}
	if s.system == "systemd" {
		do(s.systemctl("daemon-reload"))
	}
	if !dry {
		c.Print("removed %s\n", s.path)
	}

	return nil
}

func serviceStatus(c *term.App) *cobra.Command {
	var which scope
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether the service is installed and running",
		Example: "  daycare service status --json",
		Args:    which.args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := which.service(c)
			if err != nil {
				return err
			}
			state := s.state(cmd.Context())
			if c.JSON {
				return c.PrintJSON(struct {
					Name      string `json:"name"`
					Path      string `json:"path"`
					Installed bool   `json:"installed"`
					State     string `json:"state"`
				}{s.name, s.path, term.Exists(s.path), state})
			}
			if !term.Exists(s.path) {
				c.Print("not installed; install it with: daycare service install\n")
				return nil
			}

			c.Fields("service", s.name, "file", s.path, "state", state, "log", s.log())
			return nil
		},
	}
	which.define(cmd)

	return cmd
}
