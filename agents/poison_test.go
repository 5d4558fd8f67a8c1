package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/record"
	"daycare/tools"
)

// A turn may be set aside with calls under way; each of them has a result after that,
// whether it was started or not, and whether it might be run again or not.
func TestPoisonousTurnLeavesNoCallWithoutResult(t *testing.T) {
	for name, replay := range map[string]tools.Replay{"once": tools.Once, "read-only": tools.ReadOnly} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, callHold, newHold("hold", replay))
			item := b.say("go")
			b.remember(
				&record.TurnBegin{Turn: "t1", Items: []string{item}, Attempt: maxAttempts},
				&record.User{Item: item, Text: "go"},
				&record.Assistant{Turn: "t1", ToolCalls: []record.ToolCall{
					{ID: "begun", Name: "hold", Arguments: []byte(`{}`)}, {ID: "waiting", Name: "hold", Arguments: []byte(`{}`)}}},
				&record.ToolStart{ToolCallID: "begun", Name: "hold"},
				&record.TurnBegin{Turn: "t1", Items: []string{item}, Attempt: maxAttempts},
			)
			b.run()
			if o := b.outcome(item); o.Reason != record.ReasonPoison {
				t.Errorf("outcome %+v, want poison", o)
			}
			for _, call := range []string{"begun", "waiting"} {
				if n := strings.Count(b.history(), `"type":"tool_result","toolCallId":"`+call+`"`); n != 1 {
					t.Errorf("call %s has %d results, want 1\n%s", call, n, b.history())
				}
			}
		})
	}
}

// remember writes the history with which the agent begins.
func (b *bench) remember(records ...record.Record) {
	b.t.Helper()
	var data []byte
	for i, rec := range records {
		data = append(data, record.Encode(&record.Entry{Seq: int64(i + 1), At: time.Now().UTC(), Rec: rec})...)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "history.jsonl"), data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
