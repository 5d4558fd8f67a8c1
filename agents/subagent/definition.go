package subagent

import (
	"encoding/json"
	"strings"
	"text/template"

	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/lazyregexp"
	"daycare/tools"
)

// A Definition is what one kind of sub-agent is.
type Definition struct {
	Name          string          `json:"name" check:"required"`
	Description   string          `json:"description" check:"required" jsonschema:"for the model that calls it"`
	Icon          string          `json:"icon"` // for users
	Tools         []string        `json:"tools"`
	MaxIterations int             `json:"maxIterations" min:"1" max:"100"` // rounds of tool calls
	Model         string          `json:"model"`                           // "": that of the caller
	Temperature   *float64        `json:"temperature" min:"0" max:"2"`
	InputSchema   json.RawMessage `json:"inputSchema" jsonschema:"a JSON Schema of the tool's arguments"`
	Summarize     string          `json:"summarize" allow:"verbatim|structured"` // Verbatim or Structured: what the caller reads
	Body          string          `json:"-"`                                     // system prompt, a text/template over the input
	File          string          `json:"-"`                                     // "": built in

	body *template.Template
}

// What the caller's model reads of a result.
const (
	Verbatim   = "verbatim"   // the text alone
	Structured = "structured" // a JSON object: success, output, counts, cost
)

// kind is how definitions are read: the body goes to a model, so it is bounded.
var kind = form.Kind{ID: "subagent", Max: 64 << 10, Keys: true,
	IDs: map[string]string{"bad-value": "invalid", "wrong-type": "invalid", "missing": "invalid"}}

const usualRounds = 8

var nameRule = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]*$`)

const longestName = 64 // of a tool

// usualInput is the input of a definition that names none.
const usualInput = `{"type":"object","properties":{"task":` +
	`{"type":"string","minLength":1,"description":"the task, with everything that it needs to know"}},` +
	`"required":["task"],"additionalProperties":false}`

// Parse reads a definition; file is for the findings. With one of severity Error
// the definition is not to be used.
func Parse(file string, data []byte) (Definition, []finding.Finding) {
	d, f := load(file, data)
	if _, err := tools.NewChecker(tools.Spec{Name: d.Name, Schema: d.InputSchema}); err != nil {
		f.Bad("inputSchema", ": %v", err)
	}

	return d, f.Found
}

// load is Parse without a look at the input schema: compiling it is half of what reading
// takes, and that of the program's own is checked by tests.
func load(file string, data []byte) (Definition, *form.File) {
	d := Definition{MaxIterations: usualRounds, Summarize: Verbatim, InputSchema: json.RawMessage(usualInput)}
	f := kind.Front(file, data)
	if f.Failed() {
		return d, f
	}

	f.Read(&d)
	d.Body = f.Body
	if d.Name != "" && (!nameRule.MatchString(d.Name) || len(d.Name) > longestName) {
		f.Bad("name", ": found %q, allowed: up to %d letters, digits, - and _, and a letter at its beginning", d.Name, longestName)
	}
	if d.Description = strings.TrimSpace(d.Description); d.Description == "" && f.Has("description") {
		f.Bad("description", " is empty: the calling model chooses by it")
	}
	if d.Body == "" {
		f.Tell(finding.Error, "invalid", "", "there is no text below the keys: it is the sub-agent's system prompt", "")
	}

	var err error
	if d.body, err = template.New(d.Name).Option("missingkey=zero").Parse(d.Body); err != nil {
		f.Tell(finding.Error, "invalid", "", "the text is not a template: "+err.Error(), "")
	}

	return d, f
}
