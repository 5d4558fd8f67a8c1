package peers

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"daycare/engine/address"
	"daycare/engine/cluster"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/message"
	"daycare/engine/workspace"
)

// The entry of the machine that an agent runs on is newer, and of two like that the one in which more
// was done since.
func TestWhichEntryIsNewer(t *testing.T) {
	entry := func(running bool, at string) map[string]any { return map[string]any{"running": running, "lastAt": at} }
	for _, tt := range []struct {
		a, b map[string]any
		want bool
	}{
		{entry(true, "1"), entry(false, "2"), true}, {entry(false, "2"), entry(true, "1"), false},
		{entry(true, "2"), entry(true, "1"), true}, {entry(false, "1"), entry(false, "2"), false},
		{entry(false, "1"), entry(false, "1"), false}, {entry(false, "1"), map[string]any{}, true},
		{map[string]any{}, map[string]any{}, false},
	} {
		if newer(tt.a, tt.b) != tt.want {
			t.Errorf("%v is newer than %v: %v", tt.a, tt.b, !tt.want)
		}
	}
}

// Lists of several machines are one, in which each thing is once. What is asked for by its time is the newest of all machines,
// the newest first, however many each of them has.
func TestListsOfAllMachinesAreOne(t *testing.T) {
	entry := func(key, at string) map[string]any { return map[string]any{"k": key, "at": at} }
	at := func(s string) string { return "2026-11-28T11:58:40" + s }
	lists := [][]map[string]any{{entry("d", at(".205Z")), entry("a", at("Z"))},
		{entry("e", at(".275Z")), entry("a", at("Z")), entry("b", at(".1Z"))}, nil, {entry("c", "2026-11-28T12:58:40.12+01:00")}}
	for _, tt := range []struct {
		how  merging
		want string
	}{
		{merging{key: "k"}, "daebc"},
		{merging{key: "k", at: "at"}, "edcba"},
		{merging{key: "k", at: "at", most: 3}, "edc"},
		{merging{key: "k", at: "at", most: 9}, "edcba"},
		{merging{key: "k", at: "other"}, "daebc"},
	} {
		got := ""
		for _, e := range tt.how.one(lists) {
			got += e["k"].(string)
		}
		if got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.how, got, tt.want)
		}
	}
	if got := (merging{key: "k"}).one(nil); got == nil || len(got) > 0 {
		t.Errorf("no lists are %v", got)
	}
	for query, want := range map[string]int{"": 0, "?state=pending&limit=3": 0, "?state=decided": 100, "?state=decided&limit=20": 20,
		"?state=decided&limit=-1": 0} {
		if got := control.AnsweredAtMost(httptest.NewRequest(http.MethodGet, "/v1/permissions"+query, nil)); got != want {
			t.Errorf("%q: %d, want %d", query, got, want)
		}
	}
}

// An answer of another machine is passed on: a stream as it comes, all else when it is whole, and one
// that breaks off before as an error.
func TestAnswersArePassedOn(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("{\"half"), failing{})
	for name, tt := range map[string]struct {
		kind   string
		body   io.Reader
		status int
		want   string
	}{
		"whole":                 {"application/json", strings.NewReader("{}"), 201, "{}"},
		"whole, and broken off": {"application/json", broken, 500, `"error"`},
		"a stream": {"text/event-stream; charset=utf-8", strings.NewReader("data: 1\n\ndata: 2\n\n"), 201,
			"data: 1\n\ndata: 2\n\n"},
		"a stream, and broken off": {"text/event-stream", io.MultiReader(strings.NewReader("data: 1\n\n"), failing{}), 201, "data: 1\n\n"},
	} {
		w := httptest.NewRecorder()
		turnout{w: w}.copy(&http.Response{StatusCode: 201, Header: http.Header{"Content-Type": {tt.kind}, "X-Of": {"there"}},
			Body: io.NopCloser(tt.body)})
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || (w.Header().Get("X-Of") == "there") != (tt.status == 201) {
			t.Errorf("%s: %d %v %q", name, w.Code, w.Header(), w.Body)
		}
		if stream := strings.HasPrefix(tt.kind, "text/event"); w.Flushed != stream {
			t.Errorf("%s: flushed %v", name, w.Flushed)
		}
	}
}

// failing is what cannot be read to its end.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// What fails because servers or machines are away can be tried again, and says when.
func TestWhatFailsIsDescribed(t *testing.T) {
	for _, err := range []error{disk.ErrAway, errors.Join(disk.ErrAway, message.ErrUnknownAgent), message.ErrUnknownAgent} {
		w := httptest.NewRecorder()
		turnout{w: w}.fail(err)
		if away := errors.Is(err, disk.ErrAway); (w.Header().Get("Retry-After") != "") != away || w.Code != control.Describe(err).Status ||
			!strings.Contains(w.Body.String(), `"error"`) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%v: %d %v %q", err, w.Code, w.Header(), w.Body)
		}
	}
}

// The path of a request names an agent by all that an agent is called.
func TestWhichAgentARequestIsFor(t *testing.T) {
	home := filepath.Join(t.TempDir(), ".daycare")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	index, _, err := address.Load(disk.NewVolume(home), home, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	made, err := index.Create(address.Descriptor{Type: address.Permanent, Name: "Ops", Description: "d"}, []byte("{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := &Machines{Place: Place{Index: index}}
	for path, want := range map[string]bool{"/v1/agents/" + made.ID: true, "/v1/agents/" + made.ID + "/messages": true,
		"/v1/agents/" + url.PathEscape(made.Handle) + "/events": true, "/v1/agents/none": false, "/v1/agents": false, "/v1/agents/": false,
		"/v1/events": false} {
		u, err := url.Parse("http://x" + path)
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := m.agentOf(u); ok != want || want && id != made.ID {
			t.Errorf("%s is for %q, %v", path, id, ok)
		}
	}
}

// The body of a request for another machine is as it came; the paths of files in a message of this
// machine's own user are brought along, those of others are not looked at.
func TestWhatIsBroughtAlong(t *testing.T) {
	for name, tt := range map[string]struct {
		path, body string
		local      bool
	}{
		"no message":         {"/v1/agents/a/stop", `{"files":[{"path":"/etc/passwd"}]}`, true},
		"not of this user":   {"/v1/agents/a/messages", `{"files":[{"path":"/etc/passwd"}]}`, false},
		"no files":           {"/v1/agents/a/messages", `{"text":"x"}`, true},
		"no JSON":            {"/v1/agents/a/messages", `{`, true},
		"nothing":            {"/v1/agents/a/stop", "", true},
		"files of no kind":   {"/v1/agents/a/messages", `{"files":7}`, true},
		"files that it kept": {"/v1/agents/a/messages", `{"files":[{"id":"f"}]}`, true},
	} {
		u := turnout{w: httptest.NewRecorder(), req: httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(tt.body)),
			caller: control.Caller{Local: tt.local}}
		got, err := u.body()
		if err != nil || got == nil || strings.Join(strings.Fields(string(got)), "") != strings.Join(strings.Fields(tt.body), "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	u := turnout{w: httptest.NewRecorder(), req: httptest.NewRequest(http.MethodPost, "/v1/agents/a/messages", failing{})}
	if _, err := u.body(); err == nil {
		t.Error("half a body is sent on")
	}
}

// An agent that moved is looked for elsewhere; other errors are not a move.
func TestWhetherAnAgentMoved(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{{disk.ErrFenced, true}, {fmt.Errorf("x: %w", &message.Elsewhere{Node: "n"}), true}, {disk.ErrAway, false}, {nil, false}} {
		if hasMoved(tt.err) != tt.want {
			t.Errorf("%v: %v", tt.err, !tt.want)
		}
	}
}

// An answer keeps its agent on this machine until it was read.
func TestAnAnswerHoldsItsAgent(t *testing.T) {
	var order []string
	h := held{closing(func() error { order = append(order, "closed"); return io.ErrClosedPipe }),
		func() { order = append(order, "released") }}
	if err := h.Close(); !errors.Is(err, io.ErrClosedPipe) || !slices.Equal(order, []string{"closed", "released"}) {
		t.Errorf("%v, %q", err, order)
	}
}

type closing func() error

func (closing) Read([]byte) (int, error) { return 0, io.EOF }
func (c closing) Close() error           { return c() }

// The servers are reached as the settings say, with files of the workspace.
func TestHowServersAreReached(t *testing.T) {
	got := Config(workspace.At("/ws"), config.Cluster{Servers: []string{"tls://a:1"}, Replicas: 3, OwnDisk: "never", User: "u",
		Password: config.NewSecret("p"),
		TLSCA:    "ca.pem", TLSCert: "/tls/cert.pem"}, cluster.Config{})
	if !slices.Equal(got.Servers, []string{"tls://a:1"}) || got.Copies != (cluster.Copies{Servers: 3, OwnDisk: cluster.Never}) ||
		got.Access.User != "u" || got.Access.Password != "p" ||
		got.Access.CA != "/ws/ca.pem" || got.Access.Cert != "/tls/cert.pem" || got.Access.Key != "" {
		t.Errorf("%+v", got)
	}
	if err := strange(address.Meta{Handle: "0/", Name: "Ops"}); !strings.Contains(err.Error(), "0/ (Ops)") {
		t.Errorf("a strange agent: %v", err)
	}
}
