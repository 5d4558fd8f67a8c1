package openai

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/agents/providers"
	"daycare/agents/providers/providertest"
)

// with makes providers for the suite.
var with = providertest.Makes(New, func(baseURL string, client *http.Client) Options {
	return Options{BaseURL: baseURL + "/v1", Model: "gpt-5.4-mini", HTTP: client,
		Key: func() string { return providertest.Key }, Idle: providertest.Idle}
})

func errorBody(kind, message string) string {
	m := string(providers.AppendString(nil, message))
	return fmt.Sprintf(`{"error":{"message":%s,"type":%q,"param":null,"code":null}}`, m, kind)
}

func TestContract(t *testing.T) {
	providertest.Run(t, with(nil), providertest.Wire{
		Error:       errorBody,
		StreamError: func(kind, message string) string { return "data: " + errorBody(kind, message) + "\n\n" },
		Ended: func(prefix string) bool {
			return strings.Contains(prefix, `"finish_reason":"stop"`) || strings.Contains(prefix, `"finish_reason":"tool_calls"`)
		},
		Overflow: []providertest.Reply{
			{Status: 400, Body: `{"error":{"message":"This model's maximum context length is 128000 tokens.",` +
				`"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
			{Status: 400, Body: `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the ` +
				`context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`},
			{Status: 400, Body: `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens ` +
				`allowed (1048576).","status":"INVALID_ARGUMENT"}}]`},
			{Status: 400, Body: `{"object":"error","message":"This model's maximum context length is 4096 tokens.",` +
				`"type":"BadRequestError","param":null,"code":400}`},
			{Status: 413, Body: `{"error":{"message":"Please reduce the length of the messages or completion.",` +
				`"type":"invalid_request_error"}}`},
			{Status: 429, Body: `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested ` +
				`41000.","type":"tokens","code":"rate_limit_exceeded"}}`},
		},
		NoCredit: []providertest.Reply{
			{Status: 429, Body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.",` +
				`"type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`},
			{Status: 402, Body: `{"error":{"message":"Insufficient credits","code":402}}`},
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
			o.BaseURL += "/chat/completions"
			o.Headers = map[string]string{"X-Title": "daycare"}
			o.Options = map[string]any{"provider": map[string]any{"order": []string{"a"}}, "max_completion_tokens": 5,
				"stream_options": nil}
		}, Edit: func(r *providers.Request) { r.MaxTokens = 7 }},
		{Name: "option-limit.json", Change: func(o *Options) { o.Options = map[string]any{"max_completion_tokens": 5} },
			Edit: func(*providers.Request) {}},
	})
	own := func(change func(*Options)) providertest.New { // what is sent to api.openai.com
		return func(t testing.TB, baseURL string, client *http.Client) providers.Provider {
			p := with(change)(t, baseURL, client).(*Provider)
			p.Own, p.limit = true, "max_completion_tokens"
			return p
		}
	}
	providertest.GoldenRequests(t, Wire, own, []providertest.Case[Options]{
		{Name: "own.json", Change: func(o *Options) { o.MaxTokens = 1000 }, Edit: func(r *providers.Request) {}},
	})
}

func TestHosts(t *testing.T) {
	for base, want := range map[string]struct {
		url, limit  string
		own, gemini bool
	}{
		"":                             {"https://api.openai.com/v1/chat/completions", "max_completion_tokens", true, false},
		"http://localhost:11434/v1/":   {"http://localhost:11434/v1/chat/completions", "max_tokens", false, false},
		"https://openrouter.ai/api/v1": {"https://openrouter.ai/api/v1/chat/completions", "max_tokens", false, false},
		"https://generativelanguage.googleapis.com/v1beta/openai/": {
			"https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", "max_tokens", false, true},
	} {
		p, err := New(Options{BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		if p.url() != want.url || p.limit != want.limit || p.Own != want.own || p.gemini != want.gemini {
			t.Errorf("New(%q): url %s, limit %s, own %v, gemini %v; want %+v", base, p.url(), p.limit, p.Own, p.gemini, want)
		}
	}
}

// Gemini wants the signature of a call back, and a word for calls it did not make.
func TestThoughtSignature(t *testing.T) {
	p, err := New(Options{ID: "g", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai"})
	if err != nil {
		t.Fatal(err)
	}
	call := providers.Call{ID: "c", Name: "n"}
	for _, tt := range []struct {
		reasoning providers.Reasoning
		want      string
	}{
		{providers.Reasoning{Signature: "google:0:abc=", Provider: "g"}, "abc="},
		{providers.Reasoning{Signature: "google:0:abc=", Provider: "other"}, "skip_thought_signature_validator"},
	} {
		m := &providers.Message{Role: providers.Assistant, Parts: []providers.Part{tt.reasoning, call, call}}
		got := string(p.encode(m, "gemini-3.8-flash"))
		one := `{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}`
		want := `{"role":"assistant","content":null,"tool_calls":[` + one +
			`,"extra_content":{"google":{"thought_signature":"` + tt.want + `"}}},` + one + `}]}`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Some servers answer in one piece although a stream was asked for.
func TestWholeAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"x","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi.",`+
			`"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
	}))
	defer server.Close()
	got := providertest.Collect(t, t.Context(), with(nil)(t, server.URL, server.Client()), providertest.Hello())
	want := []providers.Event{
		providers.ContentDelta{Text: "Hi."},
		providers.ToolUseStart{ID: "c1", Name: "read"},
		providers.ToolUseDelta{ID: "c1", Arguments: "{}"},
		providers.ToolUseStop{ID: "c1", Arguments: "{}"},
		providers.Complete{Finish: providers.ToolUse, Usage: providers.Usage{Input: 5, Output: 2}, Model: "m", Asked: "gpt-5.4-mini"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(providers.Complete{}, "Sent")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Options{Options: map[string]any{"messages": 1}}); err == nil {
		t.Error("an option that replaces the conversation was accepted")
	}
	p, err := New(Options{Model: "m"})
	providertest.NoKey(t, p, err)
}

func TestAimock(t *testing.T) { providertest.Aimock(t, with(nil), "/v1") }

func FuzzStream(f *testing.F) { providertest.Fuzz(f, with(nil)) }

func BenchmarkBody(b *testing.B) {
	providertest.BenchmarkBody(b, func(req *providers.Request) *providers.Body {
		return bench.body(req)
	})
}

var bench, _ = New(Options{Model: "gpt-5.4-mini"})
