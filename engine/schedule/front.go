package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
	"daycare/engine/lazyregexp"
)

// maxFile bounds a TASK.md or a prompt, in bytes: the text goes to a model.
const maxFile = 256 << 10

// A front is a Markdown file in two parts: the keys between two lines of ---, and
// the text below.
type front struct {
	file  string
	head  []byte // the lines between the marks
	body  string
	first int // line number of the first line of head
	keys  map[string]*yaml.Node
	order []*yaml.Node // of the keys as they stand
	found []finding.Finding
}

// readFront splits a file and reads its keys. A file without marks is all text.
func readFront(file string, data []byte) *front {
	f := &front{file: file, keys: map[string]*yaml.Node{}}
	if len(data) > maxFile {
		f.bad(nil, "too-large", fmt.Sprintf("is %d bytes, allowed are %d", len(data), maxFile))
		return f
	}
	head, body, first, err := split(data)
	if err != nil {
		f.found = append(f.found, finding.Finding{ID: "schedule-syntax", Severity: finding.Error, File: file, Line: 1, Column: 1,
			Reason: err.Error(), Remedy: "put a line of --- after the last key"})
		return f
	}
	f.head, f.body, f.first = head, strings.TrimSpace(string(body)), first
	var doc yaml.Node
	if err := yaml.Unmarshal(head, &doc); err != nil {
		f.syntax(err)
		return f
	}
	if len(doc.Content) == 0 {
		return f
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		f.bad(root, "syntax", "the part between the --- lines is not keys and values")
		return f
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if _, twice := f.keys[key.Value]; twice {
			f.bad(key, "duplicate-key", key.Value+" is there twice")
			continue
		}
		f.keys[key.Value] = plain(root.Content[i+1])
		f.order = append(f.order, key)
	}
	return f
}

// split finds the marks. first is the line number of what follows the upper one.
func split(data []byte) (head, body []byte, first int, err error) {
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	line, rest, more := bytes.Cut(text, []byte("\n"))
	if string(bytes.TrimRight(line, " \t\r")) != "---" || !more {
		return nil, data, 0, nil
	}
	for off := 0; off < len(rest); {
		end, next := len(rest), len(rest)
		if i := bytes.IndexByte(rest[off:], '\n'); i >= 0 {
			end, next = off+i, off+i+1
		}
		if string(bytes.TrimRight(rest[off:end], " \t\r")) == "---" {
			return rest[:off], rest[next:], 2, nil
		}
		off = next
	}
	return nil, nil, 0, errors.New("the first line is ---, but no second one ends the keys")
}

// plain is what an alias stands for.
func plain(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

var yamlLine = lazyregexp.New(`line (\d+): `)

// syntax takes the line out of an error of the YAML library.
func (f *front) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := f.first
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // the pattern has digits only
		line, text = f.first+n-1, strings.Replace(text, m[0], "", 1)
	}
	f.found = append(f.found, finding.Finding{ID: "schedule-syntax", Severity: finding.Error, File: f.file, Line: line,
		Reason: "not YAML: " + text, Remedy: "correct the line; a text with a colon or a star needs quotes"})
}

// bad adds an error at a node; nil: the whole file.
func (f *front) bad(n *yaml.Node, id, reason string) { f.add(n, finding.Error, id, reason, "") }

func (f *front) add(n *yaml.Node, s finding.Severity, id, reason, remedy string) {
	at := finding.Finding{ID: "schedule-" + id, Severity: s, File: f.file, Reason: reason, Remedy: remedy}
	if n != nil && n.Line > 0 {
		at.Line, at.Column = f.first+n.Line-1, n.Column
	}
	f.found = append(f.found, at)
}

// failed reports whether the file as it stands cannot be in force.
func (f *front) failed() bool { return finding.Join(f.found) != nil }

// text reads a key as it is written, without what YAML would make of it: a time
// stays a time, 010 stays 010.
func (f *front) text(key string) string {
	n := f.keys[key]
	switch {
	case n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return ""
	case n.Kind != yaml.ScalarNode:
		f.bad(n, "wrong-type", key+" must be one text")
		return ""
	case strings.ContainsRune(n.Value, 0):
		f.bad(n, "wrong-value", key+" holds a zero byte")
		return ""
	}
	return strings.TrimSpace(n.Value)
}

func (f *front) flag(key string, byDefault bool) bool {
	n := f.keys[key]
	if n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return byDefault
	}
	if n.Kind == yaml.ScalarNode {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on":
			return true
		case "false", "no", "off":
			return false
		}
	}
	f.bad(n, "wrong-value", fmt.Sprintf("%s is %q, allowed: true, false", key, n.Value))
	return byDefault
}

// list reads a list of texts; one text is a list of one.
func (f *front) list(key string, n *yaml.Node) []string {
	switch {
	case n == nil || n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!null" || n.Value == ""):
		return nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}
	case n.Kind != yaml.SequenceNode:
		f.bad(n, "wrong-type", key+" must be a list")
		return nil
	}
	var all []string
	for _, e := range n.Content {
		if e = plain(e); e.Kind != yaml.ScalarNode {
			f.bad(e, "wrong-type", key+" must be a list of texts")
			continue
		}
		all = append(all, e.Value)
	}
	return all
}

// unknown warns of keys that nobody reads; they stay in the file.
func (f *front) unknown(known ...string) {
	for _, key := range f.order {
		if !slices.Contains(known, key.Value) {
			f.add(key, finding.Warning, "unknown-key", key.Value+" is unknown and not used", "known here: "+strings.Join(known, ", "))
		}
	}
}

// at is the node of a key, for a finding about its value.
func (f *front) at(keys ...string) *yaml.Node {
	for _, key := range keys {
		if n := f.keys[key]; n != nil {
			return n
		}
	}
	return nil
}

// named refuses a file whose name cannot be that of a task or prompt.
func (f *front) named(slug string) {
	if !ValidSlug(slug) {
		f.found = append(f.found, badName(f.file, slug))
	}
}
