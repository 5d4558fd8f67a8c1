package config

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// ErrNotPlain: a value is not a plain value in settings.yaml, so it can only be changed by hand.
var ErrNotPlain = errors.New("not a plain value in settings.yaml")

// SetPlain replaces one value of settings.yaml, such as 5 in budget.perDay.usd, and leaves every
// other character of the file as it is. If someone saves the file meanwhile, their version wins.
// Errors: ErrNotPlain, disk.ErrChanged.
func SetPlain(vol *disk.Volume, root, value string, keys ...string) error {
	name := strings.Join(keys, ".")
	path, err := disk.Through(root, filepath.Join(root, Name))
	if err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}

	data, err := readSettings(path)
	if err != nil {
		return err
	}

	file := kind.YAML(path, data)
	if file.Failed() {
		return fmt.Errorf("set %s: %w", name, finding.Join(file.Found))
	}
	node := file.Node("")
	for _, key := range keys {
		if node = own(node, key); node == nil {
			return fmt.Errorf("set %s: %w", name, ErrNotPlain)
		}
	}

	from, to := extent(data, node)
	if from < 0 || to-from != len(node.Value) || node.Kind != yaml.ScalarNode {
		return fmt.Errorf("set %s: %w", name, ErrNotPlain)
	}
	changed := splice(data, from, to, value)
	if _, err := vol.Exchange("settings", path, changed, data); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}

	return nil
}

// own is the value that stands for a key in this very mapping, or nil: what an alias or a
// merge brings in stands elsewhere, and may be used elsewhere too.
func own(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}

	return nil
}

// offset is where a node of data begins; the end, where that is not in the text.
func offset(data []byte, n *yaml.Node) int {
	at := 0
	for range n.Line - 1 {
		at += bytes.IndexByte(data[at:], '\n') + 1
	}

	column := 1
	for i := range string(data[at:]) { // columns are characters
		if column == n.Column {
			return at + i
		}
		column++
	}

	return len(data)
}
