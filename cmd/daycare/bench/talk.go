package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"daycare/engine/control"
)

// Talk is what conversations cost that are held at once, measured from outside: a daemon, callers that stream each
// turn over its API, and a model on loopback that streams an answer of 20 pieces without thinking.
type Talk struct {
	Binary        string
	Dir           string
	Conversations []int // how many are held at once
	Turns         int   // of each
	Progress      func(string)
}

// Run measures turns a second, and the time and the daemon's processor time of a turn.
func (t Talk) Run(ctx context.Context) (rows []Row, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	model := &http.Server{Handler: http.HandlerFunc(answerAtOnce)}
	go model.Serve(l)
	defer model.Close()

	for _, n := range t.Conversations {
		t.Progress(fmt.Sprintf("conversations at once: %d", n))
		row, err := t.held(ctx, l.Addr().String(), n)
		if err != nil {
			return rows, fmt.Errorf("%d conversations: %w", n, err)
		}
		rows = append(rows, row)
	}

	return rows, nil
}

// held measures n conversations in a daemon of their own.
func (t Talk) held(ctx context.Context, model string, n int) (row Row, err error) {
	work, err := os.MkdirTemp(t.Dir, "bench-talk-")
	if err != nil {
		return row, err
	}
	defer os.RemoveAll(work)
	settings := "providers: [{id: local, type: openai, baseURL: 'http://%s/v1', model: local, concurrency: %d}]\n" +
		"agents: { maxSpawned: 0, perMinute: 0 }\n"
	d, err := launch(ctx, t.Binary, work, fmt.Sprintf(settings, model, n))
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()

	agents := make([]string, n)
	for i := range agents {
		made, err := d.client.Create(ctx, control.NewAgent{Name: fmt.Sprint("talker ", i)})
		if err != nil {
			return row, err
		}
		agents[i] = made.ID
	}
	if _, err := talk(ctx, d, agents, 1); err != nil { // what is read once
		return row, err
	}

	pid := d.cmd.Process.Pid
	before, err := cpuTime(pid)
	if err != nil {
		return row, err
	}
	began := time.Now()
	turns, err := talk(ctx, d, agents, t.Turns)
	if err != nil {
		return row, err
	}
	took := time.Since(began)
	after, err := cpuTime(pid)
	if err != nil {
		return row, err
	}
	alone, err := modelAlone(ctx, model)
	if err != nil {
		return row, err
	}

	return Row{Name: fmt.Sprintf("turns, conversations at once: %d", n), Value: float64(len(turns)) / took.Seconds(), Unit: "/s",
		Note: fmt.Sprintf("%s a turn, the model alone %s; processor %s each", brief(median(turns)), brief(alone),
			brief((after-before)/time.Duration(len(turns))))}, nil
}

// talk has each agent make some turns, all agents at once, and returns how long each turn took.
func talk(ctx context.Context, d *child, agents []string, turns int) (all []time.Duration, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, id := range agents {
		group.Go(func() error {
			for range turns {
				began := time.Now()
				o, err := d.client.Stream(ctx, id, control.Message{Text: "hello"}, func(control.RawEvent) {})
				if err == nil && o.Reason != "done" {
					err = fmt.Errorf("the turn ended with %s", o.Reason)
				}
				if err != nil {
					return err
				}
				mu.Lock()
				all = append(all, time.Since(began))
				mu.Unlock()
			}
			return nil
		})
	}

	return all, group.Wait()
}

// modelAlone is how long the model takes for an answer, the median of many.
func modelAlone(ctx context.Context, addr string) (time.Duration, error) {
	var all []time.Duration
	for range 100 {
		began := time.Now()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", strings.NewReader("{}"))
		if err != nil {
			return 0, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return 0, err
		}
		all = append(all, time.Since(began))
	}

	return median(all), nil
}

// answerAtOnce is a model that streams an answer in pieces, without thinking.
func answerAtOnce(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for range chunks {
		_, _ = io.WriteString(w, oneChunk)
		_ = out.Flush()
	}
	_, _ = io.WriteString(w, endOfAnswer)
}
