package responses

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
	"daycare/agents/providers/providertest"
)

// with makes providers for the suite.
var with = providertest.Makes(New, func(baseURL string, client *http.Client) Options {
	return Options{BaseURL: baseURL + "/v1", Model: "gpt-6.1-sol", HTTP: client,
		Key: func() string { return providertest.Key }, Idle: providertest.Idle}
})

func errorBody(kind, message string) string {
	m := string(providers.AppendString(nil, message))
	return fmt.Sprintf(`{"error":{"message":%s,"type":%q,"param":null,"code":null}}`, m, kind)
}

func TestContract(t *testing.T) {
	providertest.Run(t, with(nil), providertest.Wire{
		Error: errorBody,
		StreamError: func(kind, message string) string {
			m := string(providers.AppendString(nil, message))
			return fmt.Sprintf("event: error\ndata: "+
				"{\"type\":\"error\",\"sequence_number\":3,\"code\":%q,\"message\":%s,\"param\":null}\n\n", kind, m)
		},
		Ended: func(prefix string) bool { return strings.Contains(prefix, `"type":"response.completed"`) },
		Overflow: []providertest.Reply{
			{Status: 400, Body: `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and ` +
				`try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`},
			{Status: 429, Body: `{"error":{"message":"Request too large for gpt-6.1-sol on tokens per min (TPM): Limit 30000, Requested ` +
				`41000.","type":"tokens","code":"rate_limit_exceeded"}}`},
		},
		NoCredit: []providertest.Reply{
			{Status: 429, Body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.",` +
				`"type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`},
		},
	})
}

func TestRequests(t *testing.T) {
	hot := 0.7
	providertest.GoldenRequests(t, Wire, with, []providertest.Case[Options]{
		{Name: "all.json"},
		{Name: "limits.json", Edit: func(r *providers.Request) {
			r.Temperature, r.MaxTokens, r.Model, r.Thinking = &hot, 99,
				"other", "low"
		}},
		{Name: "options.json", Change: func(o *Options) {
			o.BaseURL += "/responses"
			o.Headers = map[string]string{"X-Title": "daycare"}
			o.Options = map[string]any{"service_tier": "flex", "max_output_tokens": 5, "include": nil,
				"reasoning": map[string]any{"effort": "high"}}
		}, Edit: func(r *providers.Request) { r.Thinking = "low" }},
		{Name: "plain-model.json", Change: func(o *Options) { o.Model, o.MaxTokens = "gpt-4.1-mini", 1000 },
			Edit: func(r *providers.Request) { r.Temperature = &hot }},
	})
}

// OpenAI's models that reason answer 400 to a temperature; without reasoning, and
// at other services, it is sent.
func TestTemperature(t *testing.T) {
	warm := 0.3
	for _, tt := range []struct {
		base, model, thinking string
		want                  bool
	}{
		{"", "gpt-6.1-sol", "", false},
		{"", "gpt-6.1-sol", "high", false},
		{"", "gpt-6-sol", "none", true},
		{"", "o4-mini", "", false},
		{"", "gpt-4.1", "", true},
		{"", "gpt-5-chat-latest", "", true},
		{"http://localhost:1234/v1", "qwen3", "", true},
	} {
		p, err := New(Options{BaseURL: tt.base, Model: tt.model})
		if err != nil {
			t.Fatal(err)
		}
		req := providertest.Hello()
		req.Temperature, req.Thinking = &warm, tt.thinking
		if got := strings.Contains(string(p.body(req).Bytes()), `"temperature":0.3`); got != tt.want {
			t.Errorf("%s %s thinking %q: temperature sent %v, want %v", tt.base, tt.model, tt.thinking, got, tt.want)
		}
	}
}

func TestHosts(t *testing.T) {
	for base, want := range map[string]struct {
		url string
		own bool
	}{
		"":                                    {"https://api.openai.com/v1/responses", true},
		"https://api.openai.com/v1/":          {"https://api.openai.com/v1/responses", true},
		"http://localhost:11434/v1/responses": {"http://localhost:11434/v1/responses", false},
		"https://openrouter.ai/api/v1":        {"https://openrouter.ai/api/v1/responses", false},
	} {
		p, err := New(Options{BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		if p.url() != want.url || p.Own != want.own {
			t.Errorf("New(%q): url %s, own %v; want %+v", base, p.url(), p.Own, want)
		}
	}
}

// What the service encrypted and how it named the phase of its words go back to it
// as they came, and to no other model.
func TestReasoningGoesBack(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"resp_1","object":"response","status":"completed","model":"gpt-6.1-sol-2026-10-02","output":[`+
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Look."}],"encrypted_content":"gAAA=="},`+
			`{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},`+
			`{"type":"function_call","id":"fc_1","call_id":"call_x","name":"read","arguments":"{\"path\":\"a\"}"}],`+
			`"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5}}`)
	}))
	defer server.Close()
	p := with(nil)(t, server.URL, server.Client()).(*Provider)
	answer, err := (&providers.Caller{Chain: []providers.Provider{p}}).Call(t.Context(), providertest.Hello(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Finish != providers.ToolUse || answer.Usage != (providers.Usage{Input: 5, CacheRead: 4, Output: 5}) {
		t.Errorf("finish %s, usage %+v", answer.Finish, answer.Usage)
	}

	m := &providers.Message{Role: providers.Assistant}
	for _, r := range answer.Thinking {
		m.Parts = append(m.Parts, r)
	}
	m.Parts = append(m.Parts, providers.Text{Text: answer.Text},
		providers.Call{ID: "own1", Name: answer.Calls[0].Name, Arguments: answer.Calls[0].Arguments})
	said := func(phase string) string {
		return `{"type":"message","role":"assistant",` + phase + `"content":[{"type":"output_text","text":"I look."}]},` +
			`{"type":"function_call","call_id":"own1","name":"read","arguments":"{\"path\":\"a\"}"}`
	}
	for model, want := range map[string]string{
		"gpt-6.1-sol": `{"type":"reasoning","summary":[{"type":"summary_text","text":"Look."}],"encrypted_content":"gAAA=="},` +
			said(`"phase":"commentary",`),
		"gpt-6-astra": said(""),
	} {
		if diff := cmp.Diff(want, string(p.encode(m, model))); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", model, diff)
		}
	}
}

func TestNew(t *testing.T) {
	for _, name := range []string{"input", "store", "previous_response_id"} {
		if _, err := New(Options{Options: map[string]any{name: 1}}); err == nil {
			t.Errorf("option %s, which replaces the conversation, was accepted", name)
		}
	}
	p, err := New(Options{Model: "m"})
	providertest.NoKey(t, p, err)
}

func TestAimock(t *testing.T) { providertest.Aimock(t, with(nil), "/v1") }

func FuzzStream(f *testing.F) { providertest.Fuzz(f, with(nil)) }

func BenchmarkBody(b *testing.B) {
	providertest.BenchmarkBody(b, func(req *providers.Request) *providers.Body { return bench.body(req) })
}

var bench, _ = New(Options{Model: "gpt-6.1-sol"})
