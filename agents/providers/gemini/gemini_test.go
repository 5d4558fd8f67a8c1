package gemini

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/agents/providers"
	"daycare/agents/providers/providertest"
)

// with makes providers for the suite.
var with = providertest.Makes(New, func(baseURL string, client *http.Client) Options {
	return Options{BaseURL: baseURL, Model: "gemini-3.8-flash", HTTP: client,
		Key: func() string { return providertest.Key }, Idle: providertest.Idle}
})

// kinds are the suite's kinds of errors in Google's words.
var kinds = map[string]struct {
	code   int
	status string
}{
	"rate_limit_error": {429, "RESOURCE_EXHAUSTED"}, "overloaded_error": {503, "UNAVAILABLE"},
	"api_error": {500, "INTERNAL"}, "server_error": {500, "INTERNAL"}, "authentication_error": {401, "UNAUTHENTICATED"},
	"permission_error": {403, "PERMISSION_DENIED"}, "invalid_request_error": {400, "INVALID_ARGUMENT"},
}

func errorBody(kind, message string) string {
	k := kinds[kind]
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%q}}`, k.code, providers.AppendString(nil, message), k.status)
}

func TestContract(t *testing.T) {
	providertest.Run(t, with(nil), providertest.Wire{
		Error:       errorBody,
		StreamError: func(kind, message string) string { return "data: " + errorBody(kind, message) + "\n\n" },
		Ended:       func(prefix string) bool { return strings.Contains(prefix, `"finishReason":"STOP"`) },
		Overflow: []providertest.Reply{
			{Status: 400, Body: errorBody("invalid_request_error",
				"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")},
			{Status: 413, Body: "<html><title>413 Payload Too Large</title></html>"},
		},
		NoCredit: []providertest.Reply{
			{Status: 402, Body: errorBody("permission_error", "Your prepayment credits are depleted.")},
			{Status: 400, Body: errorBody("invalid_request_error", "API key not valid. Please pass a valid API key.")},
			{Status: 403, Body: errorBody("permission_error", "Your project has been denied access.")},
		},
	})
}

func TestRequests(t *testing.T) {
	hot := 0.7
	providertest.GoldenRequests(t, Wire, with, []providertest.Case[Options]{
		{Name: "all.json"},
		{Name: "hello.json", Edit: func(*providers.Request) {}},
		{Name: "thinking.json", Edit: func(r *providers.Request) { r.Temperature, r.MaxTokens, r.Thinking = &hot, 99, "low" }},
		{Name: "budget.json", Edit: func(r *providers.Request) { r.Model, r.Thinking = "models/gemini-2.5-pro", "high" }},
		{Name: "options.json", Change: func(o *Options) {
			o.BaseURL += "/v1/"
			o.MaxTokens = 10
			o.Options = map[string]any{"safetySettings": []any{map[string]any{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}},
				"generationConfig": map[string]any{"topK": 3}}
		}, Edit: func(*providers.Request) {}},
	})
}

// What the model signed goes back to where it stood; a call of another model gets
// the word for that, but for models that ask for none.
func TestSignatures(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `data: {"candidates":[{"content":{"parts":[{"text":"Both.","thoughtSignature":"T"},`+
			`{"functionCall":{"name":"n","args":{"a":1},"id":"x"},"thoughtSignature":"A"},{"functionCall":{"name":"n","id":"y"}}]},`+
			`"finishReason":"STOP"}]}`+"\n\n")
	}))
	defer server.Close()
	p := with(nil)(t, server.URL, server.Client()).(*Provider)
	answer, err := (&providers.Caller{Chain: []providers.Provider{p}}).Call(t.Context(), providertest.Hello(), nil)
	if err != nil {
		t.Fatal(err)
	}

	message := func(provider, model string) *providers.Message {
		m := &providers.Message{Role: providers.Assistant}
		for _, r := range answer.Thinking {
			m.Parts = append(m.Parts, providers.Reasoning{Text: r.Text, Signature: r.Signature, Provider: provider, Model: model})
		}
		m.Parts = append(m.Parts, providers.Text{Text: answer.Text})
		for i, c := range answer.Calls {
			m.Parts = append(m.Parts, providers.Call{ID: fmt.Sprint("own", i), Name: c.Name, Arguments: c.Arguments})
		}

		return m
	}
	calls := func(text, first string) string {
		return `{"role":"model","parts":[{"text":"Both."` + text + `},{"functionCall":{"id":"own0","name":"n","args":{"a":1}}` + first +
			`},{"functionCall":{"id":"own1","name":"n","args":{}}}]}`
	}
	for _, tt := range []struct {
		name, provider, model string // that made it
		asked                 string
		want                  string
	}{
		{"own", Wire, "gemini-3.8-flash", "gemini-3.8-flash", calls(`,"thoughtSignature":"T"`, `,"thoughtSignature":"A"`)},
		{"another model's", Wire, "gemini-3.5-pro", "gemini-3.8-flash",
			calls("", `,"thoughtSignature":"skip_thought_signature_validator"`)},
		{"another's", "other", "gemini-3.8-flash", "gemini-3.8-flash", calls("", `,"thoughtSignature":"skip_thought_signature_validator"`)},
		{"another's, generation 2", "other", "gpt-6.1-sol", "gemini-2.5-flash", calls("", "")},
	} {
		if diff := cmp.Diff(tt.want, string(p.encode(message(tt.provider, tt.model), tt.asked))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A server that does not stream sends a list of all responses.
func TestWholeAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `[{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]},{"candidates":[{"content":{"parts":[{"text":"."}]},`+
			`"finishReason":"STOP"}],`+
			`"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2},"modelVersion":"m"}]`)
	}))
	defer server.Close()
	got := providertest.Collect(t, t.Context(), with(nil)(t, server.URL, server.Client()), providertest.Hello())
	want := []providers.Event{
		providers.ContentDelta{Text: "Hi"}, providers.ContentDelta{Text: "."},
		providers.Complete{Finish: providers.EndTurn, Usage: providers.Usage{Input: 5, Output: 2}, Model: "m", Asked: "gemini-3.8-flash"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(providers.Complete{}, "Sent")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The service says in the body how long to wait, not in a header.
func TestRetryDelay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[`+
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo",`+
			`"retryDelay":"34.5s"}]}}`)
	}))
	defer server.Close()
	events := providertest.Collect(t, t.Context(), with(nil)(t, server.URL, server.Client()), providertest.Hello())
	f := providers.Classify("", events[len(events)-1].(providers.Error).Err)
	if f.Kind != providers.Busy || f.RetryAfter != 34500*time.Millisecond {
		t.Errorf("failure %+v, want busy, to be tried again after 34.5 s", f)
	}
}

func TestURL(t *testing.T) {
	for base, want := range map[string]string{
		"":                            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
		"https://gate.example/g/":     "https://gate.example/g/v1beta/models/m:streamGenerateContent?alt=sse",
		"https://gate.example/v1beta": "https://gate.example/v1beta/models/m:streamGenerateContent?alt=sse",
		"https://gate.example/v1":     "https://gate.example/v1/models/m:streamGenerateContent?alt=sse",
	} {
		p, err := New(Options{BaseURL: base, Model: "models/m"})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.url(providertest.Hello()); got != want {
			t.Errorf("base %q: %s, want %s", base, got, want)
		}
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Options{Options: map[string]any{"contents": 1}}); err == nil {
		t.Error("an option that replaces the conversation was accepted")
	}
	p, err := New(Options{Model: "m"})
	providertest.NoKey(t, p, err)
}

func TestAimock(t *testing.T) { providertest.Aimock(t, with(nil), "") }

func FuzzStream(f *testing.F) { providertest.Fuzz(f, with(nil)) }

func BenchmarkBody(b *testing.B) {
	providertest.BenchmarkBody(b, func(req *providers.Request) *providers.Body {
		return bench.body(req)
	})
}

var bench, _ = New(Options{Model: "gemini-3.8-flash"})
