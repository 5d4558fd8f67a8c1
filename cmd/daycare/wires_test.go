package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/cmd/daycare/plugins"
	"daycare/engine/config"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

func TestWireOfOpenAI(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		baseURL string
		wire    any
		want    string
	}{
		{"", nil, "responses"},
		{"https://api.openai.com/v1", nil, "responses"},
		{"", "chat", "openai"},
		{"https://openrouter.ai/api/v1", nil, "openai"},
		{"http://127.0.0.1:8080/v1", "responses", "responses"},
		{"", "messages", ""},
		{"", 3, ""},
	} {
		p := config.Provider{ID: "p", Type: "openai", Model: "m", BaseURL: tt.baseURL, Options: config.Options{"wire": tt.wire, "seed": 1}}
		made, err := plugins.NewProvider(workspace.At(""), p, func() string { return "k" })
		switch {
		case tt.want == "" && err == nil:
			t.Errorf("wire %v was accepted", tt.wire)
		case tt.want == "" && !strings.Contains(err.Error(), "write chat"):
			t.Errorf("wire %v: %v", tt.wire, err)
		case tt.want != "" && (err != nil || made.Wire() != tt.want):
			t.Errorf("%q with wire %v: %v, %v; want %s", tt.baseURL, tt.wire, made, err, tt.want)
		}

		if p.Options["wire"] != tt.wire {
			t.Error("the settings were changed")
		}
	}
}

// platforms is a server that speaks all four formats as their vendors document
// them, checks every request with their rules, and answers with thinking that only
// the same model may get back, and with calls as long as calls are left.
type platforms struct {
	t     *testing.T
	mu    sync.Mutex
	calls int // calls that the next answer makes
	n     int // calls so far
	seen  map[string]int
}

func (s *platforms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := io.ReadAll(r.Body)
	if err != nil || !gjson.ValidBytes(data) {
		s.t.Errorf("%s: unreadable request: %v", r.URL.Path, err)
	}

	body := gjson.ParseBytes(data)
	w.Header().Set("Content-Type", "text/event-stream")
	var wrong []string
	var answer string
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		wrong, answer = anthropicRules(r.Header, body), s.anthropic(body.Get("model").String())
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		wrong, answer = chatRules(r.Header, body), s.chat(body.Get("model").String())
	case strings.HasSuffix(r.URL.Path, "/responses"):
		wrong, answer = responsesRules(r.Header, body), s.responses(body.Get("model").String())
	case strings.Contains(r.URL.Path, ":streamGenerateContent"):
		_, model, _ := strings.Cut(r.URL.Path, "/models/")
		model, _, _ = strings.Cut(model, ":")
		wrong, answer = geminiRules(r.URL.Path, body), s.gemini(model)
	default:
		wrong = []string{"no such address"}
	}

	if len(wrong) > 0 {
		s.t.Errorf("%s refuses the request: %s\n%s", r.URL.Path, strings.Join(wrong, "; "), data)
		http.Error(w, `{"error":{"message":"invalid","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	s.seen[strings.TrimPrefix(r.URL.Path, "/v1")]++
	io.WriteString(w, answer)
}

// next gives the calls of an answer an id each. Two platforms give the same ids
// anew in every answer, as some do.
func (s *platforms) next(id string) []string {
	var ids []string
	for range s.calls {
		ids = append(ids, fmt.Sprintf(id, len(ids)))
		s.n++
	}
	return ids
}

func frames(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

func (s *platforms) anthropic(model string) string {
	out := []string{
		fmt.Sprintf(`{"type":"message_start","message":{"model":"%s-20261001","usage":{"input_tokens":9,"output_tokens":1}}}`, model),
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Claude thinks."}}`,
		fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":%q}}`, signed(model)),
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Claude speaks."}}`,
		`{"type":"content_block_stop","index":1}`,
	}
	stop := "end_turn"
	for i, id := range s.next("toolu_%d") {
		stop = "tool_use"
		out = append(out, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,`+
			`"name":"read","input":{}}}`, i+2, id),
			fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta",`+
				`"partial_json":"{\"path\":\"a\"}"}}`, i+2),
			fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i+2))
	}

	return frames(append(out, fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":7}}`, stop),
		`{"type":"message_stop"}`)...)
}

func (s *platforms) chat(model string) string {
	out := []string{fmt.Sprintf(`{"model":%q,"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"It thinks.",`+
		`"content":"It speaks."}}]}`, model)}
	stop := "stop"
	for i, id := range s.next("call_%d") {
		stop = "tool_calls"
		out = append(out, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"type":"function",`+
			`"function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]}}]}`, i, id))
	}
	return frames(append(out, fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, stop), "[DONE]")...)
}

func (s *platforms) responses(model string) string {
	out := []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"GPT thinks."}`,
		fmt.Sprintf(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1",`+
			`"summary":[{"type":"summary_text","text":"GPT thinks."}],"encrypted_content":%q}}`, signed(model)),
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"GPT speaks."}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant",` +
			`"phase":"commentary","content":[{"type":"output_text","text":"GPT speaks."}]}}`,
	}
	for i, id := range s.next("call_%d") {
		item := fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":%q,"name":"read","arguments":"{\"path\":\"a\"}"}`, i, id)
		out = append(out, fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i+2, item))
	}

	return frames(append(out, fmt.Sprintf(`{"type":"response.completed","response":{"object":"response","status":"completed",`+
		`"model":"%s-2026-10-02","usage":{"input_tokens":9,"output_tokens":7}}}`, model))...)
}

func (s *platforms) gemini(model string) string {
	parts := []string{`{"thought":true,"text":"Gemini thinks."}`, `{"text":"Gemini speaks."}`}
	for i, id := range s.next("fc_%d") {
		signature := ""
		if i == 0 {
			signature = fmt.Sprintf(`,"thoughtSignature":%q`, signed(model))
		}
		parts = append(parts, fmt.Sprintf(`{"functionCall":{"id":%q,"name":"read","args":{"path":"a"}}%s}`, id, signature))
	}

	return frames(fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":"STOP"}],"modelVersion":%q}`,
		strings.Join(parts, ","), model))
}

// One conversation goes through all formats and several models of each, changing
// between turns and between the rounds of a turn, with thinking, calls, pictures
// and a user who interrupts: every request keeps the rules of its platform.
func TestConversationThatChangesProvider(t *testing.T) {
	t.Parallel()
	service := &platforms{t: t, seen: map[string]int{}}
	server := httptest.NewServer(service)
	defer server.Close()
	var chain []providers.Provider
	for _, p := range []config.Provider{
		{ID: "claude", Type: "anthropic", BaseURL: server.URL, Model: "claude-opus-5-5"},
		{ID: "local", Type: "openai", BaseURL: server.URL + "/v1", Model: "qwen3"},
		{ID: "gpt", Type: "openai", BaseURL: server.URL + "/v1", Model: "gpt-6.1-sol", Options: config.Options{"wire": "responses"}},
		{ID: "google", Type: "gemini", BaseURL: server.URL, Model: "gemini-3.8-flash"},
	} {
		made, err := plugins.NewProvider(workspace.At(""), p, func() string { return "key" })
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, made)
	}

	others := []map[string]string{
		{},
		{"claude": "claude-sonnet-5-5", "gpt": "gpt-6-astra", "google": "gemini-3.5-pro"},
		{"claude": "claude-sonnet-4-5", "gpt": "gpt-6-sol", "google": "gemini-2.5-flash"},
	}

	talk := &talking{t: t, builder: prompt.NewBuilder(prompt.Sources{File: onePixel})}
	talk.ctx.Session = "s1"
	talk.add(&record.User{Item: "i0", Text: "Read the files."})
	for round := range 96 {
		// Every provider after every other one, with its model and with another.
		p := chain[(round+round/4)%len(chain)]
		model := others[round/16%3][p.ID()]
		service.calls = []int{1, 0, 2, 1, 0, 3, 2}[round%7]
		answer := talk.call(p, model)
		if len(answer.Calls) == 0 {
			talk.add(&record.User{Item: fmt.Sprint("i", round+1), Text: "And now?"})
		} else if round%3 == 0 { // a user speaks while the calls run
			talk.add(&record.User{Item: fmt.Sprint("i", round+1), Text: "Hurry."})
		}
	}

	for path, n := range service.seen {
		if n < 8 {
			t.Errorf("%s got %d requests only", path, n)
		}
	}
	if len(service.seen) != 6 || service.n < 40 { // three models of Gemini have an address each
		t.Errorf("%d calls at %v", service.n, service.seen)
	}
}

// talking is a conversation as an agent keeps it: what a model answers becomes
// records, which are written and read again, and the next request is made of them.
type talking struct {
	t       *testing.T
	ctx     record.Context
	builder *prompt.Builder
	made    int // calls
}

func (k *talking) add(r record.Record) {
	k.t.Helper()
	line := record.Encode(&record.Entry{Seq: int64(len(k.ctx.Entries) + 1), Rec: r})
	e, err := record.Decode(line)
	if err != nil {
		k.t.Fatalf("%s: %v", line, err)
	}
	k.ctx.Entries = append(k.ctx.Entries, e)
}

// call asks p and takes what it answers into the conversation, with a result for
// every call.
func (k *talking) call(p providers.Provider, model string) *providers.Response {
	k.t.Helper()
	req, err := k.builder.Build(&k.ctx, "Be kind.", []providers.Tool{{Name: "read", Description: "Reads a file."}},
		prompt.Options{Model: model, Thinking: "high"})
	if err != nil {
		k.t.Fatal(err)
	}

	r, err := (&providers.Caller{Chain: []providers.Provider{p}}).Call(k.t.Context(), req, nil)
	if err != nil {
		k.t.Fatalf("%s %s: %v", p.ID(), model, err)
	}
	a := &record.Assistant{Turn: "t", Text: r.Text, Finish: record.FinishEndTurn, Provider: r.Provider, Model: r.Model, Asked: r.Asked}
	for _, th := range r.Thinking {
		a.Thinking = append(a.Thinking, record.Thinking{Text: th.Text, Signature: th.Signature})
	}

	for _, c := range r.Calls {
		k.made++
		a.Finish = record.FinishToolUse
		a.ToolCalls = append(a.ToolCalls,
			record.ToolCall{ID: fmt.Sprintf("own%021d", k.made), RemoteID: c.RemoteID, Name: c.Name, Arguments: c.Arguments})
	}

	k.add(a)
	for i, c := range a.ToolCalls {
		output := record.Output{Text: "text of the file"}
		if k.made%4 == 0 {
			output.Blocks = []record.Block{{Type: "image",
				File: &message.File{Name: "a.png", MimeType: "image/png", Path: "a.png", Size: 8}}}
		}
		if status := record.StatusOK; i == 0 || k.made%5 > 0 { // one that the crash of a tool left without a result
			k.add(&record.ToolResult{ToolCallID: c.ID, Name: c.Name, Status: status, Output: output})
		}
	}

	return r
}

// onePixel is a picture as small as one can be.
func onePixel(message.File) ([]byte, error) {
	return base64.StdEncoding.DecodeString(
		"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==")
}
