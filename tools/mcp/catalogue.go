package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/plain"
	"daycare/tools"
)

// A Definition is what a server said of one tool.
type Definition struct {
	Name        string          `json:"name" check:"required"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	SHA256      string          `json:"sha256"` // of the three
}

// A Catalogue is the file of one server: the tools that agents have, and what the server says
// now if that is something else.
type Catalogue struct {
	Tools   []Definition `json:"tools"`
	Pending []Definition `json:"pending,omitempty"` // all that it says now; none: the same as Tools
	Prompts []Prompt     `json:"prompts,omitempty"` // as it lists them now: models are not told of them
}

// FileType is the form of the file.
func FileType() reflect.Type { return reflect.TypeFor[Catalogue]() }

// maxCatalogue bounds the file, in bytes.
const maxCatalogue = 32 << 20

// kind is how it is read.
var kind = form.Kind{ID: "mcp", Max: maxCatalogue,
	Remedy: "Remove the file: the tools of the server are then read and pinned anew at its next start."}

// Path is the file of a server in a folder .daycare/mcp.
func Path(dir, id string) string { return filepath.Join(dir, id+".json") }

// ReadCatalogue reads the file of a server; nil: there is none yet.
func ReadCatalogue(dir, id string) (*Catalogue, error) {
	path := Path(dir, id)
	data, _, err := beneath.Own(path, maxCatalogue)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tools of the MCP server %s: %w", id, err)
	}
	c, found := parse(path, data)
	return c, finding.Join(found)
}

// parse reads a catalogue. A definition whose hash is another was edited; only a server says
// what its tools are.
func parse(path string, data []byte) (*Catalogue, []finding.Finding) {
	f := kind.JSON(path, data)
	c := &Catalogue{}
	f.Read(c)
	for _, d := range slices.Concat(c.Tools, c.Pending) {
		if d.SHA256 != d.sum() {
			f.Tell(finding.Error, "hash", "", fmt.Sprintf("the tool %q does not have the hash beside it", d.Name), kind.Remedy)
			break
		}
	}
	if f.Failed() {
		return nil, f.Found
	}

	return c, f.Found
}

// Check finds what is wrong in the content of a catalogue, and what waits for its owner.
func Check(path string, content []byte) ([]finding.Finding, error) {
	c, found := parse(path, content)
	if c == nil {
		return found, nil
	}
	id := strings.TrimSuffix(filepath.Base(path), ".json")
	return append(found, c.findings(path, id)...), nil
}

// encode is the file of a catalogue.
func (c *Catalogue) encode() ([]byte, error) {
	data, err := json.Marshal(c)
	return append(plain.Indented(data), '\n'), err
}

// sum is the hash of what a server said of a tool.
func (d Definition) sum() string {
	h := sha256.New()
	var compact any
	json.Unmarshal(d.Schema, &compact) // what is no JSON has the hash of null, and is not used
	schema, _ := json.Marshal(compact) // the order of members does not count
	for _, part := range []string{d.Name, d.Description, string(schema)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}

	return hex.EncodeToString(h.Sum(nil))
}

// Define is what a server says of a tool, with its hash.
func Define(name, description string, schema json.RawMessage) Definition {
	d := Definition{Name: name, Description: description, Schema: schema}
	d.SHA256 = d.sum()
	return d
}

// define is a tool as a server lists it.
func define(t *sdk.Tool) Definition {
	schema, _ := json.Marshal(t.InputSchema) // it came as JSON
	return Define(t.Name, cmp.Or(t.Description, t.Title), schema)
}

// usable reports why agents cannot be given a tool; nil: they can.
func (d Definition) usable() error {
	if d.Name == "" || len(d.Name) > 128 || strings.ContainsFunc(d.Name, func(r rune) bool { return r < '!' || r > '~' }) {
		return fmt.Errorf("its name is not one: %.40q", d.Name)
	}
	if d.Name == resourceRight || d.Name == promptRight {
		return errors.New("its name is that of a permission")
	}
	spec := tools.Spec{Name: "t", Schema: d.schema()}
	_, err := tools.NewChecker(spec)
	return err
}

// Changes are the tools that differ between what agents have and what the server says now.
func (c *Catalogue) Changes() (added, changed, gone []string) {
	if c.Pending == nil {
		return nil, nil, nil
	}
	was, is := byName(c.Tools), byName(c.Pending)
	for _, d := range c.Pending {
		switch old, known := was[d.Name]; {
		case !known:
			added = append(added, d.Name)
		case old.SHA256 != d.SHA256:
			changed = append(changed, d.Name)
		}
	}
	for _, d := range c.Tools {
		if _, there := is[d.Name]; !there {
			gone = append(gone, d.Name)
		}
	}

	return added, changed, gone
}

func byName(list []Definition) map[string]Definition {
	m := make(map[string]Definition, len(list))
	for _, d := range list {
		m[d.Name] = d
	}

	return m
}

// offered are the tools that agents have, in the words that were pinned. One that the server
// describes differently by now stays among them, so that prompts change by what the owner does
// alone: a call of it is refused, and says what to do. One that is gone goes.
func (c *Catalogue) offered() []Definition {
	_, _, gone := c.Changes()
	if len(gone) == 0 {
		return c.Tools
	}

	return slices.DeleteFunc(slices.Clone(c.Tools), func(d Definition) bool { return slices.Contains(gone, d.Name) })
}

// seen is the catalogue after the server gave a list. Tools that are gone, and nothing else,
// need nobody's trust.
func (c *Catalogue) seen(list []Definition, prompts []Prompt) *Catalogue {
	if c == nil {
		return &Catalogue{Tools: list, Prompts: prompts}
	}
	next := &Catalogue{Tools: c.Tools, Pending: list, Prompts: prompts}
	if added, changed, gone := next.Changes(); len(added)+len(changed)+len(gone) == 0 {
		next.Pending = nil
	}

	return next
}

// Trusted is the catalogue with what the server says now.
func (c *Catalogue) Trusted() *Catalogue {
	if c.Pending == nil {
		return c
	}
	return &Catalogue{Tools: c.Pending, Prompts: c.Prompts}
}

// equal reports whether two catalogues say the same.
func (c *Catalogue) equal(other *Catalogue) bool {
	same := func(a, b Definition) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 }
	return c != nil && other != nil && slices.EqualFunc(c.Tools, other.Tools, same) &&
		slices.EqualFunc(c.Pending, other.Pending, same) && (c.Pending == nil) == (other.Pending == nil) &&
		slices.EqualFunc(c.Prompts, other.Prompts, func(a, b Prompt) bool {
			return a.Name == b.Name && a.Description == b.Description && slices.Equal(a.Arguments, b.Arguments)
		})
}

// findings are what the owner of a server should know of its tools.
func (c *Catalogue) findings(path, id string) (found []finding.Finding) {
	tell := func(suffix string, how finding.Severity, reason, remedy string) {
		found = append(found, finding.Finding{ID: "mcp-" + suffix, Severity: how, File: path, Reason: reason, Remedy: remedy})
	}
	added, changed, _ := c.Changes()
	if n := len(added) + len(changed); n > 0 {
		tell("changed", finding.Warning,
			fmt.Sprintf("the MCP server %s describes %d of its tools differently than when they were pinned: %s",
				id, n, some(append(changed, added...))),
			"These tools are withheld. Review them: daycare mcp trust "+id)
	}
	var bad []string
	for _, d := range c.Tools {
		if err := d.usable(); err != nil {
			bad = append(bad, fmt.Sprintf("%.60q (%.200s)", d.Name, err))
		}
	}
	if len(bad) > 0 {
		tell("tool-unusable", finding.Warning, fmt.Sprintf("%d tools of the MCP server %s cannot be used: %s", len(bad), id, some(bad)),
			"Agents do not have them. Tell whoever makes the server.")
	}

	return found
}

// some are the first of a list of names.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}

	return strings.Join(names, ", ")
}

// Trust has agents have the tools of a server as it describes them now. write replaces the
// file.
func Trust(dir, id string, write func(path string, data []byte) error) error {
	c, err := ReadCatalogue(dir, id)
	if err != nil || c == nil || c.Pending == nil {
		return err
	}
	data, err := c.Trusted().encode()
	if err == nil {
		err = write(Path(dir, id), data)
	}
	if err != nil {
		return fmt.Errorf("trust the tools of the MCP server %s: %w", id, err)
	}

	return nil
}
