package subagent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
	"daycare/engine/lazyregexp"
	"daycare/tools"
)

// A Definition is what one kind of sub-agent is.
type Definition struct {
	Name          string
	Description   string // for the model that calls it
	Icon          string // for people
	Tools         []string
	MaxIterations int    // rounds of tool calls
	Model         string // "": that of the caller
	Temperature   *float64
	InputSchema   json.RawMessage
	Summarize     string // Verbatim or Structured: what the caller reads
	Body          string // system prompt, a text/template over the input
	File          string // "": built in

	body *template.Template
}

// What the caller's model reads of a result.
const (
	Verbatim   = "verbatim"   // the text alone
	Structured = "structured" // a JSON object: success, output, counts, cost
)

const (
	maxFile       = 64 << 10 // bytes of a definition: the body goes to a model
	maxIterations = 100
	usualRounds   = 8
)

var nameRule = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// usualInput is the input of a definition that names none.
const usualInput = `{"type":"object","properties":{"task":{"type":"string","minLength":1,"description":"what is to be done, with all that it needs to know"}},"required":["task"],"additionalProperties":false}`

// Parse reads a definition; file is for the findings. With one of severity Error
// the definition is not to be used.
func Parse(file string, data []byte) (Definition, []finding.Finding) {
	p := &parser{file: file}
	d := p.definition(data)
	return d, p.found
}

// A parser reads one file.
type parser struct {
	file  string
	ours  bool // the file is one of the program's own
	found []finding.Finding
	nodes map[string]*yaml.Node
}

func (p *parser) tell(severity finding.Severity, id string, line int, format string, args ...any) {
	p.found = append(p.found, finding.Finding{ID: "subagent-" + id, Severity: severity, File: p.file, Line: line,
		Column: min(line, 1), Reason: fmt.Sprintf(format, args...)})
}

// bad tells of a wrong value.
func (p *parser) bad(key, format string, args ...any) {
	p.tell(finding.Error, "invalid", 1, key+" "+format, args...)
	if n := p.nodes[key]; n != nil {
		f := &p.found[len(p.found)-1]
		f.Line, f.Column = n.Line, n.Column
	}
}

func (p *parser) definition(data []byte) Definition {
	d := Definition{MaxIterations: usualRounds, Summarize: Verbatim, InputSchema: json.RawMessage(usualInput)}
	if len(data) > maxFile {
		p.tell(finding.Error, "too-large", 0, "the file has %d bytes; allowed are %d", len(data), maxFile)
		return d
	}
	head, body, ok := split(string(data))
	if !ok {
		p.tell(finding.Error, "syntax", 1, "the file must begin with a line ---, its keys, and another line ---")
		return d
	}
	d.Body = strings.TrimSpace(body)
	if !p.read(head) {
		return d
	}
	p.fields(&d)
	p.check(&d)
	return d
}

// split finds the keys, with as many empty lines before them as lines were taken
// off, so that the numbers of lines stay true.
func split(text string) (head, body string, ok bool) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", "", false
	}
	if rest, ok := strings.CutPrefix(rest, "---\n"); ok {
		return "\n", rest, true
	}
	head, body, ok = strings.Cut(rest, "\n---\n")
	if !ok {
		head, ok = strings.CutSuffix(rest, "\n---")
	}
	return "\n" + head, body, ok
}

var yamlLine = lazyregexp.New(`line (\d+): `)

// read takes the keys apart; false: they are not to be read.
func (p *parser) read(head string) bool {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			fmt.Sscan(m[1], &line) // the pattern has digits only
			text = strings.Replace(text, m[0], "", 1)
		}
		p.tell(finding.Error, "syntax", line, "not YAML: %s", text)
		return false
	}
	p.nodes = map[string]*yaml.Node{}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		p.tell(finding.Error, "syntax", 1, "there are no keys between the --- lines")
		return false
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		p.nodes[root.Content[i].Value] = root.Content[i+1]
	}
	return true
}

func (p *parser) fields(d *Definition) {
	var schema map[string]any
	known := []struct {
		key  string
		into any
		want string
	}{
		{"name", &d.Name, "a text"}, {"description", &d.Description, "a text"}, {"icon", &d.Icon, "a text"},
		{"tools", &d.Tools, "a list of names"}, {"maxIterations", &d.MaxIterations, "a number"}, {"model", &d.Model, "a text"},
		{"temperature", &d.Temperature, "a number"}, {"inputSchema", &schema, "a JSON Schema"}, {"summarize", &d.Summarize, "a text"},
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.key
		if n := p.nodes[k.key]; n != nil && n.Decode(k.into) != nil {
			p.bad(k.key, "must be %s", k.want)
		}
	}
	for key, n := range p.nodes {
		if !slices.Contains(names, key) {
			p.tell(finding.Warning, "unknown-key", n.Line, "unknown key %q is not used; known: %s", key, strings.Join(names, ", "))
		}
	}
	if schema != nil {
		data, err := json.Marshal(schema)
		if err != nil {
			p.bad("inputSchema", "is no JSON Schema: %v", err)
		}
		d.InputSchema = data
	}
}

func (p *parser) check(d *Definition) {
	var err error
	switch {
	case p.nodes["name"] == nil:
		p.bad("name", "is missing")
	case !nameRule.MatchString(d.Name):
		p.bad("name", "%q must be letters, digits, - and _, and begin with a letter", d.Name)
	}
	if d.Description = strings.TrimSpace(d.Description); d.Description == "" {
		p.bad("description", "is missing: the calling model chooses by it")
	}
	if d.MaxIterations < 1 || d.MaxIterations > maxIterations {
		p.bad("maxIterations", "is %d; allowed are 1 to %d", d.MaxIterations, maxIterations)
	}
	if d.Temperature != nil && (*d.Temperature < 0 || *d.Temperature > 2) {
		p.bad("temperature", "is %v; allowed are 0 to 2", *d.Temperature)
	}
	if d.Summarize != Verbatim && d.Summarize != Structured {
		p.bad("summarize", "is %q; allowed: %s, %s", d.Summarize, Verbatim, Structured)
	}
	if d.Body == "" {
		p.tell(finding.Error, "invalid", 0, "there is no text below the keys: it is the sub-agent's system prompt")
	}
	if d.body, err = template.New(d.Name).Option("missingkey=zero").Parse(d.Body); err != nil {
		p.tell(finding.Error, "invalid", 0, "the text is not a template: %v", err)
	}
	if p.ours {
		return // compiling is half of what reading takes, and tests have done it
	}
	if _, err := tools.NewChecker(tools.Spec{Name: d.Name, Schema: d.InputSchema}); err != nil {
		p.bad("inputSchema", "%v", err)
	}
}
