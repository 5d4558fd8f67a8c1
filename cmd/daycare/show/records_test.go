package show

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/record"
)

func TestDescribe(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	for _, test := range []struct {
		rec  record.Record
		want string
	}{
		{&record.User{Text: "two\nlines"}, "   7  11-20 12:00:00  you       two\n                                lines"},
		{&record.User{Text: "done", Origin: "child", Silent: true}, "   7  11-20 12:00:00  system    (silent, from child) done"},
		{&record.Assistant{Text: "Hi.", Finish: record.FinishEndTurn}, "   7  11-20 12:00:00  agent     Hi."},
		{&record.Assistant{Finish: record.FinishToolUse,
			ToolCalls: []record.ToolCall{{Name: "exec", Arguments: []byte(`{"cwd":"/","command":"ls -l"}`)}}},
			"   7  11-20 12:00:00  agent     → exec ls -l"},
		{&record.ToolResult{Name: "exec", Status: record.StatusOK, MS: 12, Output: record.Output{Text: "a\nb"}},
			"   7  11-20 12:00:00  result    exec ok 12ms  a b"},
		{&record.TurnEnd{Reason: record.ReasonDone}, ""},
		{&record.TurnEnd{Reason: record.ReasonError, Error: "no key"}, "   7  11-20 12:00:00  turn      ended error: no key"},
		{&record.TurnBegin{}, ""},
		{&record.Delivery{Out: "o", RemoteID: "7"}, ""},
	} {
		got := Record(&record.Entry{Seq: 7, At: at, Rec: test.rec}, false)
		if diff := cmp.Diff(test.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.rec.Type(), diff)
		}
	}
}

func TestCallLine(t *testing.T) {
	for _, test := range []struct{ name, args, want string }{
		{"read", `{"limit":5,"path":"a.txt"}`, "read a.txt"},
		{"odd", `{"zeta":"z","beta":"b"}`, "odd b"},
		{"none", `{"n":1}`, "none"},
		{"broken", `{"path":`, "broken"},
		{"text", `"raw"`, "text"},
		{"write", `{"path":"x","content":"` + strings.Repeat("y", 500) + `"}`, "write x"},
	} {
		if got := Call(test.name, []byte(test.args)); got != test.want {
			t.Errorf("callLine(%s, %s) = %q, want %q", test.name, test.args, got, test.want)
		}
	}
}
