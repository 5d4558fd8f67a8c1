package doctor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"daycare/agents/budget"
	"daycare/agents/subagent"
	"daycare/agents/trial"
	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/config"
	"daycare/engine/control/openapi"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/form/schema"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/pairing"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/schedule"
	"daycare/tools/mcp"
	"daycare/tools/skills"
)

// A layout is the JSON Schema of one kind of file. Schemas are made of the Go types that
// read and write the files, so that the two cannot drift apart.
type layout struct {
	name, about string
	of          reflect.Type
	loose       bool     // unknown members stay in the file
	need        []string // members that must be there, beside those that their tags say
	// finish says what types and tags cannot.
	finish func(*jsonschema.Schema)
	// union are the kinds of lines, in a file of several; of is nil then.
	union func() []variant
}

// layouts lists the files that have a JSON Schema.
func layouts() []layout {
	return []layout{
		{name: "settings", about: "settings.yaml", of: reflect.TypeFor[config.Config](), finish: sayRestart},
		{name: "auth", about: "auth.json: secrets by id", of: reflect.TypeFor[map[string]string](), finish: func(s *jsonschema.Schema) {
			s.PropertyNames = &jsonschema.Schema{Pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$|^\$schema$`}
		}},
		{name: "descriptor", about: "agents/ID/descriptor.json", of: reflect.TypeFor[address.Descriptor](), loose: true},
		{name: "state", about: "agents/ID/state.json", of: reflect.TypeFor[record.State](), loose: true},
		{name: "history", about: "a line of agents/ID/history.jsonl", union: historyLines},
		{name: "inbox", about: "a line of agents/ID/inbox.jsonl", union: inboxLines},
		{name: "session", about: "a line of agents/ID/sessions.jsonl", of: reflect.TypeFor[record.EndedSession](),
			loose: true, need: []string{"id"}},
		{name: "draft", about: "agents/ID/draft.json", of: reflect.TypeFor[record.Draft](), loose: true, need: []string{"turn"}},
		{name: "handle", about: "a line of agents/handles.jsonl", of: address.HandleType(), loose: true},
		{name: "task", about: "the front matter of cron/SLUG/TASK.md", of: schedule.TaskType()},
		{name: "heartbeat", about: "the front matter of heartbeat/SLUG.md", of: schedule.PromptType()},
		{name: "run", about: "a line of cron/SLUG/runs.jsonl or heartbeat/runs.jsonl", of: schedule.LineType(),
			loose: true, need: []string{"at"}},
		{name: "subagent", about: "the front matter of subagents/NAME.md", of: reflect.TypeFor[subagent.Definition]()},
		{name: "test", about: "tests/NAME.test.yaml: a test of an agent", of: reflect.TypeFor[trial.Test]()},
		{name: "skill", about: "the front matter of skills/NAME/SKILL.md", of: reflect.TypeFor[skills.Skill]()},
		{name: "letter", about: "a dropped message in drop/, as ID__anything.json", of: reflect.TypeFor[inbox.Fields](),
			loose: true, finish: func(s *jsonschema.Schema) {
				file := s.Properties["files"]
				file.Items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Description: "its absolute path"}, file.Items}}
			}},
		{name: "request", about: "permissions/TOKEN.json, and a line of permissions/log.jsonl",
			of: permission.FileType(), loose: true, need: []string{"token", "agentId", "permission", "request", "sha256"}},
		{name: "file", about: "files/ID.json: the reference of an attachment", of: reflect.TypeFor[message.File](),
			loose: true, need: []string{"id", "name"}},
		{name: "usage", about: "a line of usage/DATE.jsonl", of: budget.LineType(), loose: true, need: []string{"at", "agent", "tokens"}},
		{name: "tokens", about: "tokens.json: hashes of API tokens by name",
			of: reflect.TypeFor[map[string]apitoken.Token](), finish: func(s *jsonschema.Schema) {
				for _, scope := range apitoken.Scopes {
					items := s.AdditionalProperties.Properties["scopes"].Items
					items.Enum = append(items.Enum, scope)
				}
			}},
		{name: "mcp-questions", about: "mcp.questions.json: what MCP servers asked users", of: mcp.QuestionsType(), loose: true},
		{name: "mcp", about: "mcp/ID.json: the tools of an MCP server as they were pinned", of: mcp.FileType(), loose: true},
		{name: "pairing", about: "pairing.json: pending pairing codes", of: pairing.FileType(), loose: true},
		{name: "lock", about: "daycare.lock: the running daemon, or the last one", of: reflect.TypeFor[disk.Holder](), loose: true,
			need: []string{"pid"}},
		{name: "log", about: "a line of logs/daycare.jsonl", of: reflect.TypeFor[logEntry](), loose: true,
			need: []string{"time", "level", "msg"}},
	}
}

// logEntry is what every line of the log has beside the keys of its message.
// sayRestart marks the sections of the settings that take effect after a restart, by x-apply.
func sayRestart(s *jsonschema.Schema) {
	sections := reflect.TypeFor[config.Config]()
	for i := range sections.NumField() {
		if apply := sections.Field(i).Tag.Get("apply"); apply != "" {
			s.Properties[sections.Field(i).Tag.Get("json")].Extra = map[string]any{"x-apply": apply}
		}
	}
}

type logEntry struct {
	Time  disk.Stamp `json:"time"`
	Level string     `json:"level" allow:"DEBUG|INFO|WARN|ERROR"`
	Msg   string     `json:"msg"`
}

func formNames() (names []string) {
	for _, f := range layouts() {
		names = append(names, f.name)
	}
	return names
}

// SchemaCommand prints the JSON Schemas of files, or writes them where editors look for them.
func SchemaCommand(c *term.App) *cobra.Command {
	names := append(formNames(), apiName)
	var dir string
	cmd := &cobra.Command{
		Use: "schema [NAME]", Short: "Print the JSON Schema of a file, or the API's OpenAPI document",
		Long: "Print a JSON Schema, for editors and other programs: " + strings.Join(formNames(), ", ") + ". `api` is the OpenAPI 3.1 " +
			"document of the HTTP API. With --dir, write all of them, as NAME.schema.json and api.openapi.json.",
		Example: "  daycare schema settings > settings.schema.json\n  daycare schema --dir .vscode\n" +
			"  daycare schema api > openapi.json",
		Args: cobra.MaximumNArgs(1), ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" {
				return writeSchemas(c, dir, names)
			}
			if len(args) == 0 {
				return term.Usage(cmd, "give a NAME: %s", strings.Join(names, ", "))
			}
			data, err := SchemaText(args[0])
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

// SchemaText is the schema of a file, or the OpenAPI document, as JSON.
func SchemaText(name string) ([]byte, error) {
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
		data, err := SchemaText(name)
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
	for _, f := range layouts() {
		if f.name == short {
			return f.schema(), nil
		}
	}
	return nil, &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("there is no schema %q", name),
		Do: "there are: " + strings.Join(append(formNames(), apiName), ", ")}
}

func (f layout) schema() (s *jsonschema.Schema) {
	if f.union != nil {
		s = &jsonschema.Schema{Type: "object", Required: []string{"type"}}
		for _, v := range f.union() {
			s.OneOf = append(s.OneOf, v.schema())
		}
	} else {
		s = schema.For(f.of, f.loose)
		s.Required = append(s.Required, f.need...)
	}
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", f.about
	if s.Properties != nil {
		s.Properties["$schema"] = &jsonschema.Schema{Type: "string"}
	}
	if f.finish != nil {
		f.finish(s)
	}

	return s
}
