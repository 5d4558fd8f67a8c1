package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
)

// YAML parses a file of one document.
func (k Kind) YAML(name string, data []byte) *File {
	f := k.open(name, data)
	if !f.tooLarge(data) {
		f.parse(data)
	}

	return f
}

// Node is a file of a part of another, which was parsed already.
func (k Kind) Node(name string, n *yaml.Node) *File {
	f := k.open(name, nil)
	f.root = n
	return f
}

func (k Kind) open(name string, data []byte) *File {
	return &File{kind: k, Name: name, data: data, places: map[string]*yaml.Node{}}
}

// tooLarge reports whether a file is above the bound of its kind, which is a finding.
func (f *File) tooLarge(data []byte) bool {
	if f.kind.Max == 0 || len(data) <= f.kind.Max {
		return false
	}
	f.Tell(finding.Error, "too-large", "", fmt.Sprintf("the file has %d bytes, allowed: %d", len(data), f.kind.Max), "")
	return true
}

// parse sets the root to that of the one document.
func (f *File) parse(data []byte) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return
	}
	if err == nil {
		switch err = d.Decode(&second); {
		case err == nil:
			f.syntax(second.Line, 0, "there is a second document after ---, allowed: one")
			return
		case errors.Is(err, io.EOF):
			err = nil
		}
	}
	if err != nil {
		f.notYAML(data, err)
		return
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		f.root = doc.Content[0]
	}
}

func (f *File) syntax(line, column int, reason string) {
	found := f.finding(finding.Error, "syntax", reason, f.kind.Syntax)
	found.Line, found.Column = line, column
	f.Found = append(f.Found, found)
}

// notYAML says where and why a text is not YAML. Of a byte that is no text the package says no place, of a tab the line
// before it, or no name.
func (f *File) notYAML(data []byte, err error) {
	line, reason := yamlError(err)
	column := 0
	if at, found := illegible(data); line == 0 && found != "" {
		line, column = finding.Position(data, int64(at))
		reason = "found " + found + ", allowed: text in UTF-8"
	}
	line = max(line, 1)
	if strings.Contains(reason, "tab character") || strings.Contains(reason, "cannot start any token") {
		for i, text := range bytes.Split(data, []byte("\n")) {
			tab := bytes.IndexByte(text, '\t')
			if (i+1 == line || i == line) && tab >= 0 && len(bytes.TrimLeft(text[:tab], " ")) == 0 {
				line, column, reason = i+1, tab+1, "found a tab in front of the line, allowed: spaces"
				break
			}
		}
	}

	f.syntax(line, column, "not YAML: "+reason)
}

// illegible is the first byte or character in data that YAML does not allow; "" if it allows all.
func illegible(data []byte) (at int, found string) {
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			return at, fmt.Sprintf("the byte 0x%02x", data[at])
		case unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r):
			return at, fmt.Sprintf("the character U+%04X", r)
		}
		at += size
	}

	return at, ""
}

// yamlError takes the line out of a message of the YAML package: "yaml: line 3:
// reason", or "yaml: reason" without one: 0.
func yamlError(err error) (line int, reason string) {
	reason = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(reason, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			return n, after
		}
	}

	return 0, reason // the package leaves the first line out
}

// Front parses a Markdown file: keys between two lines of ---, and the text below. A file
// without such lines is all text.
func (k Kind) Front(name string, data []byte) *File {
	f := k.open(name, data)
	if f.tooLarge(data) {
		return f
	}
	head, body, marked, err := Split(data)
	if err != nil {
		f.syntax(1, 1, err.Error())
		return f
	}

	f.Body = strings.TrimSpace(string(body))
	if marked {
		f.parse(append([]byte("\n"), head...)) // as many lines as in the file
	}

	switch {
	case !f.kind.Keys || f.Failed() || f.root != nil && f.root.Kind == yaml.MappingNode:
	case marked:
		f.syntax(1, 1, "there are no keys between the --- lines")
		f.root = nil
	default:
		f.syntax(1, 1, "the file must begin with a line ---, its keys, and another line ---")
	}

	return f
}

// ErrNoEnd: front matter begins and does not end.
var ErrNoEnd = errors.New("the first line is ---, but a second --- after the keys is missing")

// Split takes the keys of a Markdown file and the text below them apart. marked is false
// where there are no keys: the first line is not ---.
func Split(data []byte) (head, body []byte, marked bool, err error) {
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	line, rest, more := bytes.Cut(text, []byte("\n"))
	if !isMark(line) || !more {
		return nil, data, false, nil
	}

	for off := 0; off < len(rest); {
		end, next := len(rest), len(rest)
		if i := bytes.IndexByte(rest[off:], '\n'); i >= 0 {
			end, next = off+i, off+i+1
		}
		if isMark(rest[off:end]) {
			return rest[:off], rest[next:], true, nil
		}
		off = next
	}

	return nil, nil, false, ErrNoEnd
}

func isMark(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// JSON parses a file of one value. Of two members with one name the last one counts, as
// encoding/json has it.
func (k Kind) JSON(name string, data []byte) *File {
	f := &File{kind: k, Name: name, json: true, places: map[string]*yaml.Node{}}
	if f.tooLarge(data) {
		return f
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		offset := int64(len(data))
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) && syntax.Offset <= offset {
			offset = max(syntax.Offset-1, 0)
		}
		line, column := finding.Position(data, offset)
		reason := "not JSON"
		if !k.Secret {
			reason += ": " + err.Error()
		}

		f.syntax(line, column, reason)
		return f
	}

	t := tree{file: f, data: data, dec: json.NewDecoder(bytes.NewReader(data)), starts: []int{0}}
	t.dec.UseNumber()
	for i, c := range data {
		if c == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}

	f.root = t.value()
	return f
}

// A tree makes nodes of JSON. (YAML is not a superset: it knows neither tabs nor pairs of \u.)
type tree struct {
	file   *File
	data   []byte
	dec    *json.Decoder
	starts []int // of lines
}

// value makes the node of the next value. The text was valid as a whole.
func (t *tree) value() *yaml.Node {
	n := t.node()
	token, _ := t.dec.Token()
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
			t.members(n)
		} else {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
			for t.dec.More() {
				n.Content = append(n.Content, t.value())
			}
		}

		_, _ = t.dec.Token()
	case string:
		n.Tag, n.Value = "!!str", token
	case json.Number:
		n.Tag, n.Value = "!!int", token.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(token)
	default:
		n.Tag, n.Value = "!!null", "null"
	}

	return n
}

func (t *tree) members(n *yaml.Node) {
	at := map[string]int{}
	for t.dec.More() {
		key := t.value()
		value := t.value()
		if i, twice := at[key.Value]; twice {
			t.file.add(key, finding.Warning, "duplicate-key", key.Value+" appears twice; the last one is used", "")
			n.Content[i], n.Content[i+1] = key, value
			continue
		}
		at[key.Value] = len(n.Content)
		n.Content = append(n.Content, key, value)
	}
}

// node is a node at the place of the next value, which nothing is known of yet.
func (t *tree) node() *yaml.Node {
	at := int(t.dec.InputOffset())
	for at < len(t.data) && strings.IndexByte(" \t\r\n,:", t.data[at]) >= 0 {
		at++
	}
	line, exact := slices.BinarySearch(t.starts, at)
	if exact {
		line++
	}

	return &yaml.Node{Kind: yaml.ScalarNode, Line: line, Column: at - t.starts[line-1] + 1}
}
