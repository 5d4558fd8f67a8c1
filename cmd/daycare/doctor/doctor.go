package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// Command looks for what is wrong in a workspace and around it, and repairs it with --fix.
func Command(c *term.App) *cobra.Command {
	var fix, security bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check every file and the system for problems",
		Long: "Check for problems: every file of every agent against its schema, torn, duplicate or\n" +
			"orphaned data, file modes, the lock, file watching, disk, clock, model services and\n" +
			"connectors. It changes nothing without --fix, and works with the daemon running or not.\n" +
			"The exit code is 1 if there are errors or warnings.\n\n" +
			"--security checks only the isolation of agents: how their commands are confined on this\n" +
			"machine, and what could break it. The exit code is 1 if there are errors.",
		Example: "  daycare doctor\n  daycare doctor --fix\n  daycare doctor --security",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			switch {
			case security && fix:
				return &term.Problem{Code: fault.ExitUsage, Err: errors.New("--security and --fix cannot be combined"),
					Do: "repair first, with: daycare doctor --fix"}
			case security:
				return showSecurity(c, at)
			}
			d, err := examine(at)
			if err != nil {
				return err
			}
			if fix {
				if d, err = treat(cmd.Context(), d, reloading(c, at)); err != nil {
					return err
				}
			}
			return showDoctor(c, d)
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "repair everything that can be repaired without losing data")
	cmd.Flags().BoolVar(&security, "security", false, "check how agents' commands are confined, and what could break it")
	return cmd
}

// A doctor is what is known of one workspace that is looked at. Checks are functions; each
// adds ailments.
type doctor struct {
	at       workspace.Place
	now      time.Time
	held     bool // a daemon runs
	conf     *config.Config
	index    *address.Index
	ailments []ailment
	fixed    []finding.Finding
}

// An ailment is a finding, and how to repair it where that is safe.
type ailment struct {
	finding.Finding
	fix func(*repairer) error // nil: a user has to
	// live: it may be repaired with the daemon running.
	live bool
	// asleep: a running daemon repairs it when the agent wakes.
	asleep bool
}

// newDoctor reads the settings and the agents.
func newDoctor(at workspace.Place) (*doctor, error) {
	d := &doctor{at: at, now: time.Now(), held: disk.Held(at.Lock())}
	var err error
	var found []finding.Finding
	if d.conf, found, err = config.Load(d.at.Data, os.LookupEnv, plugins.ConnectorChecks...); err != nil {
		d.conf = config.Default()
		if len(found) == 0 {
			d.add(finding.Finding{ID: "settings-unreadable", Severity: finding.Error,
				File: filepath.Join(d.at.Data, config.Name), Reason: err.Error()})
		}
	}
	checkSettings(d, append(found, wrongConnectors(d.conf)...))
	if d.index, found, err = address.Load(nil, d.at.Data, slog.New(slog.DiscardHandler)); err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	d.add(found...)
	return d, nil
}

// checks are all that examine does, in order.
var checks = []func(*doctor) error{
	checkAgentFolders, checkAgents, checkParents, checkTasks, checkRequests, checkAttachments, checkLetters,
	checkDefinitions, checkMCP, checkUnseen, checkSkillFolders, checkLedgers, checkUsage, checkLeftovers, checkForms, checkModes,
	checkLock, checkSandbox, checkPrograms, checkHooks, checkHome, checkWatches, checkSpace, checkNames, checkClock, checkServices,
	checkReceivers, checkCopies, checkCluster,
}

// examine runs all checks.
func examine(at workspace.Place) (*doctor, error) {
	d, err := newDoctor(at)
	if err != nil {
		return nil, err
	}
	for _, check := range checks {
		if err := check(d); err != nil {
			return nil, fmt.Errorf("examine %s: %w", d.at.Data, err)
		}
	}
	for i := range d.ailments {
		if a := &d.ailments[i]; a.Remedy == "" && a.Severity != finding.Info {
			a.Remedy = "Correct it, then check again: daycare doctor"
		}
	}
	slices.SortStableFunc(d.ailments, func(a, b ailment) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), strings.Compare(a.ID, b.ID))
	})
	return d, nil
}

func rank(s finding.Severity) int {
	return slices.Index([]finding.Severity{finding.Error, finding.Warning, finding.Info}, s)
}

// add adds findings that only a user can do something about.
func (d *doctor) add(found ...finding.Finding) {
	for _, f := range found {
		d.ailments = append(d.ailments, ailment{Finding: f})
	}
}

// tell adds one such finding.
func (d *doctor) report(s finding.Severity, id, file string, line int, reason, remedy string) {
	d.add(finding.Finding{ID: id, Severity: s, File: file, Line: line, Reason: reason, Remedy: remedy})
}

// Examine looks for what is wrong in a workspace and around it.
func Examine(at workspace.Place) (control.Checkup, error) {
	d, err := examine(at)
	if err != nil {
		return control.Checkup{}, err
	}

	return d.checkup(), nil
}

// Treat repairs what can be repaired without losing data, of the findings with these ids or of
// all, and looks again. reload has a daemon that runs look at its agents.
func Treat(ctx context.Context, at workspace.Place, ids []string, reload func(context.Context) error) (control.Checkup, error) {
	d, err := examine(at)
	if err != nil {
		return control.Checkup{}, err
	}
	if ids != nil {
		d.ailments = slices.DeleteFunc(d.ailments, func(a ailment) bool { return !slices.Contains(ids, a.ID) })
	}
	if d, err = treat(ctx, d, reload); err != nil {
		return control.Checkup{}, err
	}

	return d.checkup(), nil
}

// checkup is the result in --json.
func (d *doctor) checkup() control.Checkup {
	result := control.Checkup{Healthy: true, Running: d.held, Agents: len(d.index.All()), Findings: []control.Ailment{}}
	for _, a := range d.ailments {
		result.Healthy = result.Healthy && a.Severity == finding.Info
		result.Findings = append(result.Findings, control.Ailment{Finding: d.shown(a.Finding), Fixable: d.fixable(a)})
	}
	for _, f := range d.fixed {
		result.Fixed = append(result.Fixed, d.shown(f))
	}

	return result
}

// fixable reports whether an ailment can be repaired now.
func (d *doctor) fixable(a ailment) bool { return a.fix != nil && (a.live || a.asleep || !d.held) }

func showDoctor(c *term.App, d *doctor) error {
	count := map[finding.Severity]int{}
	fixable, later := 0, 0 // now; with the daemon stopped
	for _, a := range d.ailments {
		count[a.Severity]++
		if d.fixable(a) {
			fixable++
		} else if a.fix != nil && a.Severity != finding.Info {
			later++
		}
	}
	result := d.checkup()
	var failed error
	if !result.Healthy {
		failed = term.ErrSilent
	}
	if c.JSON {
		return errors.Join(c.PrintJSON(result), failed)
	}
	for _, f := range d.fixed {
		c.Print("%s  %s  %s\n", "repaired", f.ID, d.place(f))
	}
	for i := 0; i < len(d.ailments); {
		same := alike(d.ailments[i:])
		showAilment(c, d, d.ailments[i], same)
		i += len(same)
	}
	if len(d.ailments) == 0 {
		c.Print("no problems found in %s\n", term.Plural(result.Agents, "agent", "agents"))
		return nil
	}
	c.Note("%s, %s, %s", term.Plural(count[finding.Error], "error", "errors"),
		term.Plural(count[finding.Warning], "warning", "warnings"), term.Plural(count[finding.Info], "note", "notes"))
	if fixable > 0 {
		c.Note("%d can be repaired with: daycare doctor --fix", fixable)
	}
	if later > 0 {
		c.Note("%d can be repaired while the daemon is stopped: daycare stop && daycare doctor --fix", later)
	}

	return failed
}

// alike are the first of the ailments and those behind it that say the same of other
// lines of its file. Only notes are put together: each mistake is worth its place.
func alike(all []ailment) []ailment {
	first := all[0].Finding
	for i, a := range all {
		first.Line, first.Column = a.Line, a.Column
		if i > 0 && (a.Finding != first || a.Severity != finding.Info) {
			return all[:i]
		}
	}

	return all
}

// showAilment shows an ailment, and in which other lines there is the same.
func showAilment(c *term.App, d *doctor, a ailment, same []ailment) {
	s := c.OutStyle()
	colour := s.Dim
	switch a.Severity {
	case finding.Error:
		colour = s.Red
	case finding.Warning:
		colour = s.Yellow
	}
	c.Print("%s  %s  %s\n         %s\n", colour(fmt.Sprintf("%-7s", a.Severity)), a.ID, s.Bold(d.place(a.Finding)), a.Reason)
	if n := len(same) - 1; n > 0 {
		const shown = 10
		var lines []string
		for _, other := range same[1:min(len(same), shown+1)] {
			lines = append(lines, strconv.Itoa(other.Line))
		}
		if n > shown {
			lines = append(lines, fmt.Sprintf("and %d more, the last %d", n-shown, same[n].Line))
		}
		c.Print("         also in line %s\n", strings.Join(lines, ", "))
	}
	if a.Remedy != "" {
		c.Print("         %s\n", s.Dim("→ "+a.Remedy))
	}
}

// place returns where a finding is, as a user would type it in the workspace.
func (d *doctor) place(f finding.Finding) string { return d.shown(f).Place() }

// shown is the finding with its file as a path in the workspace, if it is inside.
func (d *doctor) shown(f finding.Finding) finding.Finding {
	f.File = strings.TrimPrefix(f.File, d.at.Dir+string(filepath.Separator))
	return f
}
