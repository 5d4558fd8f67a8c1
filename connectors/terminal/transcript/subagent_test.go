package transcript

import (
	"encoding/json"
	"testing"
)

// What a sub-agent used is read in both spellings.
func TestUsageOfASubAgentInBothSpellings(t *testing.T) {
	for _, text := range []string{`{"usage":{"input":4000,"output":200}}`, `{"usage":{"inputTokens":4000,"outputTokens":200}}`} {
		var end subEnd
		if err := json.Unmarshal([]byte(text), &end); err != nil || end.Usage.total() != 4200 {
			t.Errorf("%s: %d tokens, %v", text, end.Usage.total(), err)
		}
	}
}
