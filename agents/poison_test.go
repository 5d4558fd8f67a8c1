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

// A turn may be set aside with calls in progress; each of them has a result after that,
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

// waiting is a tool whose calls wait for an agent that had work until a time.
type waiting struct {
	*hold
	until time.Time
}

func (w waiting) AtWork(c tools.Call, since time.Time) bool {
	return c.ID == "c" && w.until.After(since)
}

// The deaths of an agent that a call waits for are not those of the turn that waits.
func TestDeathsOfAChildAreItsOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		until time.Time // the child had work until then
		want  string
	}{
		"at work":                  {time.Now().Add(time.Hour), record.ReasonDone},
		"ended before the attempt": {time.Now().Add(-time.Hour), record.ReasonPoison},
	} {
		t.Run(name, func(t *testing.T) {
			w := waiting{newHold("hold", tools.Idempotent), tt.until}
			b := newBench(t, callHold, w)
			item := b.say("go")
			b.remember(
				&record.TurnBegin{Turn: "t1", Items: []string{item}, Attempt: 1},
				&record.User{Item: item, Text: "go"},
				&record.Assistant{Turn: "t1", ToolCalls: []record.ToolCall{{ID: "c", Name: "hold", Arguments: []byte(`{}`)}}},
				&record.TurnBegin{Turn: "t1", Items: []string{item}, Attempt: maxAttempts},
			)
			b.run()
			if tt.want == record.ReasonDone {
				w.release <- "the child was set aside"
			}
			if o := b.outcome(item); o.Reason != tt.want {
				t.Errorf("outcome %+v, want %s", o, tt.want)
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
