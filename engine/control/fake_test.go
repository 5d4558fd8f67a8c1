package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daycare/engine/crash/crashtest"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

func TestMain(m *testing.M) {
	os.Setenv("TMPDIR", crashtest.Memory())
	goleak.VerifyTestMain(m)
}

// fake is a backend of functions: a test sets those that it is about, the others
// do what is expected of an engine with one agent, "alpha".
type fake struct {
	resolve  func(ref string) (string, error)
	create   func(NewAgent) (event.Agent, error)
	deliver  func(context.Context, message.Incoming) (message.Receipt, error)
	await    func(ctx context.Context, id, item string) (event.Outcome, error)
	history  func(id string, before int64, limit int) (event.Page, error)
	item     func(id, item string) error // Drop, Front
	stop     func(id string) (bool, error)
	end      func(id string, force bool) (string, error) // Kill, Remove
	decide   func(token, decision, by string) error
	reload   func() ([]finding.Finding, error)
	shutdown func() error

	mu    sync.Mutex
	calls []string // Stop and Deliver, in order
	in    []message.Incoming
}

const alpha = "alphaalphaalphaalphaalph"

func (f *fake) call(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

func (f *fake) delivered() []message.Incoming {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.in
}

func (f *fake) Agents(context.Context) ([]event.Agent, error) {
	return []event.Agent{{ID: alpha, Handle: "0/", State: event.Idle}}, nil
}

func (f *fake) Family(ctx context.Context, id string) ([]event.Agent, error) {
	a, err := f.Agent(ctx, id)
	return []event.Agent{a}, err
}

func (f *fake) Resolve(ref string) (string, error) {
	if f.resolve != nil {
		return f.resolve(ref)
	}
	switch ref {
	case alpha, "alpha", "0/", "0/1":
		return alpha, nil
	case "al":
		return "", &Ambiguous{Ref: "al", Candidates: []string{"0/ " + alpha, "1/ other"}}
	}

	return "", fmt.Errorf("%w: %q", message.ErrUnknownAgent, ref)
}

func (f *fake) Agent(_ context.Context, id string) (event.Agent, error) {
	return event.Agent{ID: id, Handle: "0/", Name: "Alpha"}, nil
}

func (f *fake) Create(_ context.Context, n NewAgent) (event.Agent, error) {
	if f.create != nil {
		return f.create(n)
	}
	return event.Agent{ID: "new", Type: n.Type, Name: n.Name, ParentAgentID: n.Parent}, nil
}

func (f *fake) Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	f.call("deliver %s %s", in.Agent, in.Kind)
	f.mu.Lock()
	f.in = append(f.in, in)
	f.mu.Unlock()
	if f.deliver != nil {
		return f.deliver(ctx, in)
	}

	return message.Receipt{Agent: alpha, Item: "item1", Seq: 7}, nil
}

func (f *fake) Await(ctx context.Context, id, item string) (event.Outcome, error) {
	if f.await != nil {
		return f.await(ctx, id, item)
	}
	return event.Outcome{Agent: id, Item: item, Turn: "turn1", Reason: "done", Text: "the answer", Cost: 0.5}, nil
}

func (f *fake) Item(_ context.Context, id, item string) (event.Posted, error) {
	if item == "none" {
		return event.Posted{}, fmt.Errorf("%w: %q", inbox.ErrUnknown, item)
	}
	return event.Posted{Agent: id, Item: item, Type: "message", State: "taken", Text: "hi"}, nil
}

func (f *fake) History(_ context.Context, id string, before int64, limit int) (event.Page, error) {
	if f.history != nil {
		return f.history(id, before, limit)
	}
	return event.Page{}, nil
}

func (f *fake) Inbox(context.Context, string) ([]event.Waiting, error) {
	return []event.Waiting{{ID: "item1", Seq: 7, Type: "message", Text: "hi"}}, nil
}

func (f *fake) Drop(_ context.Context, id, item string) error  { return f.onItem("drop", id, item) }
func (f *fake) Front(_ context.Context, id, item string) error { return f.onItem("front", id, item) }

func (f *fake) onItem(what, id, item string) error {
	f.call("%s %s %s", what, id, item)
	if f.item != nil {
		return f.item(id, item)
	}
	return nil
}

func (f *fake) Draft(context.Context, string) (event.Draft, error) {
	return event.Draft{Turn: "turn1", Text: "half"}, nil
}

func (f *fake) Stop(_ context.Context, id, item string) (bool, error) {
	f.call("%s", strings.TrimSpace("stop "+id+" "+item))
	if f.stop != nil {
		return f.stop(id)
	}
	return true, nil
}

func (f *fake) Kill(_ context.Context, id string) error {
	if f.end != nil {
		_, err := f.end(id, false)
		return err
	}
	return nil
}

func (f *fake) Remove(_ context.Context, id string, force bool) (string, error) {
	if f.end != nil {
		return f.end(id, force)
	}
	return "trash/" + id, nil
}

func (f *fake) Asks(context.Context) ([]event.Ask, error) {
	return []event.Ask{{Token: "tok", AgentID: alpha, Tag: "@web"}}, nil
}

func (f *fake) Answered(_ context.Context, limit int) ([]event.Ask, error) {
	return []event.Ask{{Token: "old", AgentID: alpha, Tag: "@web", Decision: "deny", Reason: fmt.Sprint(limit)}}, nil
}

func (f *fake) Decide(_ context.Context, token, decision, by string) error {
	f.call("decide %s %s %s", token, decision, by)
	if f.decide != nil {
		return f.decide(token, decision, by)
	}
	return nil
}

func (f *fake) Status(context.Context) (event.Status, error) {
	return event.Status{Running: true, Version: "1.2.3", Agents: 3, Awake: 1, Queued: 2, Asks: 1, UptimeMS: 1500,
		Providers: []event.Service{{ID: "main", Type: "anthropic", State: "running"}}}, nil
}

func (f *fake) Reload(context.Context) ([]finding.Finding, error) {
	if f.reload != nil {
		return f.reload()
	}
	return nil, nil
}

func (f *fake) Shutdown(context.Context) error {
	if f.shutdown != nil {
		return f.shutdown()
	}
	return nil
}

func (f *fake) Config(context.Context) (any, error) {
	return map[string]any{"log": map[string]string{"level": "info"}}, nil
}

func (f *fake) Tools(context.Context) ([]ToolInfo, error) {
	return []ToolInfo{{Name: "read", Replay: "readonly"}}, nil
}

// fakeFiles keeps files in memory.
type fakeFiles map[string]string

func (f fakeFiles) Put(name string, r io.Reader) (message.File, error) {
	data, err := io.ReadAll(r)
	f[name] = string(data)
	return message.File{ID: "id-" + name, Name: name, Size: int64(len(data))}, err
}

func (f fakeFiles) Adopt(path string) (message.File, error) {
	if strings.HasPrefix(path, "/missing") {
		return message.File{}, &Invalid{Field: "path", Reason: "no such file or directory"}
	}
	return message.File{ID: "id-adopted", Name: path}, nil
}

func (f fakeFiles) Read(file message.File) ([]byte, error) { return []byte(f[file.ID]), nil }

func (f fakeFiles) Get(id string) (message.File, error) {
	if _, ok := f[strings.TrimPrefix(id, "id-")]; !ok {
		return message.File{}, fmt.Errorf("%w: %s", ErrNoFile, id)
	}
	return message.File{ID: id}, nil
}

func (f *fake) backend() Backend {
	return Backend{Agents: f, Permissions: f, Daemon: f, Files: fakeFiles{"kept": "x"}, Events: event.NewStream("boot")}
}

// serve gives a client of a handler over the fake, and its stream of events.
func serve(t *testing.T, f *fake) (*Client, *event.Stream) {
	t.Helper()
	b := f.backend()
	return NewClient(Local(Handler(b, Options{}))), b.Events
}

// raw makes one request and returns status, header and body.
func raw(t *testing.T, h http.Handler, method, path, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://daycare"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: Local(h)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}

	return resp.StatusCode, resp.Header, string(data)
}

// soon fails the test if cond does not become true.
func soon(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if cond() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("it did not happen within 5 s: %s", what) // Fatal only works on the test's own goroutine
}

var errEnough = errors.New("enough")
