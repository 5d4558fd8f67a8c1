package prompt

import (
	"strings"
	"testing"

	"daycare/engine/record"

	"github.com/google/go-cmp/cmp"
)

func TestMeasure(t *testing.T) {
	h := &history{ctx: record.Context{Session: "s1"}}
	h.add(asks(strings.Repeat("q", 4000)),
		says(strings.Repeat("a", 400), call("c1", "read", `{"path":"`+strings.Repeat("p", 800)+`"}`), call("c2", "memory_search", `{}`)),
		gave("c1", "read", record.StatusOK, strings.Repeat("r", 8000)),
		gave("c2", "memory_search", record.StatusOK, strings.Repeat("m", 2000)), says("done"))
	got := Measure(&h.ctx, strings.Repeat("s", 1200))
	near := func(name string, got, want int) {
		if got < want || got > want+40 {
			t.Errorf("%s: %d tokens, want about %d", name, got, want)
		}
	}
	near("system", got.System, 300)
	near("messages", got.Messages, 1000)
	near("answers", got.Answers, 101)
	near("calls", got.Calls, 200)
	near("results", got.Results, 2000)
	near("memory", got.Memory, 500)
	if got.Summary != 0 || got.Total() != got.System+got.Messages+got.Answers+got.Calls+got.Results+got.Memory {
		t.Errorf("%+v", got)
	}

	// What a summary stands for is not counted twice.
	h.ctx.Summary = &record.Entry{Seq: 99, At: noon, Rec: &record.Summary{Text: strings.Repeat("u", 4000)}}
	with := Measure(&h.ctx, strings.Repeat("s", 1200))
	near("summary", with.Summary, 1000)
	with.Summary = 0
	if diff := cmp.Diff(got.Results+got.Answers+got.Calls, with.Results+with.Answers+with.Calls); diff != "" {
		t.Error(diff)
	}

	near("messages beside the summary", with.Messages, 1000)
	if empty := Measure(&record.Context{}, ""); empty.Total() != 0 {
		t.Errorf("nothing is made of %+v", empty)
	}
}
