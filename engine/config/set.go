package config

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// Text returns settings.yaml of a .daycare directory as it is; nil if there is none.
func Text(root string) ([]byte, error) { return readSettings(filepath.Join(root, Name)) }

// YAML returns a part of the settings as it is written in settings.yaml.
func YAML(part any) ([]byte, error) { return yaml.Marshal(part) }

// Replace replaces settings.yaml by data in one step, unless the file no longer contains before:
// then the error is disk.ErrChanged.
func Replace(vol *disk.Volume, root string, data, before []byte) error {
	path, err := disk.Through(root, filepath.Join(root, Name))
	if err == nil {
		_, err = vol.Exchange("settings", path, data, before)
	}
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}

	return nil
}

// errByHand: the place of a value is written in a way that only an editor can change.
var errByHand = errors.New("it is written in several lines, or used in several places; change it with: daycare config edit")

// Set returns the settings with one value changed or added; everything else, including comments,
// stays as it is. keys lead to it from the top; an entry of a list is named by its id. value is
// YAML on one line.
func Set(data []byte, value string, keys ...string) ([]byte, error) {
	name := strings.Join(keys, ".")
	var want any
	if err := yaml.Unmarshal([]byte(value), &want); err != nil || want == nil {
		return nil, fmt.Errorf("set %s: %q is not a value of YAML; put text in quotes", name, value)
	}

	changed, err := change(data, value, keys)
	if err == nil && !only(data, changed, keys, func(any) any { return want }) {
		err = errByHand
	}
	if err != nil {
		return nil, fmt.Errorf("set %s: %w", name, err)
	}

	return changed, nil
}

// only reports whether after says what before says, but for the change of the value that keys lead
// to: also what an alias takes from there has to stay as it is.
func only(before, after []byte, keys []string, change func(old any) any) bool {
	var want, got any
	err := errors.Join(yaml.Unmarshal(before, &want), yaml.Unmarshal(after, &got))

	return err == nil && reflect.DeepEqual(got, put(want, keys, change))
}

// put is a document with the value changed that keys lead to; what is not there is added.
func put(doc any, keys []string, change func(old any) any) any {
	if len(keys) == 0 {
		return change(doc)
	}
	switch n := doc.(type) {
	case nil:
		return map[string]any{keys[0]: put(nil, keys[1:], change)}
	case map[string]any:
		n[keys[0]] = put(n[keys[0]], keys[1:], change)
	case []any:
		for i, e := range n {
			if m, _ := e.(map[string]any); fmt.Sprint(m["id"]) == keys[0] || strconv.Itoa(i) == keys[0] {
				n[i] = put(e, keys[1:], change)
				break
			}
		}
	}

	return doc
}

// document is what settings.yaml says, nil for an empty file. A file that is not valid YAML in
// all its parts is not edited: what it says would depend on who reads it.
func document(data []byte) (*yaml.Node, error) {
	file := kind.YAML(Name, data)
	if file.Failed() {
		return nil, finding.Join(file.Found)
	}
	if err := yaml.Unmarshal(data, new(any)); err != nil {
		reason := strings.TrimPrefix(err.Error(), "yaml: ")
		if wrong := (*yaml.TypeError)(nil); errors.As(err, &wrong) { // keys that appear twice
			reason = strings.Join(wrong.Errors, "; ")
		}
		return nil, fmt.Errorf("%s is not valid: %s; correct it first: daycare config edit", Name, reason)
	}

	return file.Node(""), nil
}

// change is Set without a check of the result.
func change(data []byte, value string, keys []string) ([]byte, error) {
	node, err := document(data)
	if err != nil {
		return nil, err
	}
	if node == nil {
		return insertLine(data, lineCount(data), block(keys, value, "")), nil
	}

	for i, key := range keys {
		label, next, err := child(node, key)
		switch {
		case err != nil:
			return nil, err
		case next == nil:
			return add(data, node, keys[i:], value)
		case lacking(next):
			if i == len(keys)-1 {
				at := offset(data, label) + len(label.Value) + 1
				return splice(data, at, at, " "+value), nil
			}
			indent := strings.Repeat(" ", label.Column+1)
			return insertLine(data, label.Line, block(keys[i+1:], value, indent)), nil
		}

		node = next
	}

	from, to := extent(data, node)
	if from < 0 {
		return nil, errByHand
	}

	return splice(data, from, to, value), nil
}

// lacking reports whether a key is followed by nothing.
func lacking(value *yaml.Node) bool { return value.Value == "" && value.ShortTag() == "!!null" }

// child is the value of a key in a mapping, with the node of the key, or the entry of a list
// with that id; nil if there is none.
func child(n *yaml.Node, key string) (label, value *yaml.Node, err error) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i], n.Content[i+1], nil
			}
		}
		return nil, nil, nil
	case yaml.SequenceNode:
		for i, e := range n.Content {
			if id := own(e, "id"); id != nil && id.Value == key || strconv.Itoa(i) == key {
				return e, e, nil
			}
		}
		return nil, nil, fmt.Errorf("the list has no entry with the id %q; add it with: daycare config edit", key)
	case yaml.AliasNode:
		return nil, nil, errByHand
	}

	return nil, nil, fmt.Errorf("%q would be below a single value", key)
}

// add is data with keys added to a mapping that does not have the first of them.
func add(data []byte, n *yaml.Node, keys []string, value string) ([]byte, error) {
	if n.Style&yaml.FlowStyle == 0 {
		indent := n.Content[0].Column - 1
		last := lastLine(data, n.Content[0].Line, indent, func(string) bool { return true })
		return insertLine(data, last, block(keys, value, strings.Repeat(" ", indent))), nil
	}

	at := offset(data, n)
	flow := keys[len(keys)-1] + ": " + value
	for i := len(keys) - 2; i >= 0; i-- {
		flow = keys[i] + ": { " + flow + " }"
	}
	if len(n.Content) > 0 {
		return splice(data, at+1, at+1, " "+flow+","), nil
	}

	return splice(data, at+1, at+1, " "+flow+" "), nil
}

// block is keys, each below the one before, with the value of the last.
func block(keys []string, value, indent string) string {
	var b strings.Builder
	for i, key := range keys {
		b.WriteString(indent + strings.Repeat("  ", i) + key + ":")
		if i == len(keys)-1 {
			b.WriteString(" " + value)
		}
		b.WriteString("\n")
	}

	return b.String()
}

// lastLine is the last line of a block mapping or list whose entries are indented by indent
// and whose first is on line first; own says whether a line with that indent is one of its
// entries. What is only commented out does not count.
func lastLine(data []byte, first, indent int, own func(text string) bool) int {
	last := first
	for i, line := range strings.Split(string(data), "\n") {
		text := strings.TrimLeft(line, " ")
		blank := strings.TrimSpace(text) == "" || text[0] == '#'
		switch {
		case i+1 <= first || blank:
		case len(line)-len(text) < indent, len(line)-len(text) == indent && !own(text):
			return last
		default:
			last = i + 1
		}
	}

	return last
}

func lineCount(data []byte) int {
	return bytes.Count(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\n'}) + 1
}

// insertLine is data with text behind a line; lines are counted from 1.
func insertLine(data []byte, line int, text string) []byte {
	at := 0
	for range line {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			if at < len(data) {
				text = "\n" + text
			}
			return splice(data, len(data), len(data), text)
		}
		at += end + 1
	}

	return splice(data, at, at, text)
}

// splice is data with text in the place of a part. What would be behind the end is at the end.
func splice(data []byte, from, to int, text string) []byte {
	from, to = min(from, len(data)), min(to, len(data))
	return bytes.Join([][]byte{data[:from], []byte(text), data[to:]}, nil)
}

// extent is where a value that is written in one piece begins and ends; -1 for any other.
func extent(data []byte, n *yaml.Node) (from, to int) {
	from = offset(data, n)
	switch {
	case n.Style == 0 && bytes.HasPrefix(data[from:], []byte(n.Value)):
		return from, from + len(n.Value)
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		if end := quoted(data[from:]); end > 0 {
			return from, from + end
		}
	case n.Style&yaml.FlowStyle != 0:
		if end := bracketed(data[from:]); end > 0 {
			return from, from + end
		}
	}

	return -1, -1
}

// quoted is how long the quoted text is that data begins with; 0 if it has no end.
func quoted(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch {
		case data[0] == '"' && data[i] == '\\':
			i++
		case data[0] == '\'' && data[i] == '\'' && i+1 < len(data) && data[i+1] == '\'':
			i++
		case data[i] == data[0]:
			return i + 1
		}
	}

	return 0
}

// bracketed is how long the list or mapping in brackets is that data begins with; 0 if it
// does not, or has comments.
func bracketed(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			if n := quoted(data[i:]); n > 0 {
				i += n - 1
			}
		case '#':
			return 0
		}
	}

	return 0
}
