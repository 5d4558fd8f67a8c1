package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/finding"
)

// tree has something of each shape.
type nested struct {
	common
	Name   string            `json:"name"`
	Child  *nested           `json:"child"`
	Kids   []nested          `json:"kids"`
	Refs   []*gate           `json:"refs"`
	Nums   []int             `json:"nums"`
	Times  []time.Time       `json:"times"`
	Marks  []mark            `json:"marks"`
	Texts  []string          `json:"texts"`
	Gate   gate              `json:"gate" short:"command"`
	Odd    gate              `json:"odd" short:"none"`
	Counts map[string]int    `json:"counts"`
	Words  map[string]string `json:"words"`
	Free   map[string]any    `json:"free"`
	Mark   mark              `json:"mark"`
	What   any               `json:"what"`
	Skip   string            `json:"-"`
	Plain  string
	//lint:ignore U1000 a file cannot set it
	hidden string
}

type common struct {
	Inner string `json:"inner"`
}

// A mark has a reading of JSON of its own.
type mark struct{ sign string }

func (m *mark) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &m.sign); err != nil || m.sign == "bad" {
		return errors.New("no mark")
	}
	return nil
}

func (m mark) MarshalJSON() ([]byte, error) { return json.Marshal(m.sign) }

// What a file says is read as far as it is right, whatever its shape; each mistake has its line.
func TestShapesOfValues(t *testing.T) {
	for text, tt := range map[string]struct {
		want  nested
		found []string
	}{
		"inner: a\nname: b": {nested{common: common{"a"}, Name: "b"}, nil},
		"Plain: a\nhidden: b\nSkip: c\n-: d": {nested{}, []string{"1 warning unknown-key", "2 warning unknown-key",
			"3 warning unknown-key", "4 warning unknown-key"}},
		"child: {name: a, child: {name: b}}":   {nested{Child: &nested{Name: "a", Child: &nested{Name: "b"}}}, nil},
		"child: a":                             {nested{}, []string{"1 error wrong-type"}},
		"child:\n  nam: a":                     {nested{Child: &nested{}}, []string{"2 warning unknown-key"}},
		"kids: [{name: a}, {name: b}]":         {nested{Kids: []nested{{Name: "a"}, {Name: "b"}}}, nil},
		"kids:\n- {name: a}\n- 5\n- {name: b}": {nested{Kids: []nested{{Name: "a"}, {}, {Name: "b"}}}, []string{"3 error wrong-type"}},
		"kids: {name: a}":                      {nested{}, []string{"1 error wrong-type"}},
		"refs: [{command: a}]":                 {nested{Refs: []*gate{{Command: "a"}}}, nil},
		"nums: [1, 2]":                         {nested{Nums: []int{1, 2}}, nil},
		"nums:\n- 1\n- x\n- 3":                 {nested{Nums: []int{1, 3}}, []string{"3 error wrong-type"}},
		"texts: [a, 5, true]":                  {nested{Texts: []string{"a", "5", "true"}}, nil},
		"texts:\n- a\n-\n- b":                  {nested{Texts: []string{"a", "b"}}, []string{"3 error wrong-type"}},
		"times: [2026-12-01T09:00:00Z]":        {nested{Times: []time.Time{time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)}}, nil},
		"marks: [a, b]":                        {nested{Marks: []mark{{"a"}, {"b"}}}, nil},
		"mark: bad":                            {nested{}, []string{"1 error wrong-type"}},
		"mark: 5":                              {nested{}, []string{"1 error wrong-type"}},
		"mark: good":                           {nested{Mark: mark{"good"}}, nil},
		"what: {a: [1, b]}":                    {nested{What: map[string]any{"a": []any{1.0, "b"}}}, nil},
		"what: .inf":                           {nested{}, []string{"1 error wrong-type"}},
		"gate: run":                            {nested{Gate: gate{Command: "run"}}, nil},
		"gate: \"\"":                           {nested{}, nil},
		"gate: [run]":                          {nested{}, []string{"1 error wrong-type"}},
		"gate: {command: run, ratio: 3}":       {nested{Gate: gate{Command: "run"}}, []string{"1 error bad-value"}},
		"odd: run":                             {nested{}, nil},
		"counts: {a: 1, b: 2}":                 {nested{Counts: map[string]int{"a": 1, "b": 2}}, nil},
		"counts:\n  a: 1\n  b: x":              {nested{Counts: map[string]int{"a": 1}}, []string{"3 error wrong-type"}},
		"counts: [a]":                          {nested{}, []string{"1 error wrong-type"}},
		"words: {a: b, c: 5}":                  {nested{Words: map[string]string{"a": "b", "c": "5"}}, nil},
		"words:\n  a: b\n  c: [d]":             {nested{Words: map[string]string{"a": "b"}}, []string{"3 error wrong-type"}},
		"free: {a: {b: [1]}}":                  {nested{Free: map[string]any{"a": map[string]any{"b": []any{1.0}}}}, nil},
		"free: a":                              {nested{}, []string{"1 error wrong-type"}},
		"free: {a: 1, a: 2}":                   {nested{}, []string{"1 error wrong-type"}},
		"name: &n a\ninner: *n":                {nested{Name: "a", common: common{"a"}}, nil},
		"child: &c {name: a}\nkids: [*c]":      {nested{Child: &nested{Name: "a"}, Kids: []nested{{Name: "a"}}}, nil},
		"child: &c {name: a, inner: x}\n<<: *c": {nested{Child: &nested{Name: "a", common: common{"x"}}, Name: "a",
			common: common{"x"}}, nil},
		"child: &c {name: a, inner: x}\n<<: *c\nname: b": {nested{Child: &nested{Name: "a", common: common{"x"}}, Name: "b",
			common: common{"x"}}, nil},
		"kids: [&a {name: a}, &b {name: b, inner: x}]\n<<: [*a, *b]": {nested{Kids: []nested{{Name: "a"}, {Name: "b", common: common{"x"}}},
			Name: "a", common: common{"x"}}, nil},
		"<<: {name: a}":                 {nested{Name: "a"}, nil},
		"<<: a\nname: b":                {nested{Name: "b"}, []string{"1 error wrong-type"}},
		"<<: [{name: a}, 5]":            {nested{Name: "a"}, []string{"1 error wrong-type"}},
		"<<: {<<: {name: a}, inner: b}": {nested{common: common{"b"}}, nil},
	} {
		f := Kind{ID: "x"}.YAML("f", []byte(text+"\n"))
		var got nested
		f.Read(&got)
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(nested{}, mark{})); d != "" || !slices.Equal(ids(f), tt.found) {
			t.Errorf("%q: found %q, want %q (-want +got):\n%s", text, ids(f), tt.found, d)
		}
	}
}

// A file that is nested too deep, or refers to itself, is read to an end.
func TestWhatIsNestedTooDeep(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("{child: ", n) + "{name: a}" + strings.Repeat("}", n) }
	for text, want := range map[string]bool{deep(1): false, deep(30): false, deep(40): true, "child: &a {name: x, child: *a}": true,
		"kids: [" + strings.Repeat("{name: a}, ", 100) + "]": false} {
		f := Kind{ID: "x"}.YAML("f", []byte(text))
		f.Read(&nested{})
		if slices.ContainsFunc(ids(f), func(s string) bool { return strings.Contains(s, "too-") }) != want {
			t.Errorf("%.40q…: %q, too deep: %v", text, ids(f), !want)
		}
	}
}

// As encoding/json has it, the case of a key does not matter and null is nothing; at the top half
// of a value is none.
func TestWhatIsSpecialInJSON(t *testing.T) {
	for text, tt := range map[string]struct {
		want  nested
		found []string
	}{
		`{"NAME": "a", "Child": {"Name": "b"}}`:               {nested{Name: "a", Child: &nested{Name: "b"}}, nil},
		`{"name": null, "kids": null}`:                        {nested{}, nil},
		`{"texts": ["a", null]}`:                              {nested{Texts: []string{"a"}}, nil},
		`{"kids": [{"name": "a"}, 5]}`:                        {nested{}, []string{"1 error wrong-type"}},
		`{"name": "a", "gate": {"command": "b", "ratio": 3}}`: {nested{Name: "a"}, []string{"1 error bad-value"}},
		"{\"nums\":\n[1,\n2.5]}":                              {nested{}, []string{"3 error wrong-type"}},
		`{"nums": [1, 2], "what": 1e3}`:                       {nested{Nums: []int{1, 2}, What: 1000.0}, nil},
		`5`:                                                   {nested{}, []string{"1 error syntax"}},
		"{\"free\":\r\n {\"a\": tru}}":                        {nested{}, []string{"2 error syntax"}},
		"{}\n{}":                                              {nested{}, []string{"2 error syntax"}},
		`{"texts": [], "kids": [], "nums": [], "free": {}}`: {nested{Texts: []string{}, Kids: []nested{}, Nums: []int{},
			Free: map[string]any{}}, nil},
	} {
		f := Kind{ID: "x"}.JSON("f", []byte(text))
		var got nested
		f.Read(&got)
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(nested{}, mark{})); d != "" || !slices.Equal(ids(f), tt.found) {
			t.Errorf("%q: found %q, want %q (-want +got):\n%s", text, ids(f), tt.found, d)
		}
	}

	secret := Kind{ID: "x", Secret: true}
	for _, text := range []string{`{"name": "s3cret", s3cret`, `{"name": ["s3cret"], "nums": "s3cret", "child": "s3cret"}`} {
		f := secret.JSON("f", []byte(text))
		if f.Read(&nested{}); len(f.Found) == 0 || strings.Contains(fmt.Sprint(f.Found), "s3cret") {
			t.Errorf("a secret file is quoted: %+v", f.Found)
		}
	}
}

// What is read at the price of one parse is what a careful reading has nothing to say about.
func TestACleanFileIsOneWithoutFindings(t *testing.T) {
	clean := 0
	for _, rest := range []string{``, `, "mode": "fast"`, `, "mode": "odd"`, `, "count": 10`, `, "count": 0`, `, "name": "-"`,
		`, "name": ""`, `, "x": 1`, `, "name": 5`,
		`, "gate": {"command": "b", "ratio": 1.5}`, `, "gate": {"command": "b", "ratio": 3}`, `, "gate": {"ratio": 1}`, `, "gate": null`,
		`, "count": -1`,
		`, "gates": [{"command": "b"}, {"command": ""}]`, `, "gates": [{"command": "b"}]`, `, "globs": ["x"]`, `} x`, "}\n ", `} {`, `, `,
		`, "sizes": [2, 3]`,
		`, "sizes": [2, 10]`} {
		text := `{"count": 3, "name": "a"` + rest + `}`
		if strings.HasPrefix(rest, "}") {
			text = text[:len(text)-1]
		}
		var fast, slow clear
		f := Kind{ID: "x"}.JSON("f", []byte(text))
		f.Read(&slow)
		ok := Clean([]byte(text), &fast)
		if ok && (len(f.Found) > 0 || !reflect.DeepEqual(fast, slow)) {
			t.Errorf("%s is clean as %+v, and read carefully %+v with %q", text, fast, slow, ids(f))
		}
		if ok {
			clean++
		}
		if !ok && len(f.Found) == 0 {
			t.Errorf("%s is not clean, and there is nothing to say about it", text)
		}
	}

	if clean != 8 {
		t.Errorf("%d texts are clean, want 8", clean)
	}
}

// clear is shape without what JSON cannot say.
type clear struct {
	Name  string   `json:"name" check:"id,required"`
	Mode  string   `json:"mode" allow:"|fast|slow"`
	Count int      `json:"count" min:"1" max:"9"`
	Globs []string `json:"globs"`
	Gate  *gate    `json:"gate"`
	Gates []gate   `json:"gates"`
	Sizes []int    `json:"sizes" min:"1" max:"9"`
}

// The fields of a type are those that a file can set, in their order.
func TestFieldsOfAType(t *testing.T) {
	for range 2 {
		var keys []string
		for _, f := range Fields(reflect.TypeFor[nested]()) {
			keys = append(keys, f.Key)
			if v := reflect.ValueOf(&nested{}).Elem().FieldByIndex(f.Index); v.Type() != f.Type {
				t.Errorf("%s is found as a %s, want a %s", f.Key, v.Type(), f.Type)
			}
		}
		if got := strings.Join(keys, " "); got != "inner name child kids refs nums times marks texts gate odd counts words free mark what" {
			t.Errorf("fields are %s", got)
		}
	}

	for _, f := range Fields(reflect.TypeFor[shape]()) {
		if free := map[string]bool{"name": true, "mode": true, "every": true, "count": true, "gates": true}[f.Key]; f.free == free {
			t.Errorf("%s is free: %v", f.Key, f.free)
		}
	}
}

// A Markdown file that must have keys says so where it has none.
func TestMarkdownThatMustHaveKeys(t *testing.T) {
	for text, want := range map[string]struct {
		body  string
		found []string
	}{
		"---\nname: a\n---\nBody.\n": {"Body.", nil}, "Body.\n": {"Body.", []string{"1 error syntax"}},
		"---\n---\nBody.\n":          {"Body.", []string{"1 error syntax"}},
		"---\n- a\n---\nBody.\n":     {"Body.", []string{"1 error syntax"}},
		"---\nname: [\n---\nBody.\n": {"Body.", []string{"2 error syntax"}}, "---\nname: a\n": {"", []string{"1 error syntax"}},
	} {
		f := Kind{ID: "x", Keys: true}.Front("f", []byte(text))
		f.Read(&nested{})
		if got := ids(f); f.Body != want.body || len(got) != len(want.found) || len(got) > 0 && !strings.HasSuffix(got[0], "syntax") {
			t.Errorf("%q: %q, %q; want %q, %q", text, f.Body, got, want.body, want.found)
		}
		loose := Kind{ID: "x"}.Front("f", []byte("Body.\n"))
		if loose.Read(&nested{}); loose.Failed() || loose.Has("name") || loose.Body != "Body." {
			t.Errorf("where there need be none: %q", ids(loose))
		}
	}

	for _, size := range []int{20, 21} {
		k := Kind{ID: "x", Max: 20}
		text := []byte("name: " + strings.Repeat("a", size-6))
		for name, f := range map[string]*File{"YAML": k.YAML("f", text),
			"JSON":     k.JSON("f", []byte(`{"name": "`+strings.Repeat("a", size-12)+`"}`)),
			"Markdown": k.Front("f", []byte(strings.Repeat("a", size)))} {
			if f.Failed() != (size > 20) {
				t.Errorf("%s of %d bytes, of which 20 may be: %q", name, size, ids(f))
			}
		}
	}
}

// Keys are asked for by their paths, and a place is counted in bytes.
func TestPlacesAreCountedInBytes(t *testing.T) {
	f := Kind{ID: "x"}.YAML("f", []byte("name: ü\r\nkids: [{name: ü, inner: x}]\r\n"))
	f.Read(&nested{})
	for path, want := range map[string]bool{"name": true, "kids[0].inner": true, "kids[0]": true, "kids[1]": false, "inner": false,
		"kids[0].none": false} {
		if f.Has(path) != want {
			t.Errorf("%s is there: %v", path, !want)
		}
	}

	f.Bad("kids[0].inner", ": odd")
	if one := f.Found[0]; one.Line != 2 || one.Column != 26 {
		t.Errorf("its place is %d:%d, want 2:26", one.Line, one.Column)
	}
	f.Need("name", "inner", "kids")
	if got := ids(f); !slices.Equal(got, []string{"2 error bad-value", "1 error missing"}) {
		t.Errorf("needed: %q", got)
	}

	for _, empty := range []*File{Kind{ID: "x"}.YAML("f", nil), Kind{ID: "x"}.YAML("f", []byte("- a\n"))} {
		if empty.Need("name"); empty.Failed() {
			t.Errorf("of a file without keys: %q", ids(empty))
		}
	}
	part := Kind{ID: "x"}.Node("f", f.Node("kids[0]"))
	var got nested
	if part.Read(&got); got.Inner != "x" || part.Failed() {
		t.Errorf("a part is read as %+v, %q", got, ids(part))
	}
	if part.Tell(finding.Error, "odd", "inner", "odd", ""); part.Found[0].Line != 2 || part.Found[0].Column == 0 {
		t.Errorf("of a part its place is %d:%d", part.Found[0].Line, part.Found[0].Column)
	}
	if f.Node("none") == nil || f.Node("none[3].more") == nil || (Kind{}).YAML("f", nil).Node("a") != nil {
		t.Error("what is missing has no place")
	}
	if short := Short(strings.Repeat("ü", 40)); short != strings.Repeat("ü", 40) ||
		Short(strings.Repeat("ü", 41)) != strings.Repeat("ü", 39)+"…" {
		t.Errorf("quoted is %q", short)
	}
}
