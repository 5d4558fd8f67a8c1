package providers

import "testing"

func TestReasoningOf(t *testing.T) {
	for _, tt := range []struct {
		made, asked string
		want        bool
	}{
		{"claude-opus-5-5-20260901", "claude-opus-5-5", true},
		{"claude-opus-5-5", "anthropic/claude-opus-5.5", true},
		{"gpt-6.1-sol-2026-10-02", "gpt-6.1-sol", true},
		{"models/gemini-3.8-flash", "Gemini-3.8-Flash", true},
		{"", "anything", true},
		{"claude-opus-5-5", "claude-opus-5", false},
		{"gpt-5", "gpt-5-mini", false},
		{"qwen3:8b", "qwen3:32b", false},
	} {
		r := Reasoning{Provider: "p", Model: tt.made}
		if got := r.Of("p", tt.asked); got != tt.want {
			t.Errorf("reasoning of %q for %q: %v, want %v", tt.made, tt.asked, got, tt.want)
		}
		if r.Of("other", tt.asked) {
			t.Errorf("reasoning of %q went to another provider", tt.made)
		}
	}
}
