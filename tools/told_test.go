package tools

import (
	"context"
	"encoding/json"
	"testing"
)

type schemaTool string

func (s schemaTool) Spec() Spec {
	return Spec{Name: "t", Schema: json.RawMessage(s), Replay: ReadOnly}
}
func (schemaTool) Run(context.Context, Call) (Result, error) { return Result{}, nil }

// What the model is told is shorter; what is checked is the same.
func TestWhatTheModelIsTold(t *testing.T) {
	for _, tc := range []struct{ schema, told, good, bad string }{
		{`{"type":"object", "properties":{
"a":{"type":"string","minLength":1,"maxLength":9,"description":"x, {y}"},
"n":{"type":"integer","minimum":1,"maximum":20}},
"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"x, {y}"},"n":{"type":"integer","maximum":20}},` +
				`"required":["a"]}`,
			`{"a":"b"}`, `{"a":"b","c":1}`},
		{`{"type":"object","properties":{"additionalProperties":{"type":"string"},"env":{"type":"object",` +
			`"additionalProperties":{"type":"string","minLength":1}},
"list":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer","minimum":5}},"additionalProperties":false}}}}`,
			`{"type":"object","properties":{"additionalProperties":{"type":"string"},"env":{"type":"object",` +
				`"additionalProperties":{"type":"string"}},"list":{"type":"array","items":{"type":"object",` +
				`"properties":{"x":{"type":"integer","minimum":5}}}}}}`,
			`{"env":{"a":"b"},"list":[{"x":5}]}`, `{"list":[{"x":5,"y":1}]}`},
		{`{"type":"object","properties":{},"anyOf":[{"required":["a"],"additionalProperties":true},{"minLength":1}]}`,
			`{"type":"object","properties":{},"anyOf":[{"required":["a"],"additionalProperties":true},{}]}`, `{"a":1}`, ``},
	} {
		set, err := NewSet(schemaTool(tc.schema))
		if err != nil {
			t.Fatal(err)
		}
		if _, spec, _ := set.Get("t"); string(spec.Schema) != tc.told {
			t.Errorf("told\n%s\nwant\n%s", spec.Schema, tc.told)
		}
		if err := set.Validate("t", []byte(tc.good)); err != nil {
			t.Errorf("%s: %v", tc.good, err)
		}
		if tc.bad != "" && set.Validate("t", []byte(tc.bad)) == nil {
			t.Errorf("%s passes", tc.bad)
		}
	}
}
