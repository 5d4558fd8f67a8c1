package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

const (
	ann = "annannannannannannannann"
	ben = "benbenbenbenbenbenbenben"
)

// A house is the engine as the API sees it.
type house struct {
	events *event.Stream

	mu      sync.Mutex
	got     []message.Incoming
	asks    []event.Ask
	outcome event.Outcome
	deltas  []event.Event
	pages   map[int64]event.Page // of a history, by what they are before
	found   string               // the agent of an address
}

// Find is that of a directory.
func (h *house) Find(message.Address) (string, bool) { return h.found, h.found != "" }
func (*house) Home(string) (message.Address, bool)   { return message.Address{}, false }

// unused is what nobody asks for.
type unused interface{ control.Agents }

// agents is the part of the house that is about agents.
type agents struct {
	unused
	*house
}

func (a agents) Agents(context.Context) ([]event.Agent, error) {
	return []event.Agent{{ID: ann, Handle: "0/", Name: "Ann", Type: "permanent"}, {ID: ben, Handle: "1/", Name: "Ben", Type: "user"},
		{ID: "x", Handle: "2/", Name: "night", Type: "cron"}}, nil
}

func (a agents) Resolve(ref string) (string, error) {
	for id, names := range map[string][]string{ann: {ann, "0/", "Ann"}, ben: {ben, "1/", "Ben"}} {
		if slices.Contains(names, ref) {
			return id, nil
		}
	}
	return "", fmt.Errorf("%w: %q", message.ErrUnknownAgent, ref)
}

func (a agents) History(_ context.Context, _ string, before int64, _ int) (event.Page, error) {
	page, ok := a.pages[before]
	if !ok && before > 0 {
		return page, fmt.Errorf("no page before %d", before)
	}
	return page, nil
}

func (a agents) Deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	a.mu.Lock()
	a.got = append(a.got, in)
	a.mu.Unlock()
	id := in.Agent
	if id == "" {
		id = "new"
	}
	for _, e := range a.deltas {
		e.Agent = id
		a.events.Emit(e)
	}
	return message.Receipt{Agent: id, Item: "item1"}, nil
}

func (a agents) Await(_ context.Context, id, item string) (event.Outcome, error) {
	o := a.outcome
	o.Agent, o.Item, o.Turn = id, item, "t"
	return o, nil
}

func (h *house) Asks(context.Context) ([]event.Ask, error)            { return h.asks, nil }
func (h *house) Answered(context.Context, int) ([]event.Ask, error)   { return nil, nil }
func (h *house) Decide(context.Context, string, string, string) error { return nil }

// ask sends one request as a caller with these rights.
func (h *house) ask(t *testing.T, rights apitoken.Rights, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	c, err := New(Options{ID: "openai"}, h)
	if err != nil {
		t.Fatal(err)
	}
	api := control.Handler(control.Backend{Agents: agents{house: h}, Permissions: h, Events: h.events,
		Translator: func() control.Translator { return c }}, control.Options{})
	r := httptest.NewRequestWithContext(control.WithCaller(t.Context(), control.Caller{Name: "token:x", Rights: rights}),
		method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)

	return w
}

var talker = apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}}

func newHouse() *house {
	work := event.Work{Input: 100, CacheRead: 40, Output: 20, Reasoning: 5}
	return &house{events: event.NewStream("boot"),
		outcome: event.Outcome{Reason: "done", Text: "the answer", Finish: "end_turn", Work: work}}
}

const hello = `{"model":"Ann","messages":[{"role":"user","content":"hi"}]}`

// Each request is one message of its caller, with its key, for the agent that it names.
func TestARequestIsAMessage(t *testing.T) {
	h := newHouse()
	w := h.ask(t, talker, "POST", "/v1/chat/completions", hello, "Idempotency-Key", "k1", "X-Daycare-Conversation", "c1")
	var got completion
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	u := got.Usage
	if got.Object != "chat.completion" || got.Model != "Ann" || got.Choices[0].Message.Content != "the answer" ||
		*got.Choices[0].Finish != "stop" || u.Prompt != 100 || u.Completion != 20 || u.Total != 120 ||
		u.PromptDetails.Cached != 40 || u.CompletionDetails.Reasoning != 5 || got.Daycare.Agent != ann {
		t.Errorf("%s", w.Body)
	}
	in := h.got[0]
	want := message.Address{Connector: "openai", ChannelID: "chat:c1", UserID: "token:x"}
	if in.Agent != ann || in.Text != "hi" || in.Dedupe != "openai:token:x/k1" || in.From != want || *in.Route != want ||
		in.Queue != message.Followup || in.Source == "" || !strings.HasPrefix(in.Context.MessageID, idBegin) {
		t.Errorf("%+v", in)
	}

	// The connector's own model has an agent for each conversation of each caller.
	h.ask(t, talker, "POST", "/v1/chat/completions", strings.Replace(hello, `"Ann"`, `"openai","user":"u"`, 1))
	if in := h.got[1]; in.Agent != "" || in.From.ChannelID != "user:u" {
		t.Errorf("%+v", in)
	}
}

// A token for some agents sees them alone, and makes none.
func TestRightsOfATokenApply(t *testing.T) {
	h := newHouse()
	only := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}, Agents: []string{ben}}
	for body, status := range map[string]int{hello: 404, strings.Replace(hello, "Ann", "openai", 1): 404,
		strings.Replace(hello, "Ann", "Ben", 1): 200} {
		if w := h.ask(t, only, "POST", "/v1/chat/completions", body); w.Code != status || strings.Contains(w.Body.String(), ann) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	w := h.ask(t, apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Read}}, "POST", "/v1/chat/completions", hello)
	if w.Code != 403 || !strings.Contains(w.Body.String(), `"type":"invalid_request_error"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// An unknown model is refused; the error lists those that exist.
func TestUnknownModel(t *testing.T) {
	w := newHouse().ask(t, talker, "POST", "/v1/chat/completions", strings.Replace(hello, "Ann", "Amn", 1))
	if got := w.Body.String(); w.Code != 404 || !strings.Contains(got, `"code":"model_not_found"`) ||
		!strings.Contains(got, `did you mean \"Ann\"? there are: openai, Ann, 1/`) {
		t.Errorf("%d %s", w.Code, got)
	}
	for path, status := range map[string]int{"/v1/models/Ann": 200, "/v1/models/1%2F": 200, "/v1/models/openai": 200,
		"/v1/models/no": 404} {
		if w := newHouse().ask(t, talker, "GET", path, ""); w.Code != status {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func deltas(list ...event.Event) []event.Event {
	return append([]event.Event{{Type: event.TurnStarted, Turn: "t", Body: event.Started{Items: []string{"item1"}}}}, list...)
}

func piece(offset int, text string) event.Event {
	return event.Event{Type: event.MessageDelta, Turn: "t", Body: event.Delta{Offset: offset, Text: text}}
}

// streamed is the text of a stream of chat completions, its last reason and what else it had.
func streamed(t *testing.T, w *httptest.ResponseRecorder) (text, reason string, whole string) {
	t.Helper()
	whole = w.Body.String()
	for line := range strings.Lines(whole) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, one := range c.Choices {
			if one.Delta.Content != nil {
				text += *one.Delta.Content
			}
			if one.Finish != nil {
				reason = *one.Finish
			}
		}
	}

	return text, reason, whole
}

// A stream has the text of the turn once, whatever of its pieces was lost.
func TestStreamsAreWhole(t *testing.T) {
	const body = `{"model":"Ann","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
	retry := event.Event{Type: event.Retry, Turn: "t", Body: event.Attempt{Discard: true}}
	for name, tt := range map[string]struct {
		events []event.Event
		want   string
	}{
		"all pieces":     {deltas(piece(0, "the "), piece(4, "answer")), "the answer"},
		"none":           {nil, "the answer"},
		"a gap":          {deltas(piece(0, "the "), piece(6, "swer")), "the answer"},
		"an overlap":     {deltas(piece(0, "the "), piece(2, "e answ")), "the answer"},
		"text and tools": {deltas(piece(0, "I look."), piece(0, "the answer")), "I look.\n\nthe answer"},
		"a new attempt":  {deltas(piece(0, "the ans"), retry, piece(0, "the answer")), "the ans\n\nthe answer"},
	} {
		h := newHouse()
		h.deltas = tt.events
		w := h.ask(t, talker, "POST", "/v1/chat/completions", body)
		text, reason, whole := streamed(t, w)
		if text != tt.want || reason != "stop" || !strings.Contains(whole, `"prompt_tokens":100`) ||
			!strings.HasSuffix(whole, "data: [DONE]\n\n") || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: %q %s\n%s", name, text, reason, whole)
		}
	}
}

// How a turn ends is what its client reads.
func TestEndsOfTurns(t *testing.T) {
	for name, tt := range map[string]struct {
		outcome event.Outcome
		status  int
		finish  string
		words   string
	}{
		"the limit of the model": {event.Outcome{Reason: "done", Finish: "max_tokens", Text: "cut"}, 200, "length", "cut"},
		"rounds":                 {event.Outcome{Reason: "limit", Work: event.Work{Said: "so far"}}, 200, "length", "so far"},
		"an approval": {event.Outcome{Reason: "waiting", Text: "I need to."}, 200, "stop",
			"I need to.\\n\\n[daycare: the agent waits for an approval of @exec:ls (token tok)"},
		"stopped": {event.Outcome{Reason: "canceled"}, 200, "stop", "stopped"},
		"failed":  {event.Outcome{Reason: "error", Text: "no model"}, 500, "", "turn_failed"},
		"dropped": {event.Outcome{Reason: "dropped"}, 409, "", "no_turn"},
	} {
		h := newHouse()
		h.outcome, h.asks = tt.outcome, []event.Ask{{AgentID: ann, Tag: "@exec:ls", Token: "tok"}, {AgentID: ben, Tag: "@web"}}
		w := h.ask(t, talker, "POST", "/v1/chat/completions", hello)
		got := w.Body.String()
		if w.Code != tt.status || !strings.Contains(got, tt.words) || strings.Contains(got, "@web") ||
			tt.finish != "" && !strings.Contains(got, `"finish_reason":"`+tt.finish+`"`) ||
			(w.Header().Get("X-Should-Retry") == "false") != (tt.status != 200) {
			t.Errorf("%s: %d %s", name, w.Code, got)
		}
		w = h.ask(t, talker, "POST", "/v1/responses", `{"model":"Ann","input":"hi","stream":true}`)
		last := map[bool]string{true: "event: response.failed", false: "event: response.completed"}[tt.status != 200]
		if tt.finish == "length" {
			last = "event: response.incomplete"
		}
		if got := w.Body.String(); w.Code != 200 || !strings.Contains(got, last) || !strings.Contains(got, "event: response.created") {
			t.Errorf("%s: %d %s", name, w.Code, got)
		}
	}
}

// The next request of a client that continues from a response is for the same agent.
func TestResponsesGoOn(t *testing.T) {
	h := newHouse()
	var first, second response
	w := h.ask(t, talker, "POST", "/v1/responses", `{"model":"Ann","input":"hi","tools":[],"temperature":1}`)
	if err := json.Unmarshal(w.Body.Bytes(), &first); err != nil || first.Output[0].Content[0].Text != "the answer" ||
		first.Usage.Total != 120 || first.Status != "completed" || w.Header().Get("X-Daycare-Ignored") != "temperature, tools" {
		t.Fatalf("%s, %v", w.Body, err)
	}
	body := `{"model":"openai","input":"and","previous_response_id":"` + first.ID + `"}`
	w = h.ask(t, talker, "POST", "/v1/responses", body)
	if err := json.Unmarshal(w.Body.Bytes(), &second); err != nil || *second.Previous != first.ID || h.got[1].Agent != ann {
		t.Errorf("%s, %v", w.Body, err)
	}
	for _, id := range []string{"x", "resp_none_y", "resp_" + ben + "_y"} {
		body := `{"model":"Ann","input":"and","previous_response_id":"` + id + `"}`
		if w := h.ask(t, talker, "POST", "/v1/responses", body); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", id, w.Code, w.Body)
		}
	}
}

// What an agent has is looked for over the pages of its history, also where the agent is that of an
// address; what cannot be read is an error.
func TestWhatTheAgentHasIsLookedFor(t *testing.T) {
	const next = `{"model":"MODEL","messages":[{"role":"user","content":"I am Ann."},{"role":"assistant","content":"Hello Ann."},` +
		`{"role":"user","content":"Who am I?"}]}`
	id := chatRequest(t, `{"model":"a","messages":[{"role":"user","content":"I am Ann."}]}`).messageID()
	last, older, none := int64(50), int64(7), int64(3)
	raw := func(lines ...string) (list []json.RawMessage) {
		for _, line := range lines {
			list = append(list, json.RawMessage(line))
		}
		return list
	}
	full := map[int64]event.Page{0: {Records: raw(`{"type":"note"}`), Before: &last}, last: {Records: raw(userRecord(id), reply),
		Before: &older}}
	for name, tt := range map[string]struct {
		model, found string
		pages        map[int64]event.Page
		status       int
		text         string
	}{
		"by name":           {"Ann", "", full, 200, "Who am I?"},
		"by its address":    {"openai", ann, full, 200, "Who am I?"},
		"of a new agent":    {"openai", "", full, 200, "> I am Ann."},
		"not in it":         {"Ann", "", map[int64]event.Page{0: {Before: &last}, last: {}}, 200, "> I am Ann."},
		"cannot be read":    {"Ann", "", map[int64]event.Page{0: {Before: &none}}, 500, ""},
		"of a long history": {"Ann", "", map[int64]event.Page{0: {Before: &last}, last: {Before: &last}}, 200, "> I am Ann."},
	} {
		h := newHouse()
		h.pages, h.found = tt.pages, tt.found
		w := h.ask(t, talker, "POST", "/v1/chat/completions", strings.Replace(next, "MODEL", tt.model, 1))
		if w.Code != tt.status || w.Code == 200 && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %s", name, w.Code, w.Header(), w.Body)
			continue
		}
		if tt.status != 200 {
			continue
		}
		if text := h.got[0].Text; !strings.Contains(text, tt.text) || strings.Contains(text, "> I am Ann.") != (tt.text == "> I am Ann.") {
			t.Errorf("%s: the agent is told\n%s", name, text)
		}
	}
}

// What a connector is made from.
func TestNewConnectors(t *testing.T) {
	if _, err := New(Options{}, nil); err == nil {
		t.Error("a connector without an id is made")
	}
}
