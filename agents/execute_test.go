package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/tools"
)

// A rival counts how many of its calls run at once.
type rival struct {
	name     string
	parallel bool
	mu       *sync.Mutex
	now, top *int
}

func (r rival) Spec() tools.Spec {
	return tools.Spec{Name: r.name, Description: "Waits.", Replay: tools.ReadOnly, Parallel: r.parallel,
		Schema: json.RawMessage(`{"type":"object","properties":{"ms":{"type":"integer"}}}`)}
}

func (r rival) Run(_ context.Context, c tools.Call) (tools.Result, error) {
	var a struct{ MS int }
	if err := json.Unmarshal(c.Arguments, &a); err != nil {
		return tools.Result{}, err
	}
	r.mu.Lock()
	*r.now++
	*r.top = max(*r.top, *r.now)
	others := *r.now
	r.mu.Unlock()
	time.Sleep(time.Duration(a.MS) * time.Millisecond)
	r.mu.Lock()
	*r.now--
	r.mu.Unlock()
	if !r.parallel {
		return tools.Result{Text: fmt.Sprintf("%s %d among %d", r.name, a.MS, others)}, nil
	}
	return tools.Result{Text: fmt.Sprintf("%s %d", r.name, a.MS)}, nil
}

// Calls of parallel-safe tools run beside each other, at most four; any other runs alone.
// Results keep the order of the calls, whoever is done first.
func TestCallsBesideEachOther(t *testing.T) {
	mu, now, top := &sync.Mutex{}, 0, 0
	beside, alone := rival{"beside", true, mu, &now, &top}, rival{"alone", false, mu, &now, &top}
	var calls, want []string
	for i, ms := range []int{60, 50, 40, 30, 20, 10} {
		calls = append(calls, fmt.Sprintf("{ name: beside, arguments: { ms: %d } }", ms))
		want = append(want, fmt.Sprintf("beside %d", ms))
		if i == 4 {
			calls = append(calls, "{ name: alone, arguments: { ms: 5 } }", "{ name: alone, arguments: { ms: 6 } }")
			want = append(want, "alone 5 among 1", "alone 6 among 1")
		}
	}
	b := newBench(t, `rules:
  - { round: 1, reply: [ { calls: [ `+strings.Join(calls, ", ")+` ] } ] }
  - { reply: [ { text: done } ] }
`, beside, alone)
	b.run()
	b.outcome(b.say("go"))
	if top != 4 {
		t.Errorf("%d calls ran at once, want 4", top)
	}
	told, at := b.model.request(1), -1
	for _, w := range want {
		next := strings.Index(told, w)
		if next <= at {
			t.Fatalf("%q is not where it belongs in\n%s", w, told)
		}
		at = next
	}
}

// A wordy tool says much.
type wordy struct {
	name  string
	bytes int
	most  int
}

func (w wordy) Spec() tools.Spec {
	return tools.Spec{Name: w.name, Description: "Talks.", Replay: tools.ReadOnly, Schema: json.RawMessage(`{"type":"object"}`), MaxOutput: w.most}
}

func (w wordy) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Text: "begin" + strings.Repeat("x", w.bytes-8) + "end"}, nil
}

// What a tool says is cut at 30,000 characters, or at its own bound; the whole is in a
// file that the text names.
func TestLongOutputsAreCut(t *testing.T) {
	for _, tt := range []struct {
		tool wordy
		cut  bool
	}{
		{wordy{"shell", 30_000, 0}, false}, {wordy{"shell", 30_001, 0}, true},
		{wordy{"file", 50_000, 51_400}, false}, {wordy{"file", 51_401, 51_400}, true}, {wordy{"small", 101, 100}, true},
	} {
		b := newBench(t, `rules:
  - { round: 1, reply: [ { calls: [ { name: `+tt.tool.name+`, arguments: {} } ] } ] }
  - { reply: [ { text: done } ] }
`, tt.tool)
		b.run()
		b.outcome(b.say("go"))
		told := b.model.request(1)
		most := max(tt.tool.most, 100)
		if tt.tool.most == 0 {
			most = 30_000
		}
		cut := strings.Contains(told, "bytes left out; the whole output is in "+b.dir+"/blobs/")
		if n := strings.Count(told, "x"); cut != tt.cut || !strings.Contains(told, "begin") || !strings.Contains(told, "end") || n > most+100 || !cut && n < tt.tool.bytes-8 {
			t.Errorf("%s of %d bytes: cut %v, %d are left", tt.tool.name, tt.tool.bytes, cut, n)
		}
	}
}
