package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

// fake is a tool of which only the spec matters.
type fake struct{ spec tools.Spec }

func (f fake) Spec() tools.Spec { return f.spec }

func (f fake) Run(ctx context.Context, _ tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	return tools.Result{Text: "done"}, nil
}

const schema = `{"type":"object","properties":{
"path":{"type":"string","description":"file to read"},
"limit":{"type":"integer","minimum":1,"maximum":9},
"mode":{"type":"string","enum":["a","b"]},
"tags":{"type":"array","items":{"type":"string"}}},
"required":["path"],"additionalProperties":false}`

func spec(name string) tools.Spec {
	return tools.Spec{Name: name, Description: "A fake.", Schema: json.RawMessage(schema), Replay: tools.ReadOnly}
}

func TestFakeKeepsTheContract(t *testing.T) {
	toolstest.Run(t, fake{spec("fake")}, toolstest.Options{Access: permission.Default(t.TempDir()), Good: []string{`{"path":"x"}`}})
}

func TestValidateNamesFieldAndWhatIsAllowed(t *testing.T) {
	set, err := tools.NewSet(fake{spec("read")})
	if err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct{ args, want string }{
		{`{"path":"x"}`, ""},
		{`{"path":"x","limit":3,"mode":"a","tags":["t"]}`, ""},
		{`{"path":"x","limit":3.0}`, ""},
		{`{}`, `read: missing field "path" (string: file to read)`},
		{`{"path":1}`, `read: field "path" must be a string, not an integer`},
		{`{"path":null}`, `read: field "path" must be a string, not null`},
		{`{"path":"x","limit":"3"}`, `read: field "limit" must be an integer, not a string`},
		{`{"path":"x","limit":10}`, `read: field "limit" is 10; allowed: 1 to 9`},
		{`{"path":"x","limit":99999999}`, `read: field "limit" is 99999999; allowed: 1 to 9`},
		{`{"path":"x","mode":"c"}`, `read: field "mode" must be one of ["a","b"]`},
		{`{"path":"x","file":"y"}`, `read: unknown field "file"; allowed: limit, mode, path, tags`},
		{`{"path":"x","tags":[1]}`, `tags`},
		{`[]`, `read: arguments must be a JSON object`},
		{``, `read: arguments are not valid JSON: EOF`},
		{`{"path":`, `read: arguments are not valid JSON: unexpected EOF`},
		{`{"path":"x"} {}`, `read: arguments are more than one JSON value`},
	} {
		err := set.Validate("read", json.RawMessage(tc.args))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("Validate(%s)\n got %s\nwant %s", tc.args, got, tc.want)
		}
	}

	if err := set.Validate("none", []byte(`{}`)); err == nil {
		t.Error("a tool that is not there was validated")
	}
}

// A schema is compiled when its tool is called: then it is an error.
func TestASchemaThatDoesNotCompile(t *testing.T) {
	set, err := tools.NewSet(fake{tools.Spec{Name: "a", Replay: tools.Once,
		Schema: json.RawMessage(`{"type":"object","properties":{"x":{"pattern":"("}}}`)}})
	if err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if err := set.Validate("a", []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "a: compile schema") {
			t.Errorf("error %v", err)
		}
	}
}

func TestNewSetRefuses(t *testing.T) {
	for name, list := range map[string][]tools.Tool{
		"duplicate":  {fake{spec("a")}, fake{spec("a")}},
		"name":       {fake{spec("a b")}},
		"replay":     {fake{tools.Spec{Name: "a", Schema: json.RawMessage(schema)}}},
		"no schema":  {fake{tools.Spec{Name: "a", Replay: tools.Once}}},
		"not object": {fake{tools.Spec{Name: "a", Replay: tools.Once, Schema: json.RawMessage(`{"type":"string"}`)}}},
	} {
		if _, err := tools.NewSet(list...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWith(t *testing.T) {
	base, err := tools.NewSet(fake{spec("b")})
	if err != nil {
		t.Fatal(err)
	}
	more, err := base.With(fake{spec("a")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "a"}, more.Names()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b"}, base.Names()); diff != "" {
		t.Errorf("With changed the set it was asked of: %s", diff)
	}
	if err := more.Validate("b", []byte(`{"path":1}`)); err == nil {
		t.Error("a tool of the first set is no longer checked")
	}
	if _, err := base.With(fake{spec("b")}); err == nil {
		t.Error("a second tool of one name was added")
	}
}

func TestSetKeepsOrder(t *testing.T) {
	set, err := tools.NewSet(fake{spec("c")}, fake{spec("a")}, fake{spec("b")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c", "a", "b"}, set.Names()); diff != "" {
		t.Error(diff)
	}

	sub, missing := set.Only("b", "c", "x")
	if diff := cmp.Diff([]string{"c", "b"}, sub.Names()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x"}, missing); diff != "" {
		t.Error(diff)
	}
	if _, _, ok := sub.Get("a"); ok {
		t.Error("the subset has a tool that was not named")
	}

	for s, tool := range sub.All() {
		if _, got, ok := set.Get(s.Name); !ok || got.Name != tool.Spec().Name {
			t.Errorf("All gives another tool for %s than Get", s.Name)
		}
	}
}

func FuzzValidate(f *testing.F) {
	for _, args := range []string{`{"path":"x"}`, `{"path":1}`, `{"limit":1e999}`, `[`, `null`} {
		f.Add([]byte(args))
	}
	c, err := tools.NewChecker(spec("read"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		if c.Validate(args) == nil && !json.Valid(args) {
			t.Fatalf("%q passed", args)
		}
	})
}
