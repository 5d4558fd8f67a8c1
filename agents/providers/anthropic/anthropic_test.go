package anthropic

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"daycare/agents/providers"
	"daycare/agents/providers/providertest"
)

// with makes providers for the suite.
var with = providertest.Makes(New, func(baseURL string, client *http.Client) Options {
	return Options{BaseURL: baseURL, Model: "claude-sonnet-4-6", HTTP: client,
		Key: func() string { return providertest.Key }, Idle: providertest.Idle}
})

func errorBody(kind, message string) string {
	m := string(providers.AppendString(nil, message))
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_1"}`, kind, m)
}

func unmark(body []byte) []byte { return bytes.ReplaceAll(body, []byte(mark), nil) }

func TestContract(t *testing.T) {
	providertest.Run(t, with(nil), providertest.Wire{
		Error:       errorBody,
		StreamError: func(kind, message string) string { return "event: error\ndata: " + errorBody(kind, message) + "\n\n" },
		Ended:       func(prefix string) bool { return strings.Contains(prefix, `{"type":"message_stop"}`) },
		Overflow: []providertest.Reply{
			{Status: 400, Body: errorBody("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")},
			{Status: 400, Body: errorBody("invalid_request_error",
				"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000")},
			{Status: 413, Body: errorBody("request_too_large", "Request exceeds the maximum size")},
			{Status: 413, Body: "<html><title>413 Payload Too Large</title></html>"},
		},
		NoCredit: []providertest.Reply{
			{Status: 400, Body: errorBody("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")},
			{Status: 402, Body: errorBody("billing_error", "pay")},
		},
		Unmark: unmark,
	})
}

func TestRequests(t *testing.T) {
	hot := 0.7
	providertest.GoldenRequests(t, Wire, with, []providertest.Case[Options]{
		{Name: "all.json"},
		{Name: "temperature.json", Edit: func(r *providers.Request) { r.Temperature, r.MaxTokens, r.Model = &hot, 99, "claude-haiku-4-5" }},
		{Name: "adaptive.json", Edit: func(r *providers.Request) { r.Temperature, r.Thinking = &hot, "medium" }},
		{Name: "budget.json", Change: func(o *Options) { o.Model = "claude-sonnet-4-5-20250929" },
			Edit: func(r *providers.Request) { r.Thinking = "high" }},
		{Name: "bound.json", Change: func(o *Options) {
			o.Model = "claude-sonnet-5-5"
			o.Headers = map[string]string{"anthropic-beta": "x-1"}
		}, Edit: func(r *providers.Request) { r.Temperature = &hot }},
		{Name: "bound-thinking.json", Change: func(o *Options) { o.Model = "claude-opus-5-5" },
			Edit: func(r *providers.Request) { r.Thinking = "high" }},
		{Name: "options.json", Change: func(o *Options) {
			o.BaseURL += "/v1/"
			o.Headers = map[string]string{"anthropic-version": "2026-10-21", "anthropic-beta": "x-1"}
			o.Options = map[string]any{"metadata": map[string]any{"user_id": "u"}, "max_tokens": 5, "temperature": nil, "top_k": 3}
		}, Edit: func(r *providers.Request) { r.Temperature = &hot }},
	})
}

func TestMarkersMove(t *testing.T) {
	full := providertest.Conversation(Wire)
	for n := 1; n <= len(full.Messages); n++ {
		req := *full
		req.Messages = full.Messages[:n]
		body := providertest.Capture(t, with(nil), &req).Body
		if got := bytes.Count(body, []byte(mark)); got > 4 {
			t.Errorf("%d messages: %d cache markers, the API takes 4", n, got)
		}

		for i := range n {
			got := strings.Contains(gjson.GetBytes(body, fmt.Sprintf("messages.%d", i)).Raw, mark)
			want := req.Messages[i].Role != providers.Assistant && (i == n-1 || i == previousLast(req.Messages))
			if got != want {
				t.Errorf("%d messages: marker at %d is %v, want %v", n, i, got, want)
			}
		}
	}
}

func TestBudgetOnly(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-3-7-sonnet-20250219": true, "claude-opus-4-20250514": true, "claude-opus-4-1": true,
		"claude-sonnet-4-0": true, "claude-haiku-4-5-20251001": true, "claude-opus-4-5": true,
		"claude-opus-4-6": false, "claude-sonnet-4-6": false, "claude-opus-4-8": false,
		"claude-sonnet-5": false, "claude-opus-5-5": false, "claude-opus-4-10": false,
	} {
		if got := budgetOnly.MatchString(model); got != want {
			t.Errorf("budgetOnly(%s) = %v, want %v", model, got, want)
		}
	}
}

// The lists are the vendor's, of November 2026: "Sampling parameters" and "Preserved
// thinking" of its documentation.
func TestGenerations(t *testing.T) {
	for model, want := range map[string]struct{ tempered, bound bool }{
		"claude-3-7-sonnet-20250219": {true, false}, "claude-3-haiku": {true, false},
		"claude-sonnet-4-20250514": {true, false}, "claude-opus-4-1": {true, false}, "claude-opus-4": {true, false},
		"claude-haiku-4-5-20251001": {true, false}, "claude-opus-4-6": {true, false}, "anthropic/claude-sonnet-4-6": {true, false},
		"claude-opus-4-7": {false, false}, "claude-opus-4-8": {false, false},
		"claude-opus-5": {false, false}, "claude-sonnet-5-20260501": {false, false},
		"claude-fable-5": {false, false}, "claude-mythos-5": {false, false}, "claude-mythos-preview": {false, false},
		"claude-fable-5-1": {false, true}, "claude-mythos-5-1": {false, true}, "claude-fable-5-2": {false, true},
		"claude-opus-5-5": {false, true}, "claude-sonnet-5-5": {false, true}, "claude-haiku-5-5-20261001": {false, true},
		"claude-opus-6": {false, true}, // not known: as the newest
		"kimi-k3":       {true, false}, // at a compatible service
	} {
		if got := tempered(model); got != want.tempered {
			t.Errorf("tempered(%s) = %v, want %v", model, got, want.tempered)
		}
		if got := bound(model); got != want.bound {
			t.Errorf("bound(%s) = %v, want %v", model, got, want.bound)
		}
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Options{Options: map[string]any{"messages": 1}}); err == nil {
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

var bench, _ = New(Options{Model: "claude-sonnet-4-6"})
