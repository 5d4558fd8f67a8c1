//go:build !race

package bench

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"testing"

	"daycare/agents"
	"daycare/agents/providers/openai"
)

// A turn on the real wire allocates at most this, with the part of the model's server: it runs in the
// same process. Before it was counted there were 1,030 allocations of 125 KB.
const (
	mostAllocs = 520
	mostBytes  = 100_000
)

// BenchmarkTurnOnTheWire is a turn on a local model that streams 20 pieces over HTTP.
func BenchmarkTurnOnTheWire(b *testing.B) {
	turn := onTheWire(b)
	b.ReportAllocs()
	for b.Loop() {
		turn()
	}
}

func TestWhatATurnAllocates(t *testing.T) {
	turn := onTheWire(t)
	for range 20 {
		turn()
	}
	const turns = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range turns {
		turn()
	}
	runtime.ReadMemStats(&after)
	allocs, size := (after.Mallocs-before.Mallocs)/turns, (after.TotalAlloc-before.TotalAlloc)/turns
	t.Logf("a turn: %d allocations, %d bytes", allocs, size)
	if allocs > mostAllocs || size > mostBytes {
		t.Errorf("a turn makes %d allocations of %d bytes, want at most %d of %d", allocs, size, mostAllocs, mostBytes)
	}
}

// onTheWire returns a function that makes one turn of an agent.
func onTheWire(t testing.TB) (turn func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		for range chunks {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}`+"\n\n")
			out.Flush()
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":20}}`+"\n\ndata: [DONE]\n\n")
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })

	model, err := openai.New(openai.Options{ID: "local", BaseURL: "http://" + l.Addr().String() + "/v1", Model: "local"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorld(t.TempDir(), model, agents.Followup)
	if err != nil {
		t.Fatal(err)
	}
	w.Run()
	t.Cleanup(func() { w.Close() })
	ids, err := w.Agents(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}

	return func() {
		if o, err := w.Ask(t.Context(), ids[0], "hello"); err != nil || o.Reason != "done" {
			t.Fatal(o.Reason, err)
		}
	}
}
