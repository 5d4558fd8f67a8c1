package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/inbox"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/schedule"
)

// ValidateCommand checks the form of files, each by its kind, and changes nothing.
func ValidateCommand(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "validate [FILE…]", Short: "Check the format of files, without changing anything",
		Long: "Check the format of files, line by line: those you edit (settings.yaml, auth.json,\n" +
			"tokens.json, descriptor.json, state.json, history.jsonl, TASK.md, heartbeat/*.md, subagents/*.md, SKILL.md,\n" +
			"notes, dropped messages in drop/) and those only daycare writes (inbox.jsonl, runs.jsonl, sessions.jsonl,\n" +
			"handles.jsonl, permissions/, files/*.json, usage/, logs/). Without FILE, check all of them in\n" +
			".daycare, and list files that daycare ignores there.\n" +
			"daycare doctor checks how files fit together. The exit code is 1 if there are errors.",
		Example: "  daycare validate .daycare/settings.yaml && git commit -am settings",
		RunE: func(_ *cobra.Command, args []string) error {
			var found []finding.Finding
			all := len(args) == 0
			if all {
				at, err := c.MadePlace()
				if err != nil {
					return err
				}
				home := at.Data
				if args, err = Files(home); err != nil {
					return err
				}
				if found, err = schedule.Strays(home); err != nil { // which have no form, and were meant to
					return err
				}
			}

			for _, path := range args {
				more, err := CheckFile(path)
				var gone *term.Problem
				if all && errors.As(err, &gone) && gone.Code == fault.ExitNotFound {
					continue // the daemon has taken it meanwhile
				}
				if err != nil {
					return err
				}
				found = append(found, more...)
			}

			return showChecked(c, len(args), found)
		},
	}
}

func showChecked(c *term.App, files int, found []finding.Finding) error {
	if c.JSON {
		if err := c.PrintJSON(struct {
			Files    int               `json:"files"`
			Findings []finding.Finding `json:"findings"`
		}{files, append([]finding.Finding{}, found...)}); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			c.Print("%s: %s: %s\n", f.Place(), f.Severity, f.Reason)
			if f.Remedy != "" {
				c.Print("  → %s\n", f.Remedy)
			}
		}
		c.Note("%s, %s", term.Plural(files, "file", "files"), term.Plural(len(found), "finding", "findings"))
	}
	if finding.Join(found) != nil {
		return &term.Problem{Code: fault.ExitFailure, Err: term.ErrSilent}
	}

	return nil
}

// CheckFile checks one file by its name.
func CheckFile(path string) ([]finding.Finding, error) {
	full, err := filepath.Abs(path) // its folder counts, too
	if err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	content, err := readWhole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, term.NotFound("", "there is no file %s", path)
	}
	if err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	if k, ok := kindOfFile(full); ok {
		found, err := k.check(k.schema, path, content)
		for i, f := range found {
			if f.Remedy == "" && f.Severity != finding.Info {
				found[i].Remedy = "Correct it, then check again: daycare validate " + path
			}
		}
		return found, err
	}

	return nil, &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s is not a file that daycare knows", path),
		Do: "list the kinds of files with: daycare validate --help"}
}

// CheckText checks a text as the file at a path in a .daycare directory, without saving it. In the
// findings the file has that path. Errors: *control.Invalid.
func CheckText(home, name string, content []byte) ([]finding.Finding, error) {
	full := filepath.Join(home, filepath.FromSlash(name))
	k, ok := kindOfFile(full)
	if !ok || !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, &control.Invalid{Field: "name", Reason: fmt.Sprintf("%q is not a file that daycare knows", name),
			Hint: "name a file by its path in .daycare, such as settings.yaml or cron/mail/TASK.md"}
	}

	check := k.check
	if k.schema == "settings" {
		check = validateSettingsText
	}
	found, err := check(k.schema, full, content)
	for i := range found {
		if found[i].File == full {
			found[i].File = name
		}
	}

	return found, err
}

// readWhole reads a file. Where the last of its lines is just being written, it looks
// again.
func readWhole(path string) (content []byte, err error) {
	for range 20 {
		content, err = beneath.Whole(path)
		last := content[bytes.LastIndexByte(content, '\n')+1:]
		if err != nil || filepath.Ext(path) != ".jsonl" || len(last) == 0 || json.Valid(last) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}

	return content, err
}

// taskFile checks a task, in its place or elsewhere: only in cron/ its folder's name
// matters.
func taskFile(_, path string, content []byte) ([]finding.Finding, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	slug := "task"
	if dir := filepath.Dir(full); filepath.Base(filepath.Dir(dir)) == "cron" {
		slug = filepath.Base(dir)
	}

	_, found := schedule.DecodeTask(path, slug, content, time.Local)

	return found, nil
}

func validateSettings(_, path string, _ []byte) ([]finding.Finding, error) {
	return settingsFindings(config.Load(filepath.Dir(path), os.LookupEnv, plugins.ConnectorChecks...))
}

// validateSettingsText is validateSettings of a text that is not saved.
func validateSettingsText(_, path string, content []byte) ([]finding.Finding, error) {
	return settingsFindings(config.LoadText(filepath.Dir(path), content, os.LookupEnv, plugins.ConnectorChecks...))
}

func settingsFindings(conf *config.Config, found []finding.Finding, err error) ([]finding.Finding, error) {
	var bad finding.Finding
	if err != nil && !errors.As(err, &bad) {
		return found, fmt.Errorf("validate: %w", err)
	}

	var own []finding.Finding
	for _, f := range found {
		if filepath.Base(f.File) != config.AuthName { // it is checked by itself
			own = append(own, f)
		}
	}

	return append(own, wrongConnectors(conf)...), nil
}

// wrongConnectors are the errors in the settings of connectors, which then do not run: all
// other settings apply.
func wrongConnectors(conf *config.Config) (found []finding.Finding) {
	if conf == nil {
		return nil
	}
	for _, c := range conf.Connectors {
		found = append(found, wrongSettings(c)...)
	}

	return found
}

func wrongSettings(c config.Connector) []finding.Finding {
	for _, kind := range plugins.ConnectorChecks {
		if kind.Type == c.Type {
			return slices.DeleteFunc(kind.Check(c), func(f finding.Finding) bool { return f.Severity != finding.Error })
		}
	}

	return nil
}

// withoutUnknown leaves out unknown members.
func withoutUnknown(all []finding.Finding) (rest []finding.Finding) {
	for _, f := range all {
		if f.Severity != finding.Info {
			rest = append(rest, f)
		}
	}

	return rest
}

// historyFile checks the lines of a history; those that cannot be read at all are
// told by its own parser.
func historyFile(schema, path string, content []byte) ([]finding.Finding, error) {
	found := record.CheckHistory(path, content)
	more, err := shaped(schema, finding.Warning, func(s *shape) []finding.Finding {
		return s.lines(path, content, func(raw []byte) bool { _, err := record.Decode(raw); return err != nil })
	})
	return append(found, more...), err
}

// inboxFile does the same for an inbox.
func inboxFile(schema, path string, content []byte) ([]finding.Finding, error) {
	found := inbox.CheckContent(path, content)
	bad := map[int]bool{}
	for _, f := range found {
		bad[f.Line] = bad[f.Line] || f.Severity != finding.Info // by hand, it counts
	}

	more, err := shaped(schema, finding.Warning, func(s *shape) []finding.Finding { return s.lines(path, content, nil) })
	for _, f := range more {
		if !bad[f.Line] {
			found = append(found, f)
		}
	}

	return found, err
}

// letterFile checks a letter that waits to be taken; drop/ takes no other names.
func letterFile(schema, path string, content []byte) (found []finding.Finding, err error) {
	if schema != "" {
		found, err = shaped(schema, finding.Error, func(s *shape) []finding.Finding { return s.whole(path, content) })
	}
	if bad := inbox.CheckDropped(filepath.Base(path), content); bad != nil && finding.Join(found) == nil {
		found = append(found, finding.Finding{ID: "letter-bad", Severity: finding.Error, File: path, Line: 1, Column: 1,
			Reason: "the message would be refused: " + bad.Error(), Remedy: "See the allowed values with: daycare schema letter"})
	}

	return found, err
}

func requestFile(schema, path string, content []byte) ([]finding.Finding, error) {
	found, err := shaped(schema, finding.Error, func(s *shape) []finding.Finding { return s.whole(path, content) })
	if bad := permission.CheckFile(path, content); bad != nil && finding.Join(found) == nil {
		found = append(found, *bad)
	}

	return found, err
}

// reference checks what stands beside an attachment; the attachment itself, which may
// be JSON too, has no form.
func reference(schema, path string, content []byte) ([]finding.Finding, error) {
	if strings.Contains(filepath.Base(path), "__") {
		return nil, nil
	}
	return object(schema, path, content)
}

// ledger checks lines that only daycare writes: one that is wrong is skipped.
func ledger(schema, path string, content []byte) ([]finding.Finding, error) {
	return shaped(schema, finding.Warning, func(s *shape) []finding.Finding {
		found := s.lines(path, content, nil)
		if schema == "log" { // each message has keys of its own
			return withoutUnknown(found)
		}
		return found
	})
}

// object checks a file of one object that only daycare writes.
func object(schema, path string, content []byte) ([]finding.Finding, error) {
	if schema == "" { // only its owner knows its members
		var members map[string]any
		f := form.Kind{ID: "object"}.JSON(path, content)
		f.Read(&members)
		return f.Found, nil
	}

	return shaped(schema, finding.Warning, func(s *shape) []finding.Finding { return s.whole(path, content) })
}

func shaped(name string, severity finding.Severity, check func(*shape) []finding.Finding) ([]finding.Finding, error) {
	s, err := newShape(name, severity)
	if err != nil {
		return nil, err
	}

	return check(s), nil
}

// text checks Markdown that becomes part of prompts.
func text(_, path string, content []byte) ([]finding.Finding, error) {
	at, bad := notText(content)
	if !bad {
		return nil, nil
	}
	f := finding.Finding{ID: "text-encoding", Severity: finding.Warning, File: path,
		Reason: "not UTF-8 text, but part of a prompt", Remedy: "Save it as UTF-8."}
	f.Line, f.Column = finding.Position(content, at)

	return []finding.Finding{f}, nil
}
