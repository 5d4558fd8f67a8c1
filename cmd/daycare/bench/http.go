package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"daycare/agents"
	"daycare/agents/providers/openai"
	"daycare/engine/event"
)

// chunks is how many pieces the local model's answer has, pause what lies between
// them, and firstToken how long it thinks before.
const (
	chunks     = 20
	pause      = 2 * time.Millisecond
	firstToken = 20 * time.Millisecond
)

// The local model's answer, as chat completions stream it.
const (
	oneChunk    = `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n"
	endOfAnswer = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":20}}` + "\n\ndata: [DONE]\n\n"
)

// An HTTPResult compares a turn on a local HTTP model with the model's own time.
type HTTPResult struct {
	Turn    time.Duration // median of the whole turn
	Model   time.Duration // median of the model's own time for it
	Latency time.Duration // median from a chunk's writing to its event
}

// HTTP measures turns against a model server on loopback that speaks chat
// completions and takes 20 ms to its first token.
func HTTP(ctx context.Context, dir string, turns int) (r HTTPResult, err error) {
	sent := make(chan time.Time, chunks+1)
	spent := make(chan time.Duration, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}

	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { serveModel(w, sent, spent) })}
	go server.Serve(l)
	defer server.Close()
	model, err := openai.New(openai.Options{ID: "local", BaseURL: "http://" + l.Addr().String() + "/v1", Model: "local"})
	if err != nil {
		return r, err
	}

	work, err := os.MkdirTemp(dir, "bench-http-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(work)
	w, err := NewWorld(work, model, agents.Followup)
	if err != nil {
		return r, err
	}
	defer w.Close()
	w.Run()
	ids, err := w.Agents(ctx, 1)
	if err != nil {
		return r, err
	}

	var whole, own, lags []time.Duration
	for range turns {
		lag, took, err := w.streamed(ctx, ids[0], sent)
		if err != nil {
			return r, err
		}
		whole, own, lags = append(whole, took), append(own, <-spent), append(lags, lag...)
	}

	return HTTPResult{median(whole), median(own), median(lags)}, nil
}

// streamed asks once and compares when each chunk was written with when its event
// came.
func (w *World) streamed(ctx context.Context, id string, sent <-chan time.Time) (lags []time.Duration, took time.Duration, err error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	events := w.Events.Subscribe(inner)
	at := time.Now()
	item, err := w.Say(ctx, id, "hello")
	if err != nil {
		return nil, 0, err
	}

	for len(lags) < chunks {
		select {
		case e := <-events:
			if e.Type == event.MessageDelta {
				lags = append(lags, time.Since(<-sent))
			}
		case <-time.After(10 * time.Second):
			return nil, 0, fmt.Errorf("only %d of %d chunks arrived", len(lags), chunks)
		}
	}

	if _, err = w.System.Await(ctx, id, item); err != nil {
		return nil, 0, err
	}

	return lags, time.Since(at), nil
}

func serveModel(w http.ResponseWriter, sent chan<- time.Time, spent chan<- time.Duration) {
	begin := time.Now()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	time.Sleep(firstToken)

	for range chunks {
		_, _ = io.WriteString(w, oneChunk)
		sent <- time.Now()
		out.Flush()
		time.Sleep(pause)
	}

	_, _ = io.WriteString(w, endOfAnswer)
	out.Flush()
	spent <- time.Since(begin)
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return quantile(sorted, 0.5)
}
