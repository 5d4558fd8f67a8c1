package signal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"daycare/connectors/connectortest"
)

const (
	account = "+4915100000000"
	ada     = "4ad5c1f6-7c1e-4a0d-9f3e-2b1c0d9e8f7a"
	bob     = "4ad5c1f6-7c1e-4a0d-9f3e-2b1c0d9e8f7b"
)

// daemon is a fake of signal-cli's HTTP daemon, as its source has it: the stream
// has ids and repeats what came after Last-Event-ID, errors come with status 200.
type daemon struct {
	*httptest.Server
	mu      sync.Mutex
	events  []string
	changed chan struct{}
	calls   []call
	sent    []connectortest.Sent
	fault   connectortest.Fault
	calm    chan struct{}
	says    map[string]string // answers by method, or a status
	waiting connectortest.Keeper
	cut     int // streams end after so many events, 0: never
}

type call struct {
	Method string
	Params map[string]any
}

func newDaemon(t *testing.T) *daemon {
	d := &daemon{changed: make(chan struct{}), calm: make(chan struct{}), says: map[string]string{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() {
		d.misbehave(connectortest.None)
		d.CloseClientConnections()
		d.Close()
	})

	return d
}

func (d *daemon) push(envelope map[string]any) {
	data, err := json.Marshal(map[string]any{"envelope": envelope, "account": account})
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, string(data))
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *daemon) misbehave(f connectortest.Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
	close(d.calm)
	d.calm = make(chan struct{})
}

func (d *daemon) received() []connectortest.Sent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]connectortest.Sent(nil), d.sent...)
}

func (d *daemon) called(method string) (last call, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.calls {
		if k.Method == method {
			last, n = k, n+1
		}
	}

	return last, n
}

// ServeHTTP answers as the daemon does.
func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1/events":
		d.stream(r.Context(), w, r.Header.Get("Last-Event-ID"))
	case "/api/v1/rpc":
		d.rpc(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (d *daemon) stream(ctx context.Context, w http.ResponseWriter, last string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ":\n\n")
	flush := http.NewResponseController(w).Flush
	flush()
	next, _ := strconv.Atoi(strings.TrimPrefix(last, "run-"))
	for told := 0; ; {
		d.mu.Lock()
		changed, cut := d.changed, d.cut
		events := d.events[min(next, len(d.events)):]
		d.mu.Unlock()

		for _, e := range events {
			next++
			fmt.Fprintf(w, "id:run-%d\nevent:receive\ndata:%s\n\n", next, e)
			if told++; cut > 0 && told >= cut {
				return
			}
		}

		flush()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (d *daemon) rpc(w http.ResponseWriter, r *http.Request) {
	var k call
	if err := json.NewDecoder(r.Body).Decode(&k); err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		http.Error(w, "", http.StatusUnsupportedMediaType)
		return
	}
	d.mu.Lock()
	d.calls = append(d.calls, k)
	fault, calm, says := d.fault, d.calm, d.says[k.Method]
	d.mu.Unlock()
	if status, err := strconv.Atoi(says); err == nil {
		http.Error(w, "", status)
		return
	}
	if says != "" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"1",%s}`, says)
		return
	}

	answer := func(member string, v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": "1", member: v})
	}
	no := func(code int, text string, results ...map[string]any) {
		answer("error", map[string]any{"code": code, "message": text,
			"data": map[string]any{"response": map[string]any{"results": results, "timestamp": 0}}})
	}
	switch k.Method {
	case "listAccounts":
		answer("result", []any{map[string]any{"number": account}})
		return
	case "send":
	default:
		answer("result", map[string]any{})
		return
	}
	switch fault {
	case connectortest.Broken:
		no(-3, "Failed to send message: network")
		return
	case connectortest.Busy:
		no(-5, "Failed to send message due to rate limiting",
			map[string]any{"type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": int(connectortest.BusyFor.Seconds())})
		return
	case connectortest.Gone:
		no(-1, "Unregistered user", map[string]any{"type": "UNREGISTERED_FAILURE"})
		return
	case connectortest.Forget:
		answer("result", map[string]any{})
		return
	case connectortest.Stall:
		<-calm
		return
	}
	text, _ := k.Params["message"].(string)
	d.mu.Lock()
	if !strings.Contains(text, "allow") {
		d.sent = append(d.sent, connectortest.Sent{Text: text})
	}
	d.mu.Unlock()
	if fault == connectortest.Drop {
		panic(http.ErrAbortHandler)
	}
	answer("result", map[string]any{"timestamp": 1234, "results": []any{map[string]any{"type": "SUCCESS"}}})
}
