package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A schema of a stranger that refers to itself is refused; one whose values do is used.
func TestSchemasThatReferToThemselves(t *testing.T) {
	var twice strings.Builder // each of its 40 definitions is the next one twice
	for i := range 40 {
		fmt.Fprintf(&twice, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for schema, want := range map[string]bool{
		`{"type":"object","$ref":"#"}`: false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"anyOf":[true,{"$ref":"#/$defs/b"}]}}}`: false,
		`{"type":"object","allOf":[{"$ref":"#/allOf/0"}]}`:                                                              false,
		`{"type":"object","$defs":{"b":{"$anchor":"b","$ref":"#b"}},"$ref":"#b"}`:                                       false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + twice.String() + `"d40":{}}}`:           false,
		`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"type":"array","items":{"$ref":"#/properties/a"}}}}`:      true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"type":"object"}}}`:                true,
	} {
		c, err := NewChecker(Spec{Name: "t", Schema: json.RawMessage(schema)})
		if (err == nil) != want {
			t.Errorf("%.90s: %v", schema, err)
		}
		if err == nil && c.Validate(json.RawMessage(`{"a":{"a":{}}}`)) != nil {
			t.Errorf("%.90s fits nothing", schema)
		}
	}
}
