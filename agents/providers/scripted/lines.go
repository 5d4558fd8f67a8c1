package scripted

import (
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lines knows where the rules and steps of a script stand, for errors.
type lines struct{ rules []*yaml.Node }

func newLines(source []byte) lines {
	var doc yaml.Node
	if err := yaml.Unmarshal(source, &doc); err != nil || len(doc.Content) == 0 {
		return lines{}
	}
	return lines{items(member(doc.Content[0], "rules"))}
}

func (l lines) rule(i int) int {
	if i >= len(l.rules) {
		return 0
	}
	return l.rules[i].Line
}

func (l lines) step(i, j int) int {
	if i >= len(l.rules) {
		return 0
	}
	if steps := items(member(l.rules[i], "reply")); j < len(steps) {
		return steps[j].Line
	}
	return l.rules[i].Line
}

func member(n *yaml.Node, key string) *yaml.Node {
	if n = follow(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func items(n *yaml.Node) []*yaml.Node {
	if n = follow(n); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func follow(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// yamlLine takes the line number out of the text of a yaml error.
func yamlLine(err error) (int, string) {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	var typed *yaml.TypeError
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		reason = typed.Errors[0]
	}
	rest, ok := strings.CutPrefix(reason, "line ")
	number, text, found := strings.Cut(rest, ": ")
	line, nerr := strconv.Atoi(number)
	if !ok || !found || nerr != nil {
		return 0, reason
	}
	return line, text
}
