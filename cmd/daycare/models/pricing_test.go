package models

import (
	"errors"
	"testing"

	"daycare/agents/providers"
	"daycare/agents/providers/catalogue"
	"daycare/cmd/daycare/plugins"
	"daycare/engine/config"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

func TestChainPrice(t *testing.T) {
	cost := 7.0
	m := &Chain{Catalogue: Catalogue(&config.Config{Models: []config.Model{
		{ID: "glm-5.3", Provider: "paid-local", Price: config.Price{Input: &cost, Output: &cost}},
	}}, ""), Settings: []config.Provider{
		{ID: "main", Type: "anthropic", Model: "claude-opus-5-5"},
		{ID: "local", Type: "openai", BaseURL: "http://127.0.0.1:8000/v1", Model: "glm-5.3"},
		{ID: "paid-local", Type: "openai", BaseURL: "http://localhost:8000/v1", Model: "glm-5.3"},
		{ID: "far", Type: "openai", BaseURL: "https://models.example/v1", Model: "glm-5.3"},
	}}
	for _, tt := range []struct {
		provider, model string
		want            float64
	}{
		{"main", "claude-opus-5-5", 4}, {"main", "", 4}, {"main", "claude-opus-5-5-20260922", 4},
		{"local", "glm-5.3", 0}, {"paid-local", "glm-5.3", 7}, {"far", "glm-5.3", 1.4}, {"far", "own", 0},
	} {
		if got := m.Price(tt.provider, tt.model, providers.Usage{Input: 1e6}); got != tt.want {
			t.Errorf("a million tokens of %q at %s cost %g, want %g", tt.model, tt.provider, got, tt.want)
		}
	}
}

// An agent that asks for a model that nobody knows gets an error with names near
// to it; at a server of one's own every name may be right.
func TestUnknownModelOfAgent(t *testing.T) {
	m := &Chain{Catalogue: catalogue.New(nil), Settings: []config.Provider{
		{ID: "main", Type: "anthropic"}, {ID: "local", Type: "openai", BaseURL: "http://127.0.0.1:8000/v1"}}}
	for _, p := range m.Settings {
		made, err := plugins.NewProvider(workspace.At(""), p, p.APIKey.Reveal)
		if err != nil {
			t.Fatal(err)
		}
		m.providers = append(m.providers, made)
	}

	var unknown *catalogue.UnknownModel
	_, err := m.Caller(record.Model{Model: "claude-opus-55"}).Call(t.Context(), &providers.Request{}, nil)
	if !errors.As(err, &unknown) || providers.Classify("", err).Retryable() {
		t.Errorf("Call = %v, want an UnknownModel that is not tried again", err)
	}
	if _, ok := m.Caller(record.Model{ID: "local", Model: "anything"}).(*providers.Caller); !ok {
		t.Error("a server of one's own refuses a name")
	}
}
