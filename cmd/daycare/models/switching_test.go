package models

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/config"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

func TestChooseModel(t *testing.T) {
	warm := 0.3
	m, err := New(t.Context(), &config.Config{Providers: []config.Provider{
		{ID: "claude", Type: "anthropic", Model: "claude-sonnet-5-5"},
		{ID: "gpt", Type: "openai", Model: "gpt-6.1-sol"},
		{ID: "local", Type: "openai", BaseURL: "http://127.0.0.1:1/v1", Model: "qwen3"},
	}}, workspace.At(""), func(config.Provider) func() string { return func() string { return "" } }, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct{ typed, provider, model, wrong string }{
		{"gpt", "gpt", "", ""},
		{"local", "local", "", ""},
		{"default", "", "", ""},
		{"claude-opus-5-5", "claude", "claude-opus-5-5", ""},
		{"anthropic/claude-opus-5.5", "claude", "anthropic/claude-opus-5.5", ""},
		{"gpt-6-astra", "gpt", "gpt-6-astra", ""},
		{"qwen3", "local", "qwen3", ""},
		{"local/any thing", "local", "any thing", ""},
		{"gpt/gpt-6-luna", "gpt", "gpt-6-luna", ""},
		{"claude-opus-5-6", "", "", "similar names: claude-opus-5"},
		{"gpt/gpt-6-lunar", "", "", "similar names: gpt-6-luna"},
		{"gemini-3.8-flash", "", "", "name the provider that serves it: PROVIDER/gemini-3.8-flash, with PROVIDER one of claude, " +
			"gpt, local"},
		{"zzzzzzzz", "", "", `unknown model "zzzzzzzz"`},
	} {
		got, err := m.Choose(record.Model{ID: "old", Model: "old", Temperature: &warm, Thinking: "low"}, tt.typed)
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%q: %v, want %q", tt.typed, err, tt.wrong)
		case tt.wrong == "":
			want := record.Model{ID: tt.provider, Model: tt.model, Temperature: &warm, Thinking: "low"}
			if err != nil || !cmp.Equal(want, got) {
				t.Errorf("%q: %+v, %v; want %+v", tt.typed, got, err, want)
			}
		}
	}

	if _, err := m.CheckChoice(record.Model{ID: "gone"}); err == nil || !strings.Contains(err.Error(), "configured: claude, gpt, local") {
		t.Errorf("a provider that the settings do not have: %v", err)
	}
}
