package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Remove returns the settings without one entry of a list; everything else, including comments,
// stays as it is. keys lead to the list, and the last one is the id of the entry.
func Remove(data []byte, keys ...string) ([]byte, error) {
	name := strings.Join(keys, ".")
	top, err := document(data)
	if err != nil {
		return nil, fmt.Errorf("remove %s: %w", name, err)
	}
	_, list, err := at(top, keys[:len(keys)-1])
	if err == nil && (list == nil || list.Kind != yaml.SequenceNode) {
		err = errByHand
	}
	if err != nil {
		return nil, fmt.Errorf("remove %s: %w", name, err)
	}
	i := slices.IndexFunc(list.Content, func(n *yaml.Node) bool { return idOf(n) == keys[len(keys)-1] })
	if i < 0 {
		return nil, fmt.Errorf("remove %s: there is no such entry", name)
	}

	// Where the last entry is gone from its line, the key is followed by nothing.
	changed := without(data, list, i)
	rest := func(old any) any {
		entries, _ := old.([]any) // another list where two ids are one number; then the results differ
		return slices.Delete(entries, min(i, len(entries)), min(i+1, len(entries)))
	}
	none := func(any) any { return nil }
	if at := keys[:len(keys)-1]; !only(data, changed, at, rest) && (len(list.Content) > 1 || !only(data, changed, at, none)) {
		return nil, fmt.Errorf("remove %s: %w", name, errByHand)
	}

	return changed, nil
}

// idOf is the id of an entry of a list.
func idOf(n *yaml.Node) string {
	var entry struct{ ID string }
	if n.Decode(&entry) != nil {
		return ""
	}

	return entry.ID
}

// without is data without the entry i of a list; data as it is where that is not simple.
func without(data []byte, list *yaml.Node, i int) []byte {
	if flowing(list) {
		from, to := extent(data, list.Content[i])
		switch {
		case i+1 < len(list.Content):
			to = offset(data, list.Content[i+1])
		case i > 0:
			_, from = extent(data, list.Content[i-1])
		}
		if from < 0 || to < 0 {
			return data
		}
		return splice(data, from, to, "")
	}
	first := list.Content[i].Line
	last := lastLine(data, first, list.Column-1, func(string) bool { return false })
	lines := strings.SplitAfter(string(data), "\n")
	return []byte(strings.Join(slices.Delete(lines, first-1, last), ""))
}
