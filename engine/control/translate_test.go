package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// echo is a Translator that hands on what it gets.
type echo struct{}

func (echo) Models(ctx context.Context, line Line) (list []ForeignModel, err error) {
	agents, err := line.Agents(ctx)
	for _, a := range agents {
		list = append(list, ForeignModel{ID: a.Name, Object: "model"})
	}
	return list, err
}

func (echo) Model(ctx context.Context, line Line, name string) (ForeignModel, error) {
	id, err := line.Resolve(ctx, name)
	if err == nil {
		_, err = line.Agents(ctx)
	}
	return ForeignModel{ID: id, Object: "model"}, err
}

func (echo) Chat(w http.ResponseWriter, r *http.Request, line Line) {
	body, err := line.Body(w, r)
	var in struct{ Model, Text string }
	if err == nil {
		_ = json.Unmarshal(body, &in)
		in.Model, err = line.Resolve(r.Context(), cmp.Or(in.Model, alpha))
	}
	var o event.Outcome
	if err == nil {
		o, err = line.Follow(r.Context(), message.Incoming{Agent: in.Model, Text: in.Text}, Told{
			Accepted: func(message.Receipt) error { return nil }, Event: func(event.Event) error { return nil },
			Flush: func() error { return nil }, Alive: func() error { return nil },
		})
	}
	if err != nil {
		line.Fail(w, r, err)
		return
	}
	fmt.Fprintf(w, "%q", o.Text)
}

func (e echo) Responses(w http.ResponseWriter, r *http.Request, line Line) { e.Chat(w, r, line) }

// Who may not approve speaks as a guest through another API, too.
func TestAMessageOfAnotherAPIIsItsCallers(t *testing.T) {
	for scope, want := range map[apitoken.Scope]string{apitoken.Chat: "a message of the API caller token:test", apitoken.Admin: ""} {
		f := &fake{}
		b := whole(&pair{fake: f})
		h := as(Handler(b, Options{}), apitoken.Rights{Scopes: []apitoken.Scope{scope}})
		status, _, text := call(t, h, "POST", "/v1/chat/completions", `{"model":"alpha","text":"hi"}`)
		if status != http.StatusOK || text != `"the answer"` || len(f.in) != 1 || f.in[0].Source != want {
			t.Errorf("%s: %d %s, %+v", scope, status, text, f.in)
		}
	}
}

// asking is a Translator that says for what the agent waits which is named in a request.
type asking struct{ echo }

func (asking) Chat(w http.ResponseWriter, r *http.Request, line Line) {
	body, err := line.Body(w, r)
	var asks []event.Ask
	if err == nil {
		asks, err = line.Asks(r.Context(), string(body))
	}
	if err != nil {
		line.Fail(w, r, err)
		return
	}
	for _, a := range asks {
		fmt.Fprint(w, a.Token)
	}
}

// What an agent waits for can be said through another API, too; that it cannot be read is no answer.
func TestWhatAnAgentWaitsForAtAnotherAPI(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	b.Translator = func() Translator { return asking{} }
	h := Handler(b, Options{})
	for agent, want := range map[string]string{alpha: "tok", beta: "tokbeta"} {
		if status, _, text := raw(t, h, "POST", "/v1/chat/completions", agent); status != 200 || text != want {
			t.Errorf("%s: %d %q, want %q", agent, status, text, want)
		}
	}
	b.Permissions = broken{errors.New("seeded")}
	if status, _, text := raw(t, Handler(b, Options{}), "POST", "/v1/chat/completions", alpha); status != http.StatusInternalServerError {
		t.Errorf("what cannot be read: %d %s", status, text)
	}
}

// knowing is a Translator that says who asks, and what of an agent's history it reads.
type knowing struct{ echo }

func (knowing) Chat(w http.ResponseWriter, r *http.Request, line Line) {
	page, err := line.History(r.Context(), alpha, 7, 2)
	if err != nil {
		line.Fail(w, r, err)
		return
	}
	fmt.Fprint(w, line.Caller(), line.Restricted(), len(page.Records))
}

// A translator learns who asks, whether the caller is limited to some agents, and reads pages of a history.
func TestWhatATranslatorLearns(t *testing.T) {
	b := whole(&pair{fake: &fake{history: func(id string, before int64, limit int) (event.Page, error) {
		if id != alpha || before != 7 || limit != 2 {
			return event.Page{}, fault.Invalid
		}
		return event.Page{Records: make([]json.RawMessage, 2)}, nil
	}}})
	b.Translator = func() Translator { return knowing{} }
	for want, agents := range map[string][]string{"token:testfalse 2": nil, "token:testtrue 2": {alpha}} {
		h := as(Handler(b, Options{}), apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}, Agents: agents})
		if status, _, text := call(t, h, "POST", "/v1/chat/completions", `{}`); status != 200 || text != want {
			t.Errorf("limited to %q: %d %q, want %q", agents, status, text, want)
		}
	}
}

// The list of models has those of daycare as before, and the agents that the caller knows beside.
func TestModelsOfBothAPIs(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	ask := func() string {
		h := as(Handler(b, Options{}), apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Read}, Agents: []string{alpha}})
		_, _, text := call(t, h, "GET", "/v1/models", "")
		return text
	}
	if got := ask(); !strings.Contains(got, `"models":[`) || !strings.Contains(got, `"object":"list","data":[{"id":"Alpha"`) ||
		strings.Contains(got, "Beta") {
		t.Error(got)
	}
	b.Translator = func() Translator { return nil }
	if got := ask(); !strings.Contains(got, `"models":[`) || strings.Contains(got, "object") || strings.Contains(got, "data") {
		t.Errorf("off: %s", got)
	}
}

// Errors of the other API's paths have the form that its clients read.
func TestForeignErrors(t *testing.T) {
	for _, tt := range []struct {
		path, body   string
		fail         error
		off          bool
		status       int
		typ, code    string
		message      string
		dontRepeatIt bool
		param        string
	}{
		{path: "/v1/chat/completions", body: `{"model":"none"}`, status: 404, typ: "invalid_request_error", code: "model_not_found",
			message: "none"},
		{path: "/v1/chat/completions", fail: inbox.ErrFull, status: 429, typ: "rate_limit_error", code: "inbox_full"},
		{path: "/v1/responses", fail: ErrCut, status: 503, typ: "server_error", code: "cut", dontRepeatIt: true},
		{path: "/v1/responses", fail: &Invalid{Field: "model", Reason: "is empty", Hint: "name an agent"}, status: 400,
			typ: "invalid_request_error", code: "invalid", message: "model: is empty (name an agent)", param: "model"},
		{path: "/v1/responses", fail: fault.Unauthorized, status: 401, typ: "invalid_request_error", code: "invalid_api_key"},
		{path: "/v1/responses", off: true, status: 404, typ: "invalid_request_error", code: "no_route", message: "openai"},
	} {
		b := whole(&pair{fake: &fake{deliver: func(context.Context, message.Incoming) (message.Receipt, error) {
			return message.Receipt{}, tt.fail
		}}})
		if tt.off {
			b.Translator = func() Translator { return nil }
		}
		w := httptest.NewRecorder()
		h := as(Handler(b, Options{}), apitoken.Everything)
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", tt.path, strings.NewReader(tt.body)))
		var got struct {
			Error struct {
				Message, Type, Code string
				Param               *string
			}
		}
		err := json.Unmarshal(w.Body.Bytes(), &got)
		e := got.Error
		if err != nil || w.Code != tt.status || e.Type != tt.typ || e.Code != tt.code || !strings.Contains(e.Message, tt.message) ||
			(w.Header().Get("X-Should-Retry") == "false") != tt.dontRepeatIt || !strings.Contains(w.Body.String(), `"param":`) ||
			(e.Param != nil) != (tt.param != "") || e.Param != nil && *e.Param != tt.param {
			t.Errorf("%s %s %v: %d %s, %v", tt.path, tt.body, tt.fail, w.Code, w.Body, err)
		}
	}
}

// A body over the limit is refused by its size.
func TestAForeignBodyIsBounded(t *testing.T) {
	h := as(Handler(whole(&pair{fake: &fake{}}), Options{}), apitoken.Everything)
	status, e, text := call(t, h, "POST", "/v1/chat/completions", `{"x":"`+strings.Repeat("x", maxMessageBody)+`"}`)
	if status != http.StatusRequestEntityTooLarge || e.Code != "too_large" {
		t.Errorf("%d %.200s", status, text)
	}
}

// Over another protocol, too, nobody names a path of this machine, or a file of an agent that its
// token does not reach.
func TestForeignFiles(t *testing.T) {
	limited := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Approve}, Agents: []string{"1"}}
	for _, f := range []File{{Path: "/etc/passwd"}, {ID: "1-2"}, {}, {Path: "a", Name: "b"}, {Data: []byte("x")}} {
		_, err := Line{caller: Caller{Rights: limited}}.Keep([]File{f})
		if invalid := (*Invalid)(nil); !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Field, "files[0]") {
			t.Errorf("%+v is kept: %v", f, err)
		}
	}
}
