package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"daycare/engine/form"
)

// A key is one line to be written between the marks; Value "" takes the key out.
type key struct{ Name, Value string }

// withKeys sets keys of a file and leaves every other byte as it is: the order,
// comments and unknown keys belong to their author.
func withKeys(data []byte, keys ...key) []byte {
	head, body, _, err := form.Split(data)
	if err != nil {
		return data
	}
	for _, k := range keys {
		head = withKey(head, k)
	}

	return fmt.Appendf(nil, "---\n%s---\n%s", head, body)
}

func withKey(head []byte, k key) []byte {
	lines := strings.SplitAfter(string(head), "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	from, to, comment := extent(head, lines, k.Name)
	text := ""
	if k.Value != "" {
		text = k.Name + ": " + k.Value
		if comment != "" {
			text += "   " + comment
		}
		text += "\n"
	}

	return []byte(strings.Join(lines[:from], "") + text + strings.Join(lines[to:], ""))
}

// extent is which lines a key takes, [from, to), with the comment behind its value;
// where it is missing, the place behind the last line.
func extent(head []byte, lines []string, name string) (from, to int, comment string) {
	var doc yaml.Node
	if yaml.Unmarshal(head, &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return len(lines), len(lines), ""
	}
	nodes := doc.Content[0].Content
	for i := 0; i+1 < len(nodes); i += 2 {
		if nodes[i].Value != name {
			continue
		}
		from, to = nodes[i].Line-1, len(lines)
		if i+2 < len(nodes) {
			to = nodes[i+2].Line - 1
		}

		for to > from+1 { // what stands above the next key belongs to that
			if t := strings.TrimSpace(lines[to-1]); t != "" && !strings.HasPrefix(t, "#") {
				break
			}
			to--
		}
		return from, to, nodes[i+1].LineComment
	}

	return len(lines), len(lines), ""
}

// withBody replaces the text below the keys.
func withBody(data []byte, body string) []byte {
	head, _, marked, err := form.Split(data)
	if err != nil || !marked {
		return []byte(strings.TrimSpace(body) + "\n")
	}

	return fmt.Appendf(nil, "---\n%s---\n%s\n", head, strings.TrimSpace(body))
}

// quote writes a text so that YAML reads exactly that text.
func quote(text string) string {
	var n yaml.Node
	if yaml.Unmarshal([]byte("k: "+text), &n) == nil && len(n.Content[0].Content) == 2 {
		if v := n.Content[0].Content[1]; v.Value == text && v.ShortTag() == "!!str" && v.LineComment == "" {
			return text
		}
	}

	return jsonText(text)
}

// quoteList writes a list on one line.
func quoteList(all []string) string { return jsonText(all) }

// jsonText is JSON, which is YAML too.
func jsonText(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("schedule: a text cannot be encoded: " + err.Error())
	}

	return strings.TrimSpace(b.String())
}
