package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/sensitive"
	"daycare/engine/workspace"
	"daycare/tools/shell/guard"
	"daycare/tools/shell/sandbox"
	"daycare/tools/shell/sandbox/probe"
)

// runner is the sandbox of commands by the settings; nil: commands are not run, or nothing
// is to hold them.
func runner(c *config.Config) (*sandbox.Runner, error) {
	if c.Tools.Exec.Sandbox == "off" || c.Permissions.Defaults.Exec == "deny" {
		return nil, nil
	}
	return probe.Choose(c.Tools.Exec.Sandbox, sandbox.Self())
}

// narrow says what does not work where Landlock is alone, and what to do.
const (
	narrow = "commands are confined by Landlock alone: they cannot create files next to .daycare or .git, commit " +
		"or chmod, and have no network"
	narrowRemedy = "Install bubblewrap, or allow user namespaces (sysctl kernel.unprivileged_userns_clone, " +
		"kernel.apparmor_restrict_unprivileged_userns). Until then agents create files there with the tool write, or work in a subfolder."
)

// checkSandbox looks whether agents' commands can be kept in.
func checkSandbox(d *doctor) error {
	r, err := runner(d.conf)
	path := filepath.Join(d.at.Data, "settings.yaml")
	switch {
	case err != nil:
		d.report(finding.Error, "sandbox-unusable", path, lineWith(path, "sandbox:"), err.Error(),
			"Install what is missing, or set sandbox: auto.")
		return nil
	case r == nil:
		return nil
	case r.Level == sandbox.None:
		d.report(finding.Info, "sandbox-none", path, 0, r.Why+": every command of an agent needs your approval",
			"On Linux: install bubblewrap, or use a kernel with Landlock.")
	case r.Level == sandbox.Landlock && !r.HasView():
		d.report(finding.Info, "sandbox-narrow", path, 0, narrow, narrowRemedy)
	}
	for _, h := range r.Holds() {
		if !h.Held && h.What == "processes" && !r.HasView() {
			d.report(finding.Info, "sandbox-uncounted", path, 0,
				"daycare runs as root, whose processes the kernel does not limit, and it cannot create control "+
					"groups: a command that keeps starting processes is killed only when daycare counts "+
					fmt.Sprint(sandbox.MaxProcesses)+" of them",
				"Run daycare as an ordinary user; on Linux, bubblewrap helps too.")
		}
	}

	return nil
}

// checkPrograms looks whether an agent can replace a program that daycare runs outside of the
// sandbox: daycare itself, bubblewrap, what is found by PATH.
func checkPrograms(d *doctor) error {
	where := map[string]string{} // path: what it is
	if self, err := os.Executable(); err == nil {
		where[beneath.Real(self)] = "daycare's own program"
	}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		where[beneath.Real(bwrap)] = "bubblewrap, which makes the sandbox,"
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && term.Exists(dir) {
			where[beneath.Real(dir)] = "a folder of your PATH"
		}
	}
	sets := d.rights()
	seen := map[string]bool{}
	for _, set := range sets {
		for path, what := range where {
			if seen[path] || !set.Allows(permission.Write{Path: path}) {
				continue
			}
			seen[path] = true
			d.report(finding.Error, "program-in-grant", path, 0,
				what+" is in a folder that agents can write: a file they put there runs outside the sandbox, "+
					"at the latest when daycare starts again",
				"Move it to a folder no agent can write, such as /usr/local/bin, or remove the folder from PATH.")
		}
	}

	return nil
}

// rights are those of all agents by id, and of a new one.
func (d *doctor) rights() map[string]permission.Set {
	sets := map[string]permission.Set{"": permission.Default(d.at.Dir)}
	for _, m := range d.index.All() {
		if state, _, _, err := record.ReadState(filepath.Join(d.at.Data, "agents", m.ID)); err == nil {
			sets[m.ID] = state.Permissions
		}
	}

	return sets
}

// homeCaution says what is wrong with a workspace that holds the home folder of a user;
// "" if it holds none.
func homeCaution(workspace string) string {
	home := sensitive.Here().HomeIn(beneath.Real(workspace))
	if home == "" {
		return ""
	}
	return fmt.Sprintf("the workspace contains the home folder %s: agents can read and change everything in it "+
		"except keys and startup files", home)
}

const homeRemedy = "Use a separate folder as the workspace, such as ~/daycare: daycare init --workspace ~/daycare"

// CautionHome says that a workspace is a home.
func CautionHome(c *term.App, workspace string) {
	if caution := homeCaution(workspace); caution != "" {
		c.Warn("%s\n%s", caution, homeRemedy)
	}
}

// checkHome looks whether the workspace is someone's home.
func checkHome(d *doctor) error {
	if caution := homeCaution(d.at.Dir); caution != "" {
		d.report(finding.Warning, "workspace-is-home", d.at.Dir, 0, caution, homeRemedy)
	}
	return nil
}

// checkRepositories looks for what has git run something, and was perhaps not put there by the
// person who uses git.
func checkRepositories(d *doctor) error {
	for _, v := range guard.Vectors(beneath.Real(d.at.Dir), sensitive.Here()) {
		d.report(finding.Warning, "git-runs", v.Path, 0, v.Why, "If it is not yours, remove it before you use git there.")
	}
	return nil
}

// A securityCheck is the result of doctor --security in --json.
type securityCheck struct {
	Level    sandbox.Level     `json:"level"`
	Why      string            `json:"why"`
	Holds    []sandbox.Hold    `json:"holds"`
	Findings []finding.Finding `json:"findings"`
}

// showSecurity shows what holds agents' commands on this machine, and what is wrong with
// the walls around them.
func showSecurity(c *term.App, at workspace.Place) error {
	d, err := newDoctor(at)
	if err != nil {
		return err
	}
	for _, check := range []func(*doctor) error{checkSandbox, checkPrograms, checkHooks, checkHome, checkRepositories} {
		if err := check(d); err != nil {
			return fmt.Errorf("examine %s: %w", d.at.Data, err)
		}
	}
	result := securityCheck{Level: sandbox.None, Why: "agents run no commands, or tools.exec.sandbox is off",
		Holds: []sandbox.Hold{}, Findings: []finding.Finding{}}
	if r, err := runner(d.conf); err == nil && r != nil {
		result.Level, result.Why, result.Holds = r.Level, r.Why, r.Holds()
	}
	var failed error
	for _, a := range d.ailments {
		result.Findings = append(result.Findings, a.Finding)
		if a.Severity == finding.Error {
			failed = term.ErrSilent
		}
	}
	if c.JSON {
		return errors.Join(c.PrintJSON(result), failed)
	}
	s := c.OutStyle()
	c.Print("%s  %s\n", s.Bold("sandbox "+string(result.Level)), result.Why)
	for _, h := range result.Holds {
		mark := term.Plain("held    ")
		if !h.Held {
			mark = s.Yellow("not held")
		}
		c.Print("%s  %s%s  %s\n", mark, h.What, strings.Repeat(" ", max(0, 33-len(h.What))), s.Dim(h.How))
	}
	for _, a := range d.ailments {
		showAilment(c, d, a, []ailment{a})
	}

	return failed
}

// CautionSandbox says what commands cannot do here because their sandbox is a narrow one.
func CautionSandbox(c *term.App) {
	conf, err := c.Config()
	if err != nil {
		return // said already
	}
	if r, err := runner(conf); err == nil && r != nil && r.Level == sandbox.Landlock && !r.HasView() {
		c.Warn("%s\n%s", narrow, narrowRemedy)
	}
}
