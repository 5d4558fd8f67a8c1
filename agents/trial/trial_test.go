package trial

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"
)

func TestMistakesHaveTheirPlace(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "nothing is expected"},
		{"expect: [ { contains: a } ]", "messages is missing"},
		{"messages: []\nexpect: [ { contains: a } ]", "x.test.yaml:1:11: messages is empty"},
		{"messages: [ a ]", "nothing is expected"},
		{"messages: [ a ]\nexpect:\n  - contains: a\n    regex: b", "x.test.yaml:3:5: expect[0] has 2 members"},
		{"messages: [ a ]\nexpect:\n  - regex: '('", "x.test.yaml:3:12: expect[0].regex: error parsing regexp"},
		{"messages: [ a ]\nexpect: [ { called: { tool: a, with: { b: /(/ } } } ]", "expect[0].called.with.b: error parsing"},
		{"messages: [ a ]\nexpect: [ { schema: { type: 7 } } ]", "x.test.yaml:2:21: expect[0].schema: not a JSON Schema"},
		{"messages: [ a ]\nexpect: [ { file: ../b } ]", "x.test.yaml:2:19: expect[0].file.path"},
		{"messages: [ a ]\nfiles: { /etc/passwd: x }\nexpect: [ { contains: a } ]", "is not in the workspace"},
		{"messages: [ a ]\nfiles: { .daycare/settings.yaml: x }\nexpect: [ { contains: a } ]", "belongs to daycare"},
		{"messages: [ a ]\nignore: [ '[' ]\nexpect: [ { contains: a } ]", "x.test.yaml:2:11: ignore[0]: error parsing"},
		{"messages: [ { txt: a } ]\nexpect: [ { contains: a } ]", "messages[0].txt is unknown"},
		{"messages: [ a ]\nexpect: [ { ends: well } ]", `found the text "well", allowed: done`},
		{"messages: [ a ]\nanswers: maybe\nexpect: [ { contains: a } ]", "allowed: "},
		{"messages: [ a\n", "not YAML"},
	} {
		_, found := Parse("x.test.yaml", []byte(tt.text))
		var all []string
		for _, f := range found {
			all = append(all, f.Error())
		}
		if got := strings.Join(all, "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%q: found %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestReadsATest(t *testing.T) {
	got, found := Parse("dir/price.test.yaml", []byte("messages: [ a, { text: b, expect: [ { called: read } ] } ]\nscript: { rules: [] }\n"+
		"timeout: 5s\nexpect: [ { file: x.txt }, { judge: { rubric: r } } ]"))
	if len(found) > 0 {
		t.Fatal(found)
	}
	if got.Name != "price" || got.Timeout != 5*time.Second || len(got.Messages) != 2 || got.Messages[0].Text != "a" ||
		got.Messages[1].Expect[0].Called.Tool != "read" || got.Expect[0].File.Path != "x.txt" || got.Expect[1].Judge.Threshold != 0.7 ||
		string(got.Script) != `{"rules":[]}` {
		t.Errorf("%+v", got)
	}
}

func TestExpectations(t *testing.T) {
	cost := func(usd float64) Bounds { return Bounds{CostUnder: &usd} }
	text := func(s string) *string { return &s }
	read := func(with map[string]any) Expect { return Expect{Called: &Called{Tool: "read", With: with}} }
	run := Run{Answer: "Tea is 3.20.\n```json\n{\"tea\": 3.2}\n```", Reason: "done", Usage: Usage{Cost: 0.04, Rounds: 3},
		Asked: []Asked{{"@exec:git push", "deny"}},
		Calls: []Call{
			{Tool: "read", Arguments: json.RawMessage(`{"path":"a.txt","limit":5,"deep":{"list":[1,"x"]}}`), Status: "ok"},
			{Tool: "read", Arguments: json.RawMessage(`{"path":"b.txt"}`), Status: "error"},
		},
		File: func(path string) ([]byte, error) {
			switch path {
			case "a.txt":
				return []byte("tea 3.20\n"), nil
			case "locked":
				return nil, fs.ErrPermission
			}
			return nil, fs.ErrNotExist
		},
		Judge: func(rubric, _, _ string) (float64, string, error) {
			if rubric == "broken" {
				return 0, "", errors.New("no model")
			}
			return 0.6, "it is fine", nil
		},
	}
	for name, tt := range map[string]struct {
		expect Expect
		want   string // part of what is shown; "": it is met
	}{
		"contains":           {Expect{Contains: "3.20"}, ""},
		"contains not":       {Expect{Contains: "Tea is 4.20."}, "-Tea is 4.20.\n+Tea is 3.20."},
		"not contains":       {Expect{NotContains: "coffee"}, ""},
		"not contains not":   {Expect{NotContains: "Tea"}, "| Tea is 3.20."},
		"regex":              {Expect{Regex: `\d\.\d\d`}, ""},
		"regex not":          {Expect{Regex: `^\d`}, "| Tea is"},
		"schema":             {Expect{Schema: json.RawMessage(`{"type":"object","required":["tea"]}`)}, ""},
		"schema not":         {Expect{Schema: json.RawMessage(`{"type":"object","required":["milk"]}`)}, "milk"},
		"called":             {Expect{Called: &Called{Tool: "read"}}, ""},
		"called with":        {Expect{Called: &Called{Tool: "read", With: map[string]any{"path": "/^a/", "limit": 5}}}, ""},
		"called deep":        {read(map[string]any{"deep": map[string]any{"list": []any{1, "x"}}}), ""},
		"called deep not":    {read(map[string]any{"deep": map[string]any{"list": []any{1}}}), "calls:"},
		"called with not":    {read(map[string]any{"path": "c.txt"}), "-  \"path\": \"c.txt\"\n+  \"path\": \"b.txt\""},
		"called other":       {Expect{Called: &Called{Tool: "exec"}}, `read {"path":"b.txt"} error`},
		"called twice":       {Expect{Called: &Called{Tool: "read", Times: 2}}, ""},
		"called once":        {Expect{Called: &Called{Tool: "read", Times: 1}}, "2 such calls"},
		"never called":       {Expect{NeverCalled: "exec"}, ""},
		"never called not":   {Expect{NeverCalled: "read"}, "calls:"},
		"file":               {Expect{File: &FileHas{Path: "a.txt"}}, ""},
		"file is":            {Expect{File: &FileHas{Path: "a.txt", Is: text("tea 3.20\n")}}, ""},
		"file is not":        {Expect{File: &FileHas{Path: "a.txt", Is: text("tea 4.20\n")}}, "-tea 4.20\n+tea 3.20"},
		"file is empty":      {Expect{File: &FileHas{Path: "a.txt", Is: text("")}}, "+tea 3.20"},
		"file contains not":  {Expect{File: &FileHas{Path: "a.txt", Contains: "milk"}}, "| tea 3.20"},
		"file regex not":     {Expect{File: &FileHas{Path: "a.txt", Regex: "^milk"}}, "| tea 3.20"},
		"file missing":       {Expect{File: &FileHas{Path: "c.txt"}}, "there is none"},
		"file absent":        {Expect{File: &FileHas{Path: "c.txt", Absent: true}}, ""},
		"file absent not":    {Expect{File: &FileHas{Path: "a.txt", Absent: true}}, "| tea"},
		"file unreadable":    {Expect{File: &FileHas{Path: "locked"}}, "permission denied"},
		"asks":               {Expect{Asks: "@exec:git"}, ""},
		"asks not":           {Expect{Asks: "@web"}, "@exec:git push (deny)"},
		"ends":               {Expect{Ends: "done"}, ""},
		"ends not":           {Expect{Ends: "limit"}, `it ended with "done"`},
		"cost":               {Expect{Bounds: cost(0.05)}, ""},
		"cost not":           {Expect{Bounds: cost(0.04)}, "$0.0400"},
		"rounds":             {Expect{Bounds: Bounds{RoundsUnder: 4}}, ""},
		"rounds not":         {Expect{Bounds: Bounds{RoundsUnder: 3}}, "3\ncalls:"},
		"judge":              {Expect{Judge: &Judge{Rubric: "good", Threshold: 0.6}}, ""},
		"judge not":          {Expect{Judge: &Judge{Rubric: "good", Threshold: 0.7}}, "0.60: it is fine"},
		"judge cannot judge": {Expect{Judge: &Judge{Rubric: "broken", Threshold: 0.7}}, "no model"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := Check([]Expect{tt.expect}, run)
			if (len(failed) == 0) != (tt.want == "") || len(failed) > 0 && !strings.Contains(failed[0].Got, tt.want) {
				t.Errorf("got %+v, want %q", failed, tt.want)
			}
		})
	}
}

// A turn that ended without an answer is a failure, unless the test expects its end.
func TestAnEndWithoutAnAnswer(t *testing.T) {
	run := Run{Answer: "I stopped", Reason: "limit"}
	if failed := Check([]Expect{{Contains: "I"}}, run); len(failed) != 1 || !strings.Contains(failed[0].Got, `"limit"`) {
		t.Errorf("%+v", failed)
	}
	if failed := Check([]Expect{{Contains: "I"}, {Ends: "limit"}}, run); len(failed) != 0 {
		t.Errorf("%+v", failed)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("messages: [ a, { text: b, expect: [ { called: read } ] } ]\nexpect: [ { file: { path: a, is: b } }, { schema: {} } ]")
	f.Add("a: &a [*a]\nmessages: *a")
	f.Add("messages: [ a ]\nexpect: [ { called: { tool: t, with: { x: /(/ } } } ]")
	f.Fuzz(func(t *testing.T, text string) {
		test, found := Parse("x.test.yaml", []byte(text))
		if len(found) > 0 {
			return
		}
		run := Run{Answer: text, Reason: "done", File: func(string) ([]byte, error) { return []byte(text), nil }}
		Check(test.Expect, run)
	})
}
