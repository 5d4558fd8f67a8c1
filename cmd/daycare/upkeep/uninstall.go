package upkeep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/machine"
	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// Uninstall removes the program and what was installed with it, and no workspace.
func Uninstall(c *term.App) *cobra.Command {
	var dry, yes bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall the program, its services, completions and manual pages; workspaces stay",
		Long: "Uninstall the program, services installed by daycare service install, completions and\n" +
			"manual pages. It lists them first and asks. Workspaces and their agents are never touched; daycare lists\n" +
			"those it knows.",
		Example: "  daycare uninstall --dry-run",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := ownProgram()
			if err != nil {
				return err
			}
			p, err := planOf(c, program)
			if err != nil {
				return err
			}

			return p.run(cmd, c, dry, yes)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list what would be removed, without removing it")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")

	return cmd
}

// A plan is what an uninstall does.
type plan struct {
	Services []setup.Installed `json:"services"`
	Files    []string          `json:"files"`
	Kept     []string          `json:"kept"` // workspaces, or their data folders elsewhere
	Removed  bool              `json:"removed"`
}

// planOf lists what belongs to a program.
func planOf(c *term.App, program string) (p plan, err error) {
	if p.Services, err = setup.InstalledServices(); err != nil {
		return p, err
	}
	machines, err := setup.SystemServices(program)
	if err != nil {
		return p, err
	}
	if len(machines) > 0 {
		s := machines[0]
		return p, &term.Problem{Code: fault.ExitFailure,
			Err: fmt.Errorf("the system service %s runs this program", s.Name),
			Do:  "remove it first: sudo " + program + " --workspace " + s.Workspace + " service uninstall --system"}
	}

	for _, s := range p.Services {
		if s.Workspace != "" {
			p.Kept = append(p.Kept, s.Workspace)
		}
	}

	known, err := machine.List()
	if err != nil {
		return p, fmt.Errorf("list workspaces: %w", err)
	}

	for _, e := range known {
		if at := e.Place(); term.Exists(at.Data) && !slices.Contains(p.Kept, at.Key()) {
			p.Kept = append(p.Kept, at.Key())
		}
	}

	at, err := c.Place()
	if err != nil {
		return p, err
	}
	if term.Exists(at.Data) && !slices.Contains(p.Kept, at.Key()) {
		p.Kept = append(p.Kept, at.Key())
		if err := c.NobodyRuns(at); err != nil { // a service is stopped; this is another one
			return p, err
		}
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return p, fmt.Errorf("find home folder: %w", err)
	}
	p.Files = append(machine.Files(), existing(program, home)...)

	return p, nil
}

// shared are the files beside a program, below PREFIX/share or ~/.local/share.
var shared = []string{"man/man1/daycare.1", "man/man1/daycare-*.1", "bash-completion/completions/daycare",
	"zsh/site-functions/_daycare", "fish/vendor_completions.d/daycare.fish"}

// existing lists the files of an installation that are there, the program last.
func existing(program, home string) (files []string) {
	found := []string{filepath.Join(home, ".config", "fish", "completions", "daycare.fish")}
	prefix := filepath.Dir(filepath.Dir(program))
	for _, share := range []string{filepath.Join(home, ".local", "share"), filepath.Join(prefix, "share")} {
		for _, name := range shared {
			paths, _ := disk.Glob(share, name) // what cannot be listed cannot be removed
			found = append(found, paths...)
		}
	}

	for _, path := range append(found, program+".old", program) {
		if term.Exists(path) && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}

	return files
}

func (p plan) run(cmd *cobra.Command, c *term.App, dry, yes bool) error {
	if !c.JSON {
		p.show(c)
	}
	switch {
	case dry:
	case !yes && !c.Asks():
		return &term.Problem{Code: fault.ExitUsage, Err: errors.New("uninstall: cannot ask for confirmation without a terminal"),
			Do: "confirm with --yes"}
	case yes || c.Agrees("Remove these?"):
		p.Removed = true
	}

	if p.Removed {
		for _, s := range p.Services {
			if err := setup.RemoveService(cmd.Context(), c, s); err != nil {
				return err
			}
		}

		for _, path := range p.Files {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("uninstall: %w", err)
			}
		}
	}
	if c.JSON {
		return c.PrintJSON(p)
	}
	if !p.Removed {
		c.Note("nothing was removed")
		return nil
	}

	c.Print("removed daycare\n")
	return nil
}

func (p plan) show(c *term.App) {
	for _, s := range p.Services {
		c.Print("remove  service %s (%s)\n", s.Name, s.Path)
	}
	for _, path := range p.Files {
		c.Print("remove  %s\n", path)
	}

	for _, path := range p.Kept {
		if at := workspace.At(path); term.Exists(at.Data) {
			path = at.Data
		}
		c.Print("keep    %s\n", path)
	}
	c.Note("workspaces elsewhere are kept too; to remove one, delete its .daycare folder")
}
