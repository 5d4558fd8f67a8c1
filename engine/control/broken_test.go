package control

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// broken is a backend that can do nothing, and says why.
type broken struct{ why error }

func (b broken) Resolve(ref string) (string, error)                    { return ref, nil }
func (b broken) Agents(context.Context) ([]event.Agent, error)         { return nil, b.why }
func (b broken) Family(context.Context, string) ([]event.Agent, error) { return nil, b.why }
func (b broken) Agent(context.Context, string) (event.Agent, error)    { return event.Agent{}, b.why }
func (b broken) Create(context.Context, NewAgent) (event.Agent, error) { return event.Agent{}, b.why }
func (b broken) Await(context.Context, string, string) (event.Outcome, error) {
	return event.Outcome{}, b.why
}
func (b broken) Item(context.Context, string, string) (event.Posted, error) {
	return event.Posted{}, b.why
}
func (b broken) Inbox(context.Context, string) ([]event.Waiting, error) { return nil, b.why }
func (b broken) Drop(context.Context, string, string) error             { return b.why }
func (b broken) Front(context.Context, string, string) error            { return b.why }
func (b broken) Draft(context.Context, string) (event.Draft, error)     { return event.Draft{}, b.why }
func (b broken) Stop(context.Context, string, string) (bool, error)     { return false, b.why }
func (b broken) Kill(context.Context, string) error                     { return b.why }
func (b broken) Remove(context.Context, string, bool) (string, error)   { return "", b.why }
func (b broken) Asks(context.Context) ([]event.Ask, error)              { return nil, b.why }
func (b broken) Decide(context.Context, string, string, string) error   { return b.why }
func (b broken) Status(context.Context) (event.Status, error)           { return event.Status{}, b.why }
func (b broken) Reload(context.Context) ([]finding.Finding, error)      { return nil, b.why }
func (b broken) Shutdown(context.Context) error                         { return b.why }
func (b broken) Config(context.Context) (any, error)                    { return nil, b.why }
func (b broken) Tools(context.Context) ([]ToolInfo, error)              { return nil, b.why }
func (b broken) Put(string, io.Reader) (message.File, error)            { return message.File{}, b.why }
func (b broken) Adopt(string) (message.File, error)                     { return message.File{}, b.why }
func (b broken) Get(string) (message.File, error)                       { return message.File{}, b.why }
func (b broken) Read(message.File) ([]byte, error)                      { return nil, b.why }
func (b broken) Rewindable(context.Context, string, string) error       { return b.why }
func (b broken) Undoable(context.Context, string, *string) ([]event.Rewound, error) {
	return nil, b.why
}
func (b broken) TakeBack(context.Context, string, []string, bool) ([]event.TakenBack, error) {
	return nil, b.why
}
func (b broken) Export(context.Context, string, io.Writer) error              { return b.why }
func (b broken) Trash(context.Context) ([]event.Trashed, error)               { return nil, b.why }
func (b broken) Restore(context.Context, string) (event.Agent, error)         { return event.Agent{}, b.why }
func (b broken) Switch(context.Context, string, string) (Choice, error)       { return Choice{}, b.why }
func (b broken) Tasks(context.Context) ([]Task, error)                        { return nil, b.why }
func (b broken) Task(context.Context, string) (Task, error)                   { return Task{}, b.why }
func (b broken) AddTask(context.Context, TaskChange) (Task, error)            { return Task{}, b.why }
func (b broken) ChangeTask(context.Context, string, TaskChange) (Task, error) { return Task{}, b.why }
func (b broken) RemoveTask(context.Context, string) (string, error)           { return "", b.why }
func (b broken) RunTask(context.Context, string) (time.Time, error)           { return time.Time{}, b.why }
func (b broken) TaskRuns(context.Context, string, int) ([]TaskRun, error)     { return nil, b.why }
func (b broken) Heartbeat(context.Context) (Heartbeat, error)                 { return Heartbeat{}, b.why }
func (b broken) AddPrompt(context.Context, PromptChange) (Prompt, error)      { return Prompt{}, b.why }
func (b broken) RemovePrompt(context.Context, string) (string, error)         { return "", b.why }
func (b broken) RunHeartbeat(context.Context) (time.Time, error)              { return time.Time{}, b.why }
func (b broken) HeartbeatRuns(context.Context, int) ([]TaskRun, error)        { return nil, b.why }
func (b broken) Grants(context.Context, string) (permission.Set, error) {
	return permission.Set{}, b.why
}
func (b broken) Revoke(context.Context, string, string, string) error    { return b.why }
func (b broken) Grant(context.Context, string, Granting, string) error   { return b.why }
func (b broken) Why(context.Context, string, string) (Verdict, error)    { return Verdict{}, b.why }
func (b broken) SubAgents(context.Context) ([]SubAgentInfo, error)       { return nil, b.why }
func (b broken) Models(context.Context) ([]ModelInfo, error)             { return nil, b.why }
func (b broken) Providers(context.Context) ([]event.Service, error)      { return nil, b.why }
func (b broken) Skills(context.Context) ([]SkillInfo, error)             { return nil, b.why }
func (b broken) Commands(context.Context) ([]CommandInfo, error)         { return nil, b.why }
func (b broken) Expand(context.Context, string, string) (string, error)  { return "", b.why }
func (b broken) Cost(context.Context, time.Time, string) (Bill, error)   { return Bill{}, b.why }
func (b broken) Hooks(context.Context) ([]HookInfo, error)               { return nil, b.why }
func (b broken) TestHooks(context.Context, HookSample) (HookTest, error) { return HookTest{}, b.why }
func (b broken) Backup(context.Context, io.Writer, bool) error           { return b.why }
func (b broken) Pairings(context.Context) ([]Pairing, error)             { return nil, b.why }
func (b broken) Pair(context.Context, string, bool, string) (Paired, error) {
	return Paired{}, b.why
}
func (b broken) Deliver(context.Context, message.Incoming) (message.Receipt, error) {
	return message.Receipt{}, b.why
}
func (b broken) History(context.Context, string, int64, int) (event.Page, error) {
	return event.Page{}, b.why
}
func (b broken) Fork(context.Context, string, int64, string) (event.Agent, error) {
	return event.Agent{}, b.why
}
func (b broken) Import(context.Context, io.Reader, string) (event.Agent, error) {
	return event.Agent{}, b.why
}
func (b broken) ReadFile(context.Context, string, string) ([]byte, string, error) {
	return nil, "", b.why
}
func (b broken) WriteFile(context.Context, string, string, []byte, string) (string, error) {
	return "", b.why
}

func (b broken) Trace(context.Context, string) (json.RawMessage, error) { return nil, b.why }
func (b broken) Examine(context.Context) (Checkup, error)               { return Checkup{}, b.why }
func (b broken) Treat(context.Context, []string) (Checkup, error)       { return Checkup{}, b.why }
func (b broken) Validate(context.Context, string, []byte) ([]finding.Finding, error) {
	return nil, b.why
}
func (b broken) Schema(string) (json.RawMessage, error)                  { return nil, b.why }
func (b broken) Size(context.Context, string) (json.RawMessage, error)   { return nil, b.why }
func (b broken) Log(context.Context, LogQuery, func([]byte) error) error { return b.why }
func (b broken) Answered(context.Context, int) ([]event.Ask, error)      { return nil, b.why }
func (b broken) SharedFiles(context.Context) ([]SharedFile, error)       { return nil, b.why }
func (b broken) ReadShared(context.Context, string) ([]byte, string, error) {
	return nil, "", b.why
}
func (b broken) WriteShared(context.Context, string, []byte, string) (string, error) {
	return "", b.why
}
func (b broken) Budgets(context.Context) ([]Budget, error) { return nil, b.why }
func (b broken) TestConnector(context.Context, string) (json.RawMessage, error) {
	return nil, b.why
}
func (b broken) TestProvider(context.Context, string) (json.RawMessage, error) {
	return nil, b.why
}
func (b broken) Invite(context.Context) (Invitation, error) { return Invitation{}, b.why }
func (b broken) Login(context.Context, string, string) (Session, string, error) {
	return Session{}, "", b.why
}
func (b broken) Sessions(context.Context) ([]Session, error) { return nil, b.why }
func (b broken) End(context.Context, string) error           { return b.why }

// What the backend cannot do is never answered as done.
func TestEveryRouteAnswersWithTheErrorOfItsBackend(t *testing.T) {
	b := broken{ErrProtected}
	h := Handler(Backend{b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, nil, func() Translator { return echo{} }, event.NewStream("boot"),
		false}, Options{})
	local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), Caller{Name: "me", Local: true, Rights: apitoken.Everything})))
	})
	with := map[string]string{
		"POST /v1/agents":               `{"type":"user"}`,
		"POST /v1/agents/{id}/messages": `{"text":"hi","files":[{"name":"a","data":"eA=="}]}`,
		"POST /v1/messages":             `{"text":"hi","connector":"c","channelId":"d","wait":true}`,
	}
	tried := 0
	for _, o := range Operations() {
		if slices.Contains([]string{health.Name, events.Name, login.Name, whoAmI.Name, logout.Name}, o.Name) {
			continue // the second has no end, the others ask nothing of the backend for a caller without a cookie
		}
		method, path := filled(o.Pattern(), alpha)
		switch o.Name {
		case why.Name:
			path += "?what=@web"
		case revoke.Name:
			path += "?permission=@web"
		}
		body, ok := with[o.Pattern()]
		if !ok {
			body = bodies[o.Pattern()]
		}
		tried++
		if status, e, text := call(t, local, method, path, body); status != http.StatusConflict || e.Code != ErrProtected.Code {
			t.Errorf("%s: %d %s; want the error of the backend", o.Pattern(), status, text)
		}
	}
	if tried < 50 {
		t.Errorf("only %d routes were tried", tried)
	}
}

// answers is a daemon that always answers the same.
type answers struct {
	status int
	body   string
	err    error
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	w := httptest.NewRecorder()
	w.WriteHeader(a.status)
	_, _ = w.WriteString(a.body)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// A text that a dying daemon cuts is not all there is.
func TestMetricsThatAreCut(t *testing.T) {
	cut := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Request: r,
			Body: io.NopCloser(io.MultiReader(strings.NewReader("daycare_counted_total 7\n"), iotest.ErrReader(io.ErrUnexpectedEOF)))}, nil
	})
	if text, err := NewClient(cut).Metrics(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", text, err)
	}
}

// What a daemon says of a request is shown as it says it; of one of an earlier version the client makes a card itself.
func TestCardsOfRequests(t *testing.T) {
	const list = `{"permissions":[{"token":"a","card":"as the daemon says","permission":"@web"},` +
		`{"token":"b","agentId":"x","permission":"@web","request":"any host"}]}`
	all, err := NewClient(answers{status: 200, body: list}).Permissions(t.Context())
	if err != nil || len(all) != 2 || all[0].Card != "as the daemon says" || !strings.Contains(all[1].Card, "@web") {
		t.Errorf("%+v, %v", all, err)
	}
}

// Which machine answers for an agent is said by its answer, unless the answer is cut.
func TestWhichMachineAnswers(t *testing.T) {
	for body, want := range map[string]string{`{"id":"alpha"}`: "two", `{"id":`: ""} {
		there := roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Request: r, Header: http.Header{MachineHeader: {"two"}},
				Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		if machine, err := NewClient(there).Machine(t.Context(), "alpha"); machine != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", body, machine, err)
		}
	}
}

// Whoever ends a watch hears that, whatever else the end of the stream looks like.
func TestAWatchThatIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ending := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(readFunc(func([]byte) (int, error) {
			cancel()
			return 0, io.ErrUnexpectedEOF
		}))}, nil
	})
	if err := NewClient(ending).Events(ctx, Filter{}, "", nil); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotRunning) {
		t.Errorf("ended by its caller: %v", err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// eachCall calls every method of a client that asks the daemon something.
func eachCall(t *testing.T, c *Client, told func(name string, err error)) {
	t.Helper()
	calls := 0
	for _, of := range []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(c.Folders()), reflect.ValueOf(c.Schedule())} {
		for i := range of.NumMethod() {
			name, m := of.Type().Method(i).Name, of.Method(i)
			if m.Type().NumIn() == 0 || m.Type().In(0) != reflect.TypeFor[context.Context]() {
				continue
			}
			in := []reflect.Value{reflect.ValueOf(t.Context())}
			for n := 1; n < m.Type().NumIn(); n++ {
				v := reflect.New(m.Type().In(n)).Elem()
				switch {
				case v.Kind() == reflect.String:
					v.SetString("x")
				case v.Type() == reflect.TypeFor[io.Writer]():
					v.Set(reflect.ValueOf(io.Discard))
				}
				in = append(in, v)
			}
			out := m.Call(in)
			if body, ok := out[0].Interface().(io.Closer); ok && body != nil && !out[0].IsNil() {
				body.Close()
			}
			err, _ := out[len(out)-1].Interface().(error)
			calls++
			told(name, err)
		}
	}
	if calls < 45 {
		t.Errorf("only %d calls were made", calls)
	}
}

// What the daemon refused, and a daemon that is gone, is what every call of the client says.
func TestEveryCallReturnsTheErrorOfTheDaemon(t *testing.T) {
	eachCall(t, NewClient(answers{status: 409, body: `{"error":{"code":"protected","message":"no"}}`}), func(name string, err error) {
		if !errors.Is(err, ErrProtected) {
			t.Errorf("%s: %v, want the daemon's answer", name, err)
		}
	})
	eachCall(t, NewClient(answers{err: io.EOF}), func(name string, err error) {
		if !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s: %v, want that nothing runs", name, err)
		}
	})
	eachCall(t, NewClient(answers{status: 200, body: `{"agents":[`}), func(name string, err error) {
		if raw := slices.Contains([]string{"Metrics", "Backup", "ReadFile"}, name); err == nil != raw {
			t.Errorf("%s of half an answer: %v", name, err)
		}
	})
	eachCall(t, NewClient(answers{status: 502, body: "<html>Bad Gateway" + strings.Repeat(" ", 500)}), func(name string, err error) {
		api, ok := errors.AsType[*APIError](err)
		if !ok || api.Status != 502 || api.Code != fault.Internal || !strings.Contains(api.Message, "<html>Bad Gateway") {
			t.Errorf("%s behind a proxy that fails: %+v", name, err)
		}
	})
}

// The decisions that cannot be read are not taken for none, nor agents that cannot be listed as models.
func TestListsThatCannotBeMade(t *testing.T) {
	b := broken{ErrProtected}
	backend := (&fake{}).backend()
	backend.Permissions, backend.Catalog = b, menu{}
	backend.Translator, backend.Agents = func() Translator { return echo{} }, b
	h := as(Handler(backend, Options{}), apitoken.Everything)
	for _, path := range []string{"/v1/permissions?state=decided", "/v1/permissions", "/v1/models"} {
		if status, e, text := call(t, h, "GET", path, ""); status != http.StatusConflict || e.Code != ErrProtected.Code {
			t.Errorf("%s: %d %s; want the error of the backend", path, status, text)
		}
	}
}

// A daemon that does not answer a question at once is silent; one that carries something out may take its time.
func TestOnlyAQuestionCanMeetSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(slow(2 * silence))
		var silent atomic.Int32
		c.OnSilence(func() { silent.Add(1) })
		if _, err := c.Reset(t.Context(), alpha); err != nil || silent.Load() != 0 {
			t.Errorf("a command: %v, said to be silent %d times", err, silent.Load())
		}
		if _, err := c.Status(t.Context()); err != nil || silent.Load() != 1 {
			t.Errorf("a question: %v, said to be silent %d times", err, silent.Load())
		}
	})
	if _, err := NewClient(answers{status: 200, body: "{}"}).Status(t.Context()); err != nil {
		t.Errorf("without a function: %v", err)
	}
}

// slow is a daemon that takes as long to answer.
type slow time.Duration

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(s))
	return answers{status: 200, body: "{}"}.RoundTrip(r)
}

// A reset that cannot stop the current turn is not said to be done.
func TestAResetThatCannotStopIsRefused(t *testing.T) {
	f := &fake{stop: func(string) (bool, error) { return false, ErrBusy }}
	c, _ := serve(t, f)
	if _, err := c.Reset(t.Context(), "alpha"); !errors.Is(err, ErrBusy) || len(f.delivered()) != 0 {
		t.Errorf("of an agent: %v, delivered %+v", err, f.delivered())
	}
	if _, err := c.Send(t.Context(), "", Message{Kind: message.Reset, Connector: "web", ChannelID: "c"}); !errors.Is(err, ErrBusy) {
		t.Errorf("of who is named by a descriptor: %v", err)
	}
	f = &fake{deliver: func(context.Context, message.Incoming) (message.Receipt, error) {
		return message.Receipt{Agent: alpha, Item: "item1", Duplicate: true}, nil
	}}
	c, _ = serve(t, f)
	if _, err := c.Send(t.Context(), "", Message{Kind: message.Reset, Connector: "web", ChannelID: "c"}); err != nil ||
		slices.Contains(f.calls, "stop "+alpha) {
		t.Errorf("one that was accepted before stops again: %v, %v", err, f.calls)
	}
}

// What goes with each kind of message, and what does not.
func TestWhatGoesWithAMessage(t *testing.T) {
	me := Caller{Name: "me", Local: true, Rights: apitoken.Everything}
	for _, tt := range []struct {
		m     Message
		field string // that is refused; "": none
	}{
		{Message{Text: "x"}, ""}, {Message{Text: " "}, "text"}, {Message{Text: " ", Files: []File{{ID: "x"}}}, ""},
		{Message{Text: "x", Kind: message.Text, Queue: message.Steer}, ""}, {Message{Text: "x", Queue: message.Followup}, ""},
		{Message{Text: "x", Kind: message.System, Queue: message.Steer}, "queue"},
		{Message{Kind: message.Reset, Queue: message.Steer}, "queue"},
		{Message{Text: "x", Queue: "collect"}, "queue"}, {Message{Kind: message.Compact}, ""}, {Message{Kind: message.Mark}, ""},
		{Message{Text: "x", Kind: message.Permission}, "kind"}, {Message{Text: "x", Origin: "o"}, "origin"},
		{Message{Text: "x", Silent: true}, "silent"},
		{Message{Text: "x", Kind: message.System, Origin: "o", Silent: true}, ""},
		{Message{Text: "x", Dedupe: strings.Repeat("d", maxDedupe)}, ""},
		{Message{Text: "x", Dedupe: strings.Repeat("d", maxDedupe+1)}, "dedupe"},
		{Message{Text: "x", Route: &message.Address{Connector: "c"}}, "route"},
		{Message{Text: "x", Route: &message.Address{ChannelID: "c"}}, "route"},
		{Message{Text: "x", Route: &message.Address{Connector: "c", ChannelID: "d"}}, ""},
		{Message{Files: []File{{}}}, "files[0]"}, {Message{Files: []File{{ID: "x", Name: "y"}}}, "files[0]"},
		{Message{Files: []File{{Path: "/x", Name: "y"}}}, "files[0]"},
		{Message{Files: []File{{ID: "x"}, {Path: "/x", Data: []byte("y")}}}, "files[1].data"},
		{Message{Files: []File{{Name: "a", Data: make([]byte, MaxFileBytes/2)}, {Name: "b", Data: make([]byte, MaxFileBytes/2)}}}, ""},
	} {
		err := tt.m.check(false, me)
		var invalid *Invalid
		if tt.field == "" && err != nil || tt.field != "" && (!errors.As(err, &invalid) || invalid.Field != tt.field) {
			t.Errorf("%+v: %v, want %q refused", tt.m.Kind, err, tt.field)
		}
	}
	large := Message{Files: []File{{Name: "a", Data: make([]byte, MaxFileBytes/2)}, {Name: "b", Data: make([]byte, MaxFileBytes/2+1)}}}
	if err := large.check(false, me); !errors.Is(err, ErrFileTooLarge) {
		t.Errorf("files that are too large together: %v", err)
	}
}

// A request that stops halfway is answered and ended, and one whose answer is not read is ended, too: with a token or without.
func TestWhoStopsHalfwayIsLetGo(t *testing.T) {
	const (
		late  = 5 * time.Minute
		token = "Authorization: Bearer s3cret\r\n"
		page  = "X-Daycare: 1\r\n"
		ten   = "Content-Length: 10\r\n\r\n"
	)
	for name, c := range map[string]struct {
		request string        // without its Host
		pause   time.Duration // before the answer is read
		answer  string        // begins so
	}{
		"a stranger's body":         {"POST /v1/messages HTTP/1.1\r\n" + page + ten, 0, "HTTP/1.1 401 "},
		"a stranger's chunks":       {"POST /mcp HTTP/1.1\r\n" + page + "Transfer-Encoding: chunked\r\n\r\n", 0, "HTTP/1.1 401 "},
		"a stranger's answer":       {"GET /v1/agents HTTP/1.1\r\n\r\n", late, ""},
		"the page":                  {"GET / HTTP/1.1\r\n\r\n", late, ""},
		"a login":                   {"POST /v1/session HTTP/1.1\r\n" + page + "\r\n", late, ""},
		"a body that is no JSON":    {"POST /v1/agents HTTP/1.1\r\n" + token + ten + "{]", 0, "HTTP/1.1 400 "},
		"a file":                    {"PUT /v1/agents/alpha/files/x HTTP/1.1\r\nIf-Match: x\r\n" + token + ten + "{", 0, "HTTP/1.1 400 "},
		"a body that is not wanted": {"GET /v1/agents HTTP/1.1\r\n" + token + ten, 0, "HTTP/1.1 200 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sum := sha256.Sum256([]byte("s3cret"))
				g := &guard{token: &sum, scheme: "http", port: "80", hosts: []string{"me"}, page: leaf{true}}
				here, there := net.Pipe()
				b := (&fake{}).backend()
				b.Folders = &shelf{}
				s := newServer(t.Context(), Handler(b, Options{}), nil, &Listener{guard: g.wrap})
				go s.Serve(&once{conn: there, closed: make(chan struct{})})
				defer s.Close()
				here.SetDeadline(time.Now().Add(2 * late))
				if _, err := io.WriteString(here, strings.Replace(c.request, "\r\n", "\r\nHost: me:80\r\n", 1)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.pause)
				answer, err := io.ReadAll(here)
				if err != nil || !strings.HasPrefix(string(answer), c.answer) || c.answer == "" && len(answer) > 0 {
					t.Errorf("answered %q, %v; want %q and the end", answer, err, c.answer)
				}
			})
		})
	}
}

// once is a listener with one connection.
type once struct {
	net.Listener
	conn   net.Conn
	closed chan struct{}
}

func (l *once) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *once) Close() error {
	close(l.closed)
	return nil
}
