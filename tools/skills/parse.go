package skills

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/unicode/norm"

	"daycare/engine/finding"
	"daycare/engine/lazyregexp"
)

// A Skill is one SKILL.md.
type Skill struct {
	Name          string
	Description   string
	License       string
	Compatibility string
	AllowedTools  string
	Metadata      map[string]string
	Body          string
	Dir           string // absolute
	File          string
	SHA256        string // of the whole file, so that a person sees whether it changed

	source source // of its other files
}

// Bounds of the specification, in characters.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
	maxFile          = 256 << 10 // bytes: a how-to, not a book
)

var fields = []string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}

// Parse reads the SKILL.md at file, an absolute path. ok is false if it cannot
// be used.
func Parse(file string, data []byte) (s Skill, found []finding.Finding, ok bool) {
	p := &parser{file: file}
	sum := sha256.Sum256(data)
	s = Skill{File: file, Dir: filepath.Dir(file), SHA256: hex.EncodeToString(sum[:])}
	head, body, err := split(data)
	if err != nil {
		p.bad(1, "skill-front-matter", "%v", err)
		return s, p.found, false
	}
	s.Body = strings.TrimSpace(strings.ToValidUTF8(string(body), "\uFFFD"))
	node, err := mapping(head)
	if err != nil {
		p.bad(1, "skill-front-matter", "the front matter is no YAML: %v", err)
		return s, p.found, false
	}
	p.read(node, &s)
	p.check(s)
	return s, p.found, s.Name != "" && s.Description != ""
}

type parser struct {
	file  string
	found []finding.Finding
	lines map[string]int
}

func (p *parser) add(severity finding.Severity, line int, id, format string, args ...any) {
	p.found = append(p.found, finding.Finding{ID: id, Severity: severity, File: p.file, Line: line, Column: 1,
		Reason: fmt.Sprintf(format, args...)})
}

func (p *parser) bad(line int, id, format string, args ...any) {
	p.add(finding.Error, line, id, format, args...)
}

func (p *parser) warn(line int, id, format string, args ...any) {
	p.add(finding.Warning, line, id, format, args...)
}

var fence = []byte("---")

// split takes front matter and body apart.
func split(data []byte) (head, body []byte, err error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	lines := bytes.SplitAfter(data, []byte("\n"))
	if !bytes.Equal(bytes.TrimSpace(lines[0]), fence) {
		return nil, nil, errors.New("a SKILL.md begins with a line of ---")
	}
	for i, line := range lines[1:] {
		if bytes.Equal(bytes.TrimRight(line, " \t\r\n"), fence) {
			return bytes.Join(lines[1:i+1], nil), bytes.Join(lines[i+2:], nil), nil
		}
	}
	return nil, nil, errors.New("the front matter has no end, a line of ---")
}

// plainValue is a line "key: value" whose value is not quoted.
var plainValue = lazyregexp.New(`^([A-Za-z][A-Za-z0-9_-]*):[ \t]+([^'"|>\[{&*!#\s].*)$`)

// mapping reads the front matter. Descriptions with a colon in them are common and
// no YAML; they are read as if they were quoted.
func mapping(head []byte) (*yaml.Node, error) {
	node, err := decode(head)
	if err == nil {
		return node, nil
	}
	lines := strings.Split(string(head), "\n")
	for i, line := range lines {
		if m := plainValue.FindStringSubmatch(strings.TrimRight(line, "\r")); m != nil && strings.Contains(m[2], ":") {
			lines[i] = m[1] + ": '" + strings.ReplaceAll(m[2], "'", "''") + "'"
		}
	}
	if again, aerr := decode([]byte(strings.Join(lines, "\n"))); aerr == nil {
		return again, nil
	}
	return nil, err
}

func decode(head []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(head, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("there are no keys in it")
	}
	return doc.Content[0], nil
}

// read takes the fields over.
func (p *parser) read(node *yaml.Node, s *Skill) {
	p.lines = map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		line := node.Content[i].Line + 1 // the line of --- is before the first
		p.lines[key] = line
		switch key {
		case "name":
			s.Name = norm.NFKC.String(strings.TrimSpace(p.text(key, value)))
		case "description":
			s.Description = strings.Join(strings.Fields(p.text(key, value)), " ")
		case "license":
			s.License = p.text(key, value)
		case "compatibility":
			s.Compatibility = p.text(key, value)
		case "allowed-tools":
			s.AllowedTools = p.text(key, value)
		case "metadata":
			s.Metadata = map[string]string{}
			if value.Kind != yaml.MappingNode {
				p.warn(line, "skill-metadata", "metadata must be keys with values")
				continue
			}
			for j := 0; j+1 < len(value.Content); j += 2 {
				s.Metadata[value.Content[j].Value] = value.Content[j+1].Value
			}
		default:
			p.warn(line, "skill-unknown-field", "the field %q is unknown and not used; allowed: %s", key, strings.Join(fields, ", "))
		}
	}
}

// text is the value of a field that is a text. A list is joined, for those who
// write allowed-tools as one.
func (p *parser) text(key string, value *yaml.Node) string {
	switch value.Kind {
	case yaml.ScalarNode:
		if value.Tag == "!!null" {
			return ""
		}
		return value.Value
	case yaml.SequenceNode:
		var parts []string
		for _, n := range value.Content {
			parts = append(parts, n.Value)
		}
		p.warn(value.Line+1, "skill-type", "%s must be a text, it is a list", key)
		return strings.Join(parts, " ")
	}
	p.warn(value.Line+1, "skill-type", "%s must be a text", key)
	return ""
}

// check holds the skill against the specification.
func (p *parser) check(s Skill) {
	line := func(key string) int { return max(p.lines[key], 1) }
	folder := norm.NFKC.String(filepath.Base(s.Dir))
	switch n := utf8.RuneCountInString(s.Name); {
	case n == 0:
		p.bad(line("name"), "skill-name", "the name is missing")
	case n > maxName:
		p.warn(line("name"), "skill-name", "the name has %d characters; %d are allowed", n, maxName)
	case !wellNamed(s.Name):
		p.warn(line("name"), "skill-name", "the name %q must be of lower-case letters, digits and single hyphens, none at its ends", s.Name)
	case s.Name != folder:
		p.warn(line("name"), "skill-name-folder", "the name %q is not that of its folder, %q", s.Name, folder)
	}
	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0:
		p.bad(line("description"), "skill-description", "the description is missing: a model chooses by it")
	case n > maxDescription:
		p.warn(line("description"), "skill-description", "the description has %d characters; %d are allowed", n, maxDescription)
	}
	if n := utf8.RuneCountInString(s.Compatibility); n > maxCompatibility {
		p.warn(line("compatibility"), "skill-compatibility", "compatibility has %d characters; %d are allowed", n, maxCompatibility)
	}
}

func wellNamed(name string) bool {
	for _, r := range name {
		if r != '-' && !unicode.IsDigit(r) && (!unicode.IsLetter(r) || unicode.ToLower(r) != r) {
			return false
		}
	}
	return !strings.HasPrefix(name, "-") && !strings.HasSuffix(name, "-") && !strings.Contains(name, "--")
}
