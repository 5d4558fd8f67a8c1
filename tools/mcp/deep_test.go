package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/permission"
)

// What is nested deep is not shown, and not kept, with as many blanks before each of its values.
func TestWhatIsNestedDeepIsNotMuchLonger(t *testing.T) {
	text := strings.Repeat("[", 2000) + "1" + strings.Repeat(",1", 20_000) + strings.Repeat("]", 2000)
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	asked, err := spelled(permission.Mcp{Server: "s", Tool: "t"}, json.RawMessage(`{"a":`+text+`}`))
	if err != nil || len(asked) > 2*len(text) {
		t.Errorf("a question has %d bytes, %v", len(asked), err)
	}
	answer := (&tool{}).result(&sdk.CallToolResult{StructuredContent: value})
	if len(answer.Text) > 2*len(text) {
		t.Errorf("an answer has %d bytes", len(answer.Text))
	}
	c := Catalogue{Tools: []Definition{{Name: "t", Schema: json.RawMessage(`{"default":` + text + `}`)}}}
	if data, err := c.encode(); err != nil || len(data) > 2*len(text) {
		t.Errorf("a catalogue has %d bytes, %v", len(data), err)
	}
}
