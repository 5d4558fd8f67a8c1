package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"daycare/engine/address"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/record"
)

// schemas are the files that have a JSON Schema: those are made of the Go types that
// read the files, so that the two cannot drift apart. The front matter of Markdown
// files is read key by key; its types stand below.
var schemas = []struct {
	name, about string
	of          reflect.Type
	loose       bool // members that are left out keep their default; unknown ones stay in the file
}{
	{"settings", "settings.yaml", reflect.TypeFor[config.Config](), false},
	{"descriptor", "agents/ID/descriptor.json", reflect.TypeFor[address.Descriptor](), true},
	{"state", "agents/ID/state.json", reflect.TypeFor[record.State](), true},
	{"task", "the front matter of cron/SLUG/TASK.md", reflect.TypeFor[taskFront](), false},
	{"heartbeat", "the front matter of heartbeat/SLUG.md", reflect.TypeFor[heartbeatFront](), false},
	{"subagent", "the front matter of subagents/NAME.md", reflect.TypeFor[subagentFront](), false},
	{"skill", "the front matter of skills/NAME/SKILL.md", reflect.TypeFor[skillFront](), false},
	{"letter", "a letter in drop/, as ID__anything.json", reflect.TypeFor[inbox.Fields](), true},
}

type (
	gateFront struct {
		Command        string   `json:"command" jsonschema:"the task runs if it exits with 0; its output is part of the prompt"`
		TimeoutMS      int      `json:"timeoutMs"`
		Permissions    []string `json:"permissions"`
		AllowedDomains []string `json:"allowedDomains"`
	}
	taskFront struct {
		TaskID         string    `json:"taskId" jsonschema:"the id of the task's own agent; a file without one gets one"`
		Name           string    `json:"name"`
		Description    string    `json:"description"`
		Schedule       string    `json:"schedule" jsonschema:"five fields as in cron, or @hourly, @daily, @weekly, @monthly, @yearly"`
		Every          string    `json:"every" jsonschema:"instead of schedule: a duration like 10m"`
		At             string    `json:"at" jsonschema:"instead of schedule: once, like 2026-12-01T09:00"`
		Timezone       string    `json:"timezone" jsonschema:"an IANA name like Europe/Berlin"`
		Enabled        bool      `json:"enabled"`
		AgentID        string    `json:"agentId" jsonschema:"whom the task is for; empty: its own agent"`
		CatchUp        string    `json:"catchUp" allow:"one|all|none"`
		DeleteAfterRun bool      `json:"deleteAfterRun"`
		Model          string    `json:"model"`
		Gate           gateFront `json:"gate"`
		Watch          []string  `json:"watch" jsonschema:"globs, relative to the workspace: run only when something changed"`
		WatchCommand   string    `json:"watchCommand"`
	}
	heartbeatFront struct {
		Title        string    `json:"title"`
		Enabled      bool      `json:"enabled"`
		Gate         gateFront `json:"gate"`
		ActiveHours  string    `json:"activeHours" jsonschema:"like 08:00-22:00"`
		Watch        []string  `json:"watch"`
		WatchCommand string    `json:"watchCommand"`
	}
	skillFront struct {
		Name          string         `json:"name" jsonschema:"small letters, digits and -, as its folder is called"`
		Description   string         `json:"description" jsonschema:"what it is for and when to use it"`
		License       string         `json:"license"`
		Compatibility string         `json:"compatibility"`
		Metadata      map[string]any `json:"metadata"`
		AllowedTools  string         `json:"allowed-tools"`
	}
	subagentFront struct {
		Name          string         `json:"name"`
		Description   string         `json:"description" jsonschema:"for the model that calls it"`
		Icon          string         `json:"icon"`
		Tools         []string       `json:"tools"`
		MaxIterations int            `json:"maxIterations"`
		Model         string         `json:"model"`
		Temperature   float64        `json:"temperature"`
		InputSchema   map[string]any `json:"inputSchema" jsonschema:"a JSON Schema of the tool's arguments"`
		Summarize     string         `json:"summarize" allow:"verbatim|structured"`
	}
)

func (c *cli) schemaCommand() *cobra.Command {
	names := make([]string, len(schemas))
	for i, s := range schemas {
		names[i] = s.name
	}
	var dir string
	cmd := &cobra.Command{
		Use: "schema [NAME]", Short: "Print the JSON Schema of a file, for editors and other programs",
		Long:    "Print a JSON Schema: " + strings.Join(names, ", ") + ". With --dir all of them are written, as NAME.schema.json.",
		Example: "  daycare schema settings > settings.schema.json\n  daycare schema --dir .vscode",
		Args:    cobra.MaximumNArgs(1), ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" {
				return c.writeSchemas(dir, names)
			}
			if len(args) == 0 {
				return usage(cmd, "say the NAME of a file: %s", strings.Join(names, ", "))
			}
			data, err := schemaText(args[0])
			if err != nil {
				return err
			}
			c.print("%s", data)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write all schemas into this `FOLDER`")
	return cmd
}

func schemaText(name string) ([]byte, error) {
	s, err := schemaOf(name)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return append(data, '\n'), nil
}

// writeSchemas writes NAME.schema.json for each file, where editors look for them.
func (c *cli) writeSchemas(dir string, names []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write schemas: %w", err)
	}
	for _, name := range names {
		data, err := schemaText(name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name+".schema.json")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("write schemas: %w", err)
		}
		c.print("%s\n", path)
	}
	return nil
}

// schemaOf makes the schema of a file by its short name or its file name.
func schemaOf(name string) (*jsonschema.Schema, error) {
	short, _, _ := strings.Cut(name, ".")
	var names []string
	for _, one := range schemas {
		names = append(names, one.name)
		if one.name != short {
			continue
		}
		text := &jsonschema.Schema{Type: "string"}
		s, err := jsonschema.ForType(one.of, &jsonschema.ForOptions{IgnoreInvalidTypes: true, TypeSchemas: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[config.Secret]():    text,
			reflect.TypeFor[disk.Stamp]():       {Type: "string", Format: "date-time"},
			reflect.TypeFor[time.Duration]():    {Type: "string", Description: "a duration like 30s, 10m, 24h"},
			reflect.TypeFor[config.Connector](): {Type: "object", Required: []string{"id", "type"}, Description: "id, type, allow, and the type's own keys"},
		}})
		if err != nil {
			return nil, fmt.Errorf("make schema of %s: %w", one.about, err)
		}
		soften(s, one.of, one.loose)
		s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", one.about
		s.Properties["$schema"] = text
		if one.name == "descriptor" {
			s.Required = []string{"type"}
			s.Properties["type"].Enum = []any{address.User, address.Cron, address.Heartbeat, address.Subagent, address.Permanent}
		}
		return s, nil
	}
	return nil, &problem{code: exitUsage, err: fmt.Errorf("there is no schema %q", name), do: "there are: " + strings.Join(names, ", ")}
}

// soften makes every member optional, since what is left out has its default, and
// lists the values that a member may have.
func soften(s *jsonschema.Schema, t reflect.Type, loose bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
		if s.Items != nil {
			s = s.Items
		} else if s.AdditionalProperties != nil && s.Type == "object" && s.Properties == nil {
			s = s.AdditionalProperties
		}
	}
	if t.Kind() != reflect.Struct || s.Properties == nil {
		return
	}
	s.Required = nil
	if loose {
		s.AdditionalProperties = nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[key]
		if p == nil {
			continue
		}
		p.Types = slices.DeleteFunc(p.Types, func(kind string) bool { return kind == "null" && !loose })
		if len(p.Types) == 1 {
			p.Type, p.Types = p.Types[0], nil
		}
		if allow := f.Tag.Get("allow"); allow != "" {
			for v := range strings.SplitSeq(allow, "|") {
				p.Enum = append(p.Enum, v)
			}
		}
		soften(p, f.Type, loose)
	}
}
