package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

// A far agent is a server of A2A that does what a test says.
type far struct {
	*httptest.Server
	mu    sync.Mutex
	state string           // of every task
	text  string           // of its answer
	card  string           // "": its own
	asked int              // for tasks
	odd   http.HandlerFunc // answers messages; nil: as usual
}

func newFar(t *testing.T) *far {
	f := &far{state: "TASK_STATE_COMPLETED", text: "it rains"}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *far) set(state, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.text = state, text
}

func (f *far) answerOddly(odd http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.odd = odd
}

func (f *far) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer theirs" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if strings.HasSuffix(r.URL.Path, ".json") {
		at := f.card
		if at == "" {
			at = f.URL
		}
		fmt.Fprintf(w, `{"name":"Far","supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, at)
		return
	}
	var in struct{ Method string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	task := fmt.Sprintf(`{"id":"t1","contextId":"c1","status":{"state":%q},"artifacts":[{"artifactId":"a","parts":[{"text":%q}]}]}`,
		f.state, f.text)
	if in.Method == "SendMessage" && f.odd != nil {
		f.odd(w, r)
		return
	}
	if in.Method == "SendMessage" {
		task = `{"task":` + task + `}`
	} else {
		f.asked++
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"1","result":%s}`, task)
}

// A box is where system messages go, and the file of tasks.
type box struct {
	mu   sync.Mutex
	data []byte
	got  []message.Incoming
	err  error
}

func (b *box) Load() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data == nil {
		return nil, fs.ErrNotExist
	}
	return b.data, nil
}

func (b *box) Save(data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = data
	return nil
}

func (b *box) Post(_ context.Context, in message.Incoming) (message.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, in)
	return message.Receipt{}, b.err
}

func (b *box) received() []message.Incoming {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got
}

func desk(f *far, b *box, local bool) *Desk {
	headers := func(string) (http.Header, error) { return http.Header{"Authorization": {"Bearer theirs"}}, nil }
	return New(Options{Remotes: []Remote{{ID: "far", URL: f.URL, About: "Forecasts", Local: local}},
		Load: b.Load, Save: b.Save, Post: b.Post, Headers: headers, Soon: 50 * time.Millisecond})
}

const ask = `{"agent":"far","text":"tomorrow?"}`

func run(t *testing.T, d *Desk, arguments string) tools.Result {
	t.Helper()
	res, err := d.Tool().Run(t.Context(), tools.Call{ID: "call1", Agent: "ann", Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestContract(t *testing.T) {
	f := newFar(t)
	toolstest.Run(t, desk(f, &box{}, true).Tool(), toolstest.Options{Access: permission.Default(t.TempDir()),
		Good: []string{ask, `{"agent":"far","text":"more","context":"c1","task":"t1"}`}, Bad: []string{`{"agent":"far","text":" "}`}})
}

// A task that is done soon is the result, with its source; the approval shows all of what leaves.
func TestATaskThatIsDoneSoon(t *testing.T) {
	f, b := newFar(t), &box{}
	d := desk(f, b, true)
	res := run(t, d, ask)
	if !strings.Contains(res.Text, "it rains") || res.Source != "an A2A agent at 127.0.0.1" || res.Status != "" || b.data != nil {
		t.Errorf("%+v, kept %s", res, b.data)
	}
	f.set("TASK_STATE_FAILED", "no")
	if res := run(t, d, ask); res.Status != tools.Failed || !strings.Contains(res.Text, "failed") {
		t.Errorf("%+v", res)
	}

	need, err := d.Tool().(tools.Asks).Needs(tools.Call{Arguments: json.RawMessage(`{"agent":"far","text":"a\nb","task":"t1"}`)})
	if err != nil || need.Tag != "@a2a:127.0.0.1" || need.Detail.Call != "far at 127.0.0.1\n  │ a\n  │ b\ntask: t1" {
		t.Errorf("%+v, %v", need, err)
	}
}

// The end of a longer task is a system message, once, also where another process has begun it.
func TestATaskThatTakesLonger(t *testing.T) {
	f, b := newFar(t), &box{}
	f.set("TASK_STATE_WORKING", "")
	res := run(t, desk(f, b, true), ask)
	if !strings.Contains(res.Text, "will come as a message") || !strings.Contains(string(b.data), `"task": "t1"`) {
		t.Fatalf("%+v, kept %s", res, b.data)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- desk(f, b, true).Run(ctx) }() // the next process
	f.set("TASK_STATE_COMPLETED", "it rains")
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if data, _ := b.Load(); !strings.Contains(string(data), "t1") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no message within a minute")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	got := b.received()
	if len(got) != 1 || got[0].Agent != "ann" || got[0].Kind != message.System || !strings.Contains(got[0].Text, "it rains") ||
		got[0].Source != "an A2A agent at 127.0.0.1" || got[0].Dedupe != "a2a:call1:true" {
		t.Errorf("%+v", got)
	}
}

// What a task comes to where nothing more can be heard of it.
func TestTasksThatNeverEnd(t *testing.T) {
	f, b := newFar(t), &box{}
	d := desk(f, b, true)
	f.set("TASK_STATE_WORKING", "")
	if text, _, ended := d.look(t.Context(), &pending{Remote: "far", Task: "t1", Since: time.Now()}); text != "" || ended {
		t.Errorf("%q, %v", text, ended)
	}
	old := pending{Remote: "far", Task: "t1", Since: time.Now().Add(-givenUp - time.Hour)}
	if text, _, ended := d.look(t.Context(), &old); !ended || !strings.Contains(text, "7 days") {
		t.Errorf("%q, %v", text, ended)
	}
	gone := pending{Remote: "gone", Task: "t1"}
	if text, _, ended := d.look(t.Context(), &gone); !ended || !strings.Contains(text, "not in the settings") {
		t.Errorf("%q, %v", text, ended)
	}
	f.set("TASK_STATE_AUTH_REQUIRED", "")
	young := pending{Remote: "far", Task: "t1", Since: time.Now()}
	if text, _, ended := d.look(t.Context(), &young); ended || !strings.Contains(text, "authorization") {
		t.Errorf("%q, %v", text, ended)
	}
	if text, _, _ := d.look(t.Context(), &pending{Remote: "far", Task: "t1", Since: time.Now(), Said: true}); text != "" {
		t.Errorf("%q was said before", text)
	}
}

// A remote agent is reached where the settings say, and nowhere else; its secrets stay with it.
func TestWhereRequestsGo(t *testing.T) {
	f, b := newFar(t), &box{}
	if res := run(t, desk(f, b, false), ask); res.Status != tools.Failed || !strings.Contains(res.Text, "local: true") {
		t.Errorf("%+v", res)
	}

	stolen := ""
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = r.Header.Get("Authorization") }))
	defer thief.Close()
	f.card = thief.URL
	if res := run(t, desk(f, b, true), ask); res.Status != tools.Failed || !strings.Contains(res.Text, "another server") || stolen != "" {
		t.Errorf("%+v, the other server got %q", res, stolen)
	}

	u, _ := url.Parse("http://metadata.example/")
	meta := &guarded{server: u, next: transport(true, func() ([]net.Addr, error) { return nil, nil })}
	u, _ = url.Parse("http://169.254.169.254/")
	meta.server = u
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), nil)
	if _, err := meta.RoundTrip(req); !errors.Is(err, errInside) {
		t.Errorf("%v", err)
	}
}

// Where it is not known whether a remote agent got a task, the model reads that, and not that the task was refused.
func TestAnswersThatCannotBeUsed(t *testing.T) {
	f, b := newFar(t), &box{}
	write := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	const nameless = `{"jsonrpc":"2.0","id":"1","result":{"task":{"status":{"state":"TASK_STATE_WORKING"}}}}`
	const refusal = `{"jsonrpc":"2.0","id":"1","error":{"code":-32602,"message":"no such town"}}`
	for name, c := range map[string]struct {
		odd  http.HandlerFunc
		want string
	}{
		"a gateway without its server": {write(502, "<html>"), unclear},
		"a gateway that waited":        {write(504, ""), unclear},
		"a web page":                   {write(200, "<html>"), unclear},
		"nothing":                      {write(200, ""), unclear},
		"a task without an id":         {write(200, nameless), unclear},
		"half of an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"jsonrpc"`)
		}, unclear},
		"a connection that ends": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, unclear},
		"a refusal":              {write(200, refusal), "refused the task: no such town"},
		"a wrong token":          {write(401, ""), "refused the task: unexpected HTTP status: 401"},
	} {
		f.answerOddly(c.odd)
		res := run(t, desk(f, b, true), ask)
		if res.Status != tools.Failed || !strings.Contains(res.Text, c.want) || res.Source == "" && name != "a task without an id" {
			t.Errorf("%s: %+v, want %q", name, res, c.want)
		}
	}

	d := desk(f, b, true)
	d.o.Headers = func(string) (http.Header, error) { return nil, nil }
	if res := run(t, d, ask); !strings.Contains(res.Text, "not sent") || !strings.Contains(res.Text, "401") || res.Source == "" {
		t.Errorf("without a token: %+v", res)
	}
}

// What comes back is bounded.
func TestLongAnswers(t *testing.T) {
	f, b := newFar(t), &box{}
	f.set("TASK_STATE_COMPLETED", strings.Repeat("x", maxText+100))
	if res := run(t, desk(f, b, true), ask); len(res.Text) > maxText+200 || !strings.Contains(res.Text, "characters]") {
		t.Errorf("%d bytes", len(res.Text))
	}
	f.set("TASK_STATE_COMPLETED", strings.Repeat("x", maxBody))
	if res := run(t, desk(f, b, true), ask); res.Status != tools.Failed || len(res.Text) > 2000 {
		t.Errorf("%d bytes: %.300s", len(res.Text), res.Text)
	}
}
