package doctor

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

	"daycare/agents/budget"
	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/config"
	"daycare/engine/control/openapi"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/schedule"
)

// A form is the JSON Schema of one kind of file. Schemas are made of the Go types that
// read and write the files, so that the two cannot drift apart.
type form struct {
	name, about string
	of          reflect.Type
	loose       bool // members that are left out keep their default; unknown ones stay in the file
	// finish says what types cannot: which members must be there, what texts look like.
	finish func(*jsonschema.Schema)
	// union are the kinds of lines, in a file of several; of is nil then.
	union func() []variant
}

// forms lists the files that have a JSON Schema.
func forms() []form {
	return []form{
		{name: "settings", about: "settings.yaml", of: reflect.TypeFor[config.Config]()},
		{name: "auth", about: "auth.json: secrets by id", of: reflect.TypeFor[map[string]string](), finish: func(s *jsonschema.Schema) {
			s.PropertyNames = &jsonschema.Schema{Pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$|^\$schema$`}
		}},
		{name: "descriptor", about: "agents/ID/descriptor.json", of: reflect.TypeFor[address.Descriptor](), loose: true,
			finish: func(s *jsonschema.Schema) {
				s.Required = []string{"type"}
				s.Properties["type"].Enum = []any{address.User, address.Cron, address.Heartbeat, address.Subagent, address.Permanent}
			}},
		{name: "state", about: "agents/ID/state.json", of: reflect.TypeFor[record.State](), loose: true},
		{name: "history", about: "a line of agents/ID/history.jsonl", union: historyLines},
		{name: "inbox", about: "a line of agents/ID/inbox.jsonl", union: inboxLines},
		{name: "session", about: "a line of agents/ID/sessions.jsonl", of: reflect.TypeFor[record.EndedSession](),
			loose: true, finish: needs("id")},
		{name: "draft", about: "agents/ID/draft.json", of: reflect.TypeFor[record.Draft](), loose: true, finish: needs("turn")},
		{name: "handle", about: "a line of agents/handles.jsonl", of: address.HandleType(), loose: true,
			finish: func(s *jsonschema.Schema) {
				needs("handle", "id")(s)
				s.Properties["handle"].Pattern = `^(0|[1-9][0-9]*)(/(0|[1-9][0-9]*))*/?$`
				s.Properties["id"].Pattern = idPattern
			}},
		{name: "task", about: "the front matter of cron/SLUG/TASK.md", of: reflect.TypeFor[taskFront]()},
		{name: "heartbeat", about: "the front matter of heartbeat/SLUG.md", of: reflect.TypeFor[heartbeatFront]()},
		{name: "run", about: "a line of cron/SLUG/runs.jsonl or heartbeat/runs.jsonl", of: schedule.LineType(),
			loose: true, finish: needs("at")},
		{name: "subagent", about: "the front matter of subagents/NAME.md", of: reflect.TypeFor[subagentFront]()},
		{name: "skill", about: "the front matter of skills/NAME/SKILL.md", of: reflect.TypeFor[skillFront]()},
		{name: "letter", about: "a letter in drop/, as ID__anything.json", of: reflect.TypeFor[inbox.Fields](),
			loose: true, finish: func(s *jsonschema.Schema) {
				s.Properties["as"].Enum = []any{"user", "system"}
				s.Properties["id"].Pattern = idPattern
				s.Properties["type"].Enum = []any{message.Text, message.System, message.Reset, message.Compact,
					message.Rewind, message.Mark}
				file := s.Properties["files"]
				file.Items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Description: "its absolute path"}, file.Items}}
			}},
		{name: "request", about: "permissions/TOKEN.json, and a line of permissions/log.jsonl",
			of: permission.FileType(), loose: true, finish: func(s *jsonschema.Schema) {
				needs("token", "agentId", "permission", "request", "sha256")(s)
				s.Properties["decision"].Type, s.Properties["decision"].Types = "", []string{"null", "string"}
				s.Properties["decision"].Enum = []any{nil, permission.Once, permission.Always, permission.Prefix,
					permission.Deny, permission.Expired}
			}},
		{name: "file", about: "files/ID.json: the reference of an attachment", of: reflect.TypeFor[message.File](),
			loose: true, finish: needs("id", "name")},
		{name: "usage", about: "a line of usage/DATE.jsonl", of: budget.LineType(), loose: true, finish: needs("at", "agent", "tokens")},
		{name: "tokens", about: "tokens.json: tokens of the API by name, as hashes",
			of: reflect.TypeFor[map[string]apitoken.Token](), finish: func(s *jsonschema.Schema) {
				needs("hash", "scopes")(s.AdditionalProperties)
				for _, scope := range apitoken.Scopes {
					items := s.AdditionalProperties.Properties["scopes"].Items
					items.Enum = append(items.Enum, scope)
				}
			}},
		{name: "lock", about: "daycare.lock: who runs, or ran last", of: reflect.TypeFor[disk.Holder](), loose: true, finish: needs("pid")},
		{name: "log", about: "a line of logs/daycare.jsonl", of: reflect.TypeFor[logEntry](), loose: true,
			finish: needs("time", "level", "msg")},
	}
}

// needs makes members required.
func needs(members ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Required = members }
}

// idPattern is how ids of agents and items look.
const idPattern = "^[a-z0-9]{24,32}$"

// logEntry is what every line of the log has beside the keys of its message.
type logEntry struct {
	Time  disk.Stamp `json:"time"`
	Level string     `json:"level" allow:"DEBUG|INFO|WARN|ERROR"`
	Msg   string     `json:"msg"`
}

func formNames() (names []string) {
	for _, f := range forms() {
		names = append(names, f.name)
	}
	return names
}

// SchemaCommand prints the JSON Schemas of files, or writes them where editors look for them.
func SchemaCommand(c *term.App) *cobra.Command {
	names := append(formNames(), apiName)
	var dir string
	cmd := &cobra.Command{
		Use: "schema [NAME]", Short: "Print the JSON Schema of a file, or the OpenAPI document of the API",
		Long: "Print a JSON Schema, for editors and other programs: " + strings.Join(formNames(), ", ") + ". `api` is the OpenAPI 3.1 " +
			"document of the HTTP API. With --dir all of them are written, as NAME.schema.json and api.openapi.json.",
		Example: "  daycare schema settings > settings.schema.json\n  daycare schema --dir .vscode\n" +
			"  daycare schema api > openapi.json",
		Args: cobra.MaximumNArgs(1), ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" {
				return writeSchemas(c, dir, names)
			}
			if len(args) == 0 {
				return term.Usage(cmd, "say the NAME of a file, or api: %s", strings.Join(names, ", "))
			}
			data, err := schemaText(args[0])
			if err != nil {
				return err
			}
			c.Print("%s", data)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write all schemas into this `FOLDER`")
	return cmd
}

// apiName is the name of the OpenAPI document among the schemas.
const apiName = "api"

func schemaText(name string) ([]byte, error) {
	if name == apiName {
		return openapi.Document()
	}
	s, err := SchemaOf(name)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return append(data, '\n'), nil
}

// writeSchemas writes NAME.schema.json for each file, where editors look for them, and
// api.openapi.json.
func writeSchemas(c *term.App, dir string, names []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write schemas: %w", err)
	}
	for _, name := range names {
		data, err := schemaText(name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name+".schema.json")
		if name == apiName {
			path = filepath.Join(dir, name+".openapi.json")
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("write schemas: %w", err)
		}
		c.Print("%s\n", path)
	}
	return nil
}

// SchemaOf makes the schema of a file by its short name or its file name.
func SchemaOf(name string) (*jsonschema.Schema, error) {
	short, _, _ := strings.Cut(name, ".")
	for _, f := range forms() {
		if f.name == short {
			return f.schema()
		}
	}
	return nil, &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("there is no schema %q", name),
		Do: "there are: " + strings.Join(append(formNames(), apiName), ", ")}
}

func (f form) schema() (s *jsonschema.Schema, err error) {
	if f.union != nil {
		s = &jsonschema.Schema{Type: "object", Required: []string{"type"}}
		for _, v := range f.union() {
			one, err := v.schema()
			if err != nil {
				return nil, fmt.Errorf("make schema of %s: %w", f.about, err)
			}
			s.OneOf = append(s.OneOf, one)
		}
	} else if s, err = schemaFor(f.of, f.loose); err != nil {
		return nil, fmt.Errorf("make schema of %s: %w", f.about, err)
	}
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", f.about
	if s.Properties != nil {
		s.Properties["$schema"] = &jsonschema.Schema{Type: "string"}
	}
	if f.finish != nil {
		f.finish(s)
	}
	return s, nil
}

// schemaFor makes the schema of a Go type in which nothing must be there.
func schemaFor(of reflect.Type, loose bool) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(of, &jsonschema.ForOptions{IgnoreInvalidTypes: true, TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[config.Secret]():   {Type: "string"},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[disk.Stamp]():      {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[time.Duration]():   {Type: "string", Description: "a duration like 30s, 10m, 24h"},
		reflect.TypeFor[config.Connector](): {Type: "object", Required: []string{"id", "type"},
			Description: "id, type, allow, and the type's own keys"},
	}})
	if err != nil {
		return nil, err
	}
	soften(s, of, loose)
	return s, nil
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
