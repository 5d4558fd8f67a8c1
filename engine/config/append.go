package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Append returns the settings with one more entry at the end of a list; everything else, including
// comments, stays as it is. keys lead to the list as in Set. item is YAML: a value on one line, or
// a mapping with one line per key. A missing list is inserted before its commented example, if the
// file has one.
func Append(data []byte, item string, keys ...string) ([]byte, error) {
	name, item := strings.Join(keys, "."), strings.TrimRight(item, "\n")
	var want any
	if err := yaml.Unmarshal([]byte(item), &want); err != nil || want == nil {
		return nil, fmt.Errorf("add to %s: %q is not a value of YAML; put text in quotes", name, item)
	}

	changed, err := appended(data, item, keys)
	if err == nil && !only(data, changed, keys, func(old any) any {
		list, _ := old.([]any)
		return append(list, want)
	}) {
		err = errByHand
	}
	if err != nil {
		return nil, fmt.Errorf("add to %s: %w", name, err)
	}

	return changed, nil
}

// at is the value that keys lead to, with the node of the last key; nil if there is none.
func at(n *yaml.Node, keys []string) (label, value *yaml.Node, err error) {
	for _, key := range keys {
		if n == nil {
			return nil, nil, nil
		}
		if label, n, err = child(n, key); err != nil {
			return nil, nil, err
		}
	}

	return label, n, nil
}

// appended is Append without a look at the result.
func appended(data []byte, item string, keys []string) ([]byte, error) {
	top, err := document(data)
	if err != nil {
		return nil, err
	}
	label, list, err := at(top, keys)
	if err != nil {
		return nil, err
	}

	line := flow(item)
	block := strings.Contains(item, "\n")
	switch {
	case list == nil && block && len(keys) == 1 && !flowing(top):
		line, space := beginning(data, keys[0])
		return insertLine(data, line, keys[0]+":\n"+listed(item, "  ")+space), nil
	case list == nil:
		return change(data, "["+line+"]", keys)
	case lacking(list):
		return insertLine(data, label.Line, listed(item, strings.Repeat(" ", label.Column+1))), nil
	case list.Kind != yaml.SequenceNode:
		return nil, errByHand
	case !flowing(list):
		indent := list.Column - 1
		last := lastLine(data, list.Line, indent, func(text string) bool { return text[0] == '-' })
		return insertLine(data, last, listed(item, strings.Repeat(" ", indent))), nil
	}

	return intoBrackets(data, list, line)
}

// flowing reports a list or mapping that is written in brackets.
func flowing(n *yaml.Node) bool { return n != nil && n.Style&yaml.FlowStyle != 0 }

// intoBrackets is data with an item at the end of a list in brackets.
func intoBrackets(data []byte, list *yaml.Node, item string) ([]byte, error) {
	from, to := extent(data, list)
	if from < 0 {
		return nil, errByHand
	}
	end := from + len(strings.TrimRight(string(data[from:to-1]), " \n"))
	if len(list.Content) > 0 {
		item = ", " + item
	}

	return splice(data, end, end, item), nil
}

// listed is an item as an entry of a list with a line for each.
func listed(item, indent string) string {
	return indent + "- " + strings.ReplaceAll(item, "\n", "\n"+indent+"  ") + "\n"
}

// flow is an item, which is known to be YAML, on one line.
func flow(item string) string {
	if !strings.Contains(item, "\n") {
		return item
	}
	var n yaml.Node
	_ = yaml.Unmarshal([]byte(item), &n)
	n.Content[0].Style |= yaml.FlowStyle
	text, _ := yaml.Marshal(n.Content[0])

	return strings.TrimSpace(string(text))
}

// beginning is the line behind which a key of the top begins that the file does not have, and
// what follows it: an empty line in front of its example, where the file has one as a comment.
func beginning(data []byte, key string) (line int, space string) {
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		if line == "#"+key+":" && !within(lines[i:]) {
			return i, "\n"
		}
	}

	return lineCount(data), ""
}

// within reports whether lines continue with a value that began before them.
func within(lines []string) bool {
	for _, line := range lines {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			return line[0] == ' ' || line[0] == '-'
		}
	}

	return false
}
