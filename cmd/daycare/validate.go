package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/agents/subagent"
	"daycare/engine"
	"daycare/engine/config"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/schedule"
	"daycare/tools/skills"

	"github.com/spf13/cobra"
)

func (c *cli) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate [FILE…]", Short: "Check files that people edit, without changing anything",
		Long: "Check files by their names: settings.yaml, descriptor.json, state.json, history.jsonl, TASK.md,\n" +
			"heartbeat/*.md, subagents/*.md, SKILL.md, inbox.jsonl. With no FILE, all of them in .daycare.",
		Example: "  daycare validate .daycare/settings.yaml && git commit -am settings",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				root, err := c.madeRoot()
				if err != nil {
					return err
				}
				if args, err = editable(filepath.Join(root, home)); err != nil {
					return err
				}
			}
			var found []finding.Finding
			for _, path := range args {
				more, err := validate(path)
				if err != nil {
					return err
				}
				found = append(found, more...)
			}
			return c.showChecked(len(args), found)
		},
	}
}

func (c *cli) showChecked(files int, found []finding.Finding) error {
	if c.json {
		if err := c.printJSON(struct {
			Files    int               `json:"files"`
			Findings []finding.Finding `json:"findings"`
		}{files, append([]finding.Finding{}, found...)}); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			c.print("%s\n", clean(fmt.Sprintf("%s: %s: %s", f.Place(), f.Severity, f.Reason)))
		}
		c.note("%s, %s", plural(files, "file", "files"), plural(len(found), "finding", "findings"))
	}
	if finding.Join(found) != nil {
		return &problem{code: exitFailure, err: errSilent}
	}
	return nil
}

// editable lists the files in a .daycare directory that people edit.
func editable(root string) ([]string, error) {
	var all []string
	for _, pattern := range []string{"settings.yaml", "agents/*/descriptor.json", "agents/*/state.json", "agents/*/history.jsonl",
		"agents/*/inbox.jsonl", "cron/*/TASK.md", "heartbeat/*.md", "subagents/*.md", "skills/*/SKILL.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, fmt.Errorf("list files: %w", err)
		}
		all = append(all, paths...)
	}
	return slices.DeleteFunc(all, func(path string) bool {
		rel, err := filepath.Rel(root, path)
		return err == nil && strings.Contains("/"+filepath.ToSlash(rel), "/.")
	}), nil
}

// validate checks one file by its name.
func validate(path string) ([]finding.Finding, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("", "there is no file %s", path)
	}
	if err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	name, dir := filepath.Base(path), filepath.Base(filepath.Dir(path))
	switch {
	case name == config.Name:
		return validateSettings(path)
	case name == "TASK.md":
		_, found := schedule.DecodeTask(path, dir, content, time.Local)
		return found, nil
	case dir == "heartbeat" && filepath.Ext(name) == ".md":
		_, found := schedule.DecodePrompt(path, strings.TrimSuffix(name, ".md"), content)
		return found, nil
	case name == inbox.FileName:
		return inbox.Check(filepath.Dir(path))
	case name == "SKILL.md":
		_, found, _ := skills.Parse(path, content)
		return found, nil
	case dir == "subagents" && filepath.Ext(name) == ".md":
		_, found := subagent.Parse(path, content)
		return found, nil
	}
	found, err := engine.CheckFile(path, content)
	if errors.Is(err, engine.ErrNotForHands) {
		return nil, &problem{code: exitUsage, err: fmt.Errorf("%s is of no kind that is known", path), do: "daycare validate --help lists them"}
	}
	return found, err
}

func validateSettings(path string) ([]finding.Finding, error) {
	_, found, err := config.Load(filepath.Dir(path), os.LookupEnv, connectorTypes...)
	var bad finding.Finding
	if err != nil && !errors.As(err, &bad) {
		return found, fmt.Errorf("validate: %w", err)
	}
	return found, nil
}
