package form

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
)

// A Kind is what files of one kind have in common.
type Kind struct {
	// ID is what the ids of findings begin with: "settings" of settings-unknown-key.
	ID string
	// IDs are those ends of ids that differ from the usual ones, by the usual.
	IDs map[string]string
	// Unknown is how bad a key is that no field has, Wrong a value that is not allowed;
	// "": a warning and an error.
	Unknown, Wrong finding.Severity
	// Odd is how bad a text is that is not among those allowed, "" as Wrong; below an error
	// the text is used.
	Odd finding.Severity
	// Secret files are not quoted.
	Secret bool
	// Remedy is what to do about an error, Syntax about a file that cannot be parsed.
	Remedy, Syntax string
	// Max limits a file, in bytes; 0: the caller limits it.
	Max int
	// Keys: Markdown has to begin with keys.
	Keys bool
	// Loose files are written by users in a hurry: texts are trimmed, yes and off are
	// true and false, and one text is a list of one.
	Loose bool
}

// A File is a text that was parsed.
type File struct {
	Name  string // of the file, for findings
	Body  string // of Markdown: the text below the keys
	Found []finding.Finding

	kind   Kind
	data   []byte   // for columns in bytes; nil: columns are in bytes already
	lines  []string // of data, made when the first finding needs them
	json   bool
	root   *yaml.Node // nil: there is nothing in it, or nothing that can be parsed
	places map[string]*yaml.Node
}

// Values is what the file says for a struct of type t, by key: what is wrong or unknown
// is a finding and left out. foreign are keys at the top that someone else reads.
func (f *File) Values(t reflect.Type, foreign ...string) map[string]any {
	values, _ := f.value(t, foreign).(map[string]any)
	return values
}

func (f *File) value(t reflect.Type, foreign []string) any {
	if f.root == nil {
		return nil
	}
	if left := maxShared; !affords(f.root, false, &left) {
		f.Tell(finding.Error, "too-large", "", fmt.Sprintf("its aliases stand for more than %d bytes", maxShared), "")
		return nil
	}
	r := reader{File: f, foreign: foreign}
	v, _ := r.read(f.root, t, "", "")

	return v
}

// Read fills the struct or map that into points to. What the file does not say, or says
// wrongly, stays as it is.
func (f *File) Read(into any, foreign ...string) {
	value := f.value(reflect.TypeOf(into).Elem(), foreign)
	if value == nil {
		return
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		f.Tell(finding.Error, "wrong-type", "", "cannot be read: "+err.Error(), "")
	}
}

// Any stands for all top-level keys that another reader reads.
const Any = "*"

// Check adds what is wrong with the file as a value of type t, and reads nothing.
func (f *File) Check(t reflect.Type, foreign ...string) { f.value(t, foreign) }

// Need adds which of some keys at the top are missing.
func (f *File) Need(keys ...string) {
	if f.root == nil || f.root.Kind != yaml.MappingNode {
		return
	}
	for _, key := range keys {
		if f.places[key] == nil {
			f.add(f.root, f.wrong(), "missing", key+" is missing", "")
		}
	}
}

// Failed reports whether the file, as it is, must not be used.
func (f *File) Failed() bool { return finding.Join(f.Found) != nil }

// Has reports whether a key is in the file, by its path: "gate.command", "models[2]".
func (f *File) Has(path string) bool { return f.places[path] != nil }

// Node is the value at a path, or where that is missing what it would be in; nil: there is
// nothing in the file.
func (f *File) Node(path string) *yaml.Node {
	for path != "" {
		if n := f.places[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}

	return f.root
}

// Bad adds that the value at a path is not allowed.
func (f *File) Bad(path, format string, args ...any) {
	f.Tell(f.wrong(), "bad-value", path, path+fmt.Sprintf(format, args...), "")
}

// Tell adds a finding about the value at a path, "" for the whole file.
func (f *File) Tell(s finding.Severity, id, path, reason, remedy string) {
	if path == "" {
		f.Found = append(f.Found, f.finding(s, id, reason, remedy))
		return
	}
	f.add(f.Node(path), s, id, reason, remedy)
}

func (f *File) add(n *yaml.Node, s finding.Severity, id, reason, remedy string) {
	found := f.finding(s, id, reason, remedy)
	if n != nil {
		found.Line, found.Column = n.Line, f.column(n)
	}
	f.Found = append(f.Found, found)
}

func (f *File) finding(s finding.Severity, id, reason, remedy string) finding.Finding {
	if other := f.kind.IDs[id]; other != "" {
		id = other
	}
	if remedy == "" && s == finding.Error {
		remedy = f.kind.Remedy
	}

	return finding.Finding{ID: f.kind.ID + "-" + id, Severity: s, File: f.Name, Reason: reason, Remedy: remedy}
}

func (f *File) wrong() finding.Severity {
	if f.kind.Wrong == "" {
		return finding.Error
	}
	return f.kind.Wrong
}

// column turns the column of a node, in characters, into bytes.
func (f *File) column(n *yaml.Node) int {
	if f.data != nil && f.lines == nil {
		f.lines = strings.Split(lineEnds.Replace(string(f.data)), "\n")
	}
	if n.Line < 1 || n.Line > len(f.lines) || n.Column < 1 {
		return n.Column
	}
	line, col := f.lines[n.Line-1], 0
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(line[col:])
		col += size
	}

	return col + 1
}

// lineEnds makes all ends of lines that YAML knows one.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Nearest is the name that s was probably meant to be, or "".
func Nearest(s string, names []string) string {
	best, dist := "", 3 // up to two wrong letters
	for _, n := range names {
		if strings.EqualFold(n, s) || len(n) > 2 && strings.HasPrefix(s, n) {
			return n
		}
		if d := distance(strings.ToLower(s), strings.ToLower(n)); d < dist && d < len(n) {
			best, dist = n, d
		}
	}

	return best
}

// distance is that of Levenshtein; long words are not compared.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	return levenshtein.ComputeDistance(a, b)
}

// HasCheck reports whether the check tag of a field names a check.
func HasCheck(tag reflect.StructTag, name string) bool {
	for check := range strings.SplitSeq(tag.Get("check"), ",") {
		if check == name {
			return true
		}
	}

	return false
}
