package prompt

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"daycare/agents/providers"
	"daycare/engine/record"
)

// A group chat may write thousands of messages that the agent is not asked to answer: one request has all of them.
func TestManyMessagesInOneBreathTakeLittleMemory(t *testing.T) {
	const n = 20_000
	ctx := &record.Context{Session: "s"}
	for i := range n {
		ctx.Entries = append(ctx.Entries, &record.Entry{Seq: int64(i + 1), Rec: &record.User{Item: fmt.Sprint("i", i),
			Text: fmt.Sprintf("message %d", i), Preface: "p", Joins: true, Silent: true}})
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	req, err := NewBuilder(Sources{}).Build(ctx, "", nil, Options{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}

	text := req.Messages[0].Parts[0].(providers.Text).Text
	if len(req.Messages) != 1 || !strings.Contains(text, "message 0\nmessage 1\n") ||
		!strings.Contains(text, fmt.Sprint("message ", n-1, "<")) {
		t.Errorf("%d messages, the first %.200q", len(req.Messages), text)
	}
	if took := int(after.TotalAlloc-before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("%d messages take %d MB of memory", n, took)
	}
}
