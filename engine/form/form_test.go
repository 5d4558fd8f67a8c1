package form

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/finding"
)

type shape struct {
	Name    string            `json:"name" check:"id,required"`
	Mode    string            `json:"mode" allow:"|fast|slow"`
	Every   time.Duration     `json:"every" min:"1s"`
	Count   int               `json:"count" min:"1" max:"9"`
	On      *bool             `json:"on"`
	At      *time.Time        `json:"at"`
	Globs   []string          `json:"globs"`
	Labels  map[string]string `json:"labels"`
	Options map[string]any    `json:"options"`
	Gate    *gate             `json:"gate" short:"command"`
	Gates   []gate            `json:"gates" check:"open"`
}

type gate struct {
	Command string  `json:"command" check:"required"`
	Ratio   float64 `json:"ratio" max:"2"`
}

func told(f *File) []string {
	all := []string{}
	for _, one := range f.Found {
		s := fmt.Sprintf("%d:%d %s %s: %s", one.Line, one.Column, one.Severity, one.ID, one.Reason)
		if one.Remedy != "" {
			s += " | " + one.Remedy
		}
		all = append(all, s)
	}

	return all
}

// The same struct is read from YAML, from JSON and from the top of a Markdown file.
func TestEveryFormat(t *testing.T) {
	on, at := false, time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	want := shape{Name: "a", Mode: "fast", Every: time.Minute, Count: 3, On: &on, At: &at, Globs: []string{"x", "5"},
		Labels: map[string]string{"K": "v"}, Options: map[string]any{"Deep": map[string]any{"n": 1.0}},
		Gate: &gate{"true", 1.5}, Gates: []gate{{Command: "b"}}}
	const text = `name: a
mode: fast
every: 1m
count: 3
on: false
at: 2026-12-01T09:00:00Z
globs: [x, 5]
labels: {K: v}
options: {Deep: {n: 1}}
gate: {command: "true", ratio: 1.5}
gates: [{command: b, mine: 1}]
`
	const json = `{"name": "a", "mode": "fast", "every": "1m", "count": 3, "on": false, "at": "2026-12-01T09:00:00Z",
	"globs": ["x", "5"], "labels": {"K": "v"}, "options": {"Deep": {"n": 1}}, "gate": {"command": "true", "ratio": 1.5},
	"gates": [{"command": "b", "mine": 1}], "$schema": "x"}`
	k := Kind{ID: "x"}
	for name, f := range map[string]*File{"YAML": k.YAML("f", []byte(text)), "JSON": k.JSON("f", []byte(json)),
		"front matter": k.Front("f", []byte("\ufeff---\r\n"+text+"---\nBody.\n"))} {
		var got shape
		f.Read(&got)
		if d := cmp.Diff(want, got); d != "" || len(f.Found) > 0 {
			t.Errorf("%s: findings %q (-want +got):\n%s", name, told(f), d)
		}
		if name == "front matter" && f.Body != "Body." {
			t.Errorf("body %q", f.Body)
		}
	}
}

// A finding says where, what is there and what is allowed; what is right is read all the same.
func TestFindingsOfJSON(t *testing.T) {
	k := Kind{ID: "x", Unknown: finding.Info, IDs: map[string]string{"bad-value": "invalid"}, Remedy: "Mend it."}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"{\n\t\"name\": \"a\",\n\t\"count\": 10}",
			[]string{"3:11 error x-invalid: count: found 10, allowed: a whole number from 1 to 9 | Mend it."}},
		{`{"name": 5}`, []string{`1:10 error x-wrong-type: name: found 5, allowed: letters, digits, dot, dash and underscore, at most ` +
			`64 | Mend it.`}},
		{`{"name": "a", "count": "3"}`,
			[]string{`1:24 error x-wrong-type: count: found the text "3", allowed: a whole number from 1 to 9 | Mend it.`}},
		{`{"name": "a", "count": 1.5}`, []string{`1:24 error x-wrong-type: count: found 1.5, allowed: a whole number from 1 to 9 ` +
			`| Mend it.`}},
		{`{"name": "a", "count": 99999999999999999999}`,
			[]string{`1:24 error x-wrong-type: count: found 99999999999999999999, allowed: a whole number from 1 to 9 | Mend it.`}},
		{`{"nane": "a", "name": "a"}`, []string{`1:2 info x-unknown-key: unknown member "nane" is kept but ignored | did you ` +
			`mean "name"?`}},
		{`{"name": "b", "name": "a"}`, []string{`1:15 warning x-duplicate-key: name appears twice; the last one is used`}},
		{`{"name": "a", "at": "today"}`, []string{`1:21 error x-wrong-type: at: found the text "today", allowed: a time such as ` +
			`2026-12-01T09:00:00Z | Mend it.`}},
		{`{"name": "a", "gates": [{"ratio": 3}]}`,
			[]string{`1:35 error x-invalid: gates[0].ratio: found 3, allowed: a number of at most 2 | Mend it.`,
				"1:25 error x-missing: gates[0].command is missing | Mend it."}},
		{`{"name": "a", "globs": "x"}`, []string{`1:24 error x-wrong-type: globs: found the text "x", allowed: a list | Mend it.`}},
		{`{"name": null}`, []string{"1:1 error x-missing: name is missing | Mend it."}},
		{`["a"]`, []string{"1:1 error x-syntax: found a list, allowed: one JSON object | Mend it."}},
		{"{\"name\": \"\\ud83d\\ude00\"}", []string{
			`1:10 error x-invalid: name: found the text "😀", allowed: letters, digits, dot, dash and underscore, at most 64 | Mend it.`}},
		{"{\n  name: 1\n}", []string{"2:3 error x-syntax: not JSON: invalid character 'n' looking for beginning of object key string " +
			"| Mend it."}},
		{"", []string{"1:1 error x-syntax: not JSON: unexpected end of JSON input | Mend it."}},
	} {
		f := k.JSON("f", []byte(c.text))
		var got shape
		f.Read(&got)
		if d := cmp.Diff(c.want, told(f)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, d)
		}
	}
}

// An empty list in JSON is a list; in YAML it is as good as none.
func TestEmptyLists(t *testing.T) {
	var fromJSON, fromYAML shape
	Kind{ID: "x"}.JSON("f", []byte(`{"name": "a", "globs": [], "gates": []}`)).Read(&fromJSON)
	Kind{ID: "x"}.YAML("f", []byte("name: a\nglobs: []\ngates: []\n")).Read(&fromYAML)
	if fromJSON.Globs == nil || fromJSON.Gates == nil || fromYAML.Globs != nil || fromYAML.Gates != nil {
		t.Errorf("%#v, %#v", fromJSON, fromYAML)
	}
}

// Loose files mean what users in a hurry write.
func TestLooseFiles(t *testing.T) {
	k := Kind{ID: "x", Loose: true, Wrong: finding.Warning}
	f := k.Front("f", []byte("---\nname: \" a \"\non: \"No\"\nglobs: notes/*\ngate: \"exit 0\"\nmode: [fast]\ncount: many\n"+
		"labels: {a: \"\\0\"}\n---\n"))
	var got shape
	f.Read(&got)
	no := false
	if d := cmp.Diff(shape{Name: "a", On: &no, Globs: []string{"notes/*"}, Gate: &gate{Command: "exit 0"}, Mode: "fast",
		Labels: map[string]string{}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	want := []string{"6:7 warning x-wrong-type: mode: found a list, allowed: a text",
		`7:8 warning x-wrong-type: count: found the text "many", allowed: a whole number from 1 to 9`,
		`8:13 warning x-bad-value: labels.a: found the text "\x00", allowed: a text without zero bytes`}
	if d := cmp.Diff(want, told(f)); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
}

// A part that is not there has the place of what it would be in.
func TestPlacesOfKeys(t *testing.T) {
	f := Kind{ID: "x"}.YAML("f", []byte("name: a\ngates:\n  - command: b\n"))
	f.Read(&shape{})
	f.Bad("gates[0].ratio", ": too small")
	f.Bad("gates[3].command", ": missing")
	f.Bad("name", ": taken")
	f.Tell(finding.Error, "odd", "", "the whole", "")
	want := []string{"3:5 error x-bad-value: gates[0].ratio: too small", "3:3 error x-bad-value: gates[3].command: missing",
		"1:7 error x-bad-value: name: taken", "0:0 error x-odd: the whole"}
	if d := cmp.Diff(want, told(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Markdown is split at its marks, whatever its ends of lines, and only at whole lines.
func TestFrontMatter(t *testing.T) {
	for text, want := range map[string]string{
		"":                             `"" "" false`,
		"# Text\n---\n":                `"" "# Text\n---\n" false`,
		"---\na: 1\n---\nBody":         `"a: 1\n" "Body" true`,
		"--- \r\na: 1\r\n---\t\r\nB":   `"a: 1\r\n" "B" true`,
		"---\n---\n":                   `"" "" true`,
		"---\na: 1\n---- \n --- \n---": `"a: 1\n---- \n --- \n" "" true`,
	} {
		head, body, marked, err := Split([]byte(text))
		if got := fmt.Sprintf("%q %q %v", head, body, marked); got != want || err != nil {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}

	f := Kind{ID: "x", Max: 20}.Front("f", []byte("---\nname: a"))
	if d := cmp.Diff([]string{"1:1 error x-syntax: the first line is ---, but a second --- after the keys is missing"}, told(f)); d != "" {
		t.Error(d)
	}
	f = Kind{ID: "x", Max: 20}.Front("f", []byte("---\nname: aaaaaaaaaaaaaaa"))
	if d := cmp.Diff([]string{"0:0 error x-too-large: the file has 25 bytes, allowed: 20"}, told(f)); d != "" {
		t.Error(d)
	}
}

// No text makes the readers panic or report a place that cannot be.
func FuzzRead(f *testing.F) {
	f.Add("name: a\n")
	f.Add(`{"name": "a", "gates": [{"command": "b"}], "globs": ["x"]}`)
	f.Add("---\nname: &a [*a]\n<<: *a\n---\n")
	f.Add(`{"options": {"a": {"b": [1e999, null, "\u0000"]}}, "labels": {"": ""}}`)
	f.Fuzz(func(t *testing.T, text string) {
		k := Kind{ID: "x", Loose: len(text)%2 == 0}
		for _, file := range []*File{k.YAML("f", []byte(text)), k.JSON("f", []byte(text)), k.Front("f", []byte(text))} {
			var got shape
			file.Read(&got)
			for _, one := range file.Found {
				if one.Reason == "" || one.Line < 0 || one.Column < 0 {
					t.Errorf("finding %+v", one)
				}
			}
		}
	})
}
