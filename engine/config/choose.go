package config

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"daycare/engine/lan"
)

// Default models, one a vendor: the middle of its current range, which is fast
// and cheap enough for agents that run all day. As of November 2026; the next
// release changes these four lines, and a setting or `model` in state.json
// overrides them.
const (
	DefaultAnthropicModel  = "claude-sonnet-5-5"
	DefaultOpenAIModel     = "gpt-6.1-sol"
	DefaultOpenRouterModel = "openai/gpt-6.1-sol"
	DefaultGeminiModel     = "gemini-3.8-flash"
)

const (
	// OpenRouterURL and OllamaURL are the base URLs of services that speak the OpenAI
	// format under addresses of their own.
	OpenRouterURL = "https://openrouter.ai/api/v1"
	OllamaURL     = "http://" + ollamaAddr + "/v1"
	ollamaAddr    = "127.0.0.1:11434"
	// ollamaTimeout is what looking for Ollama may add to a start without any
	// settings; on loopback it answers in a few ms or not at all.
	ollamaTimeout = 150 * time.Millisecond
)

// A vendor is a service that a key in the environment is enough for.
type vendor struct {
	id, kind, keyEnv, baseURL, model string
}

// vendors is the order in which keys are looked for.
var vendors = []vendor{
	{"anthropic", "anthropic", "ANTHROPIC_API_KEY", "", DefaultAnthropicModel},
	{"openai", "openai", "OPENAI_API_KEY", "", DefaultOpenAIModel},
	{"openrouter", "openai", "OPENROUTER_API_KEY", OpenRouterURL, DefaultOpenRouterModel},
	{"gemini", "gemini", "GEMINI_API_KEY", "", DefaultGeminiModel},
}

// vendorOf finds the vendor that has a type and base URL; the zero vendor, if none has.
func vendorOf(kind, baseURL string) vendor {
	for _, v := range vendors {
		if v.kind == kind && v.baseURL == baseURL {
			return v
		}
	}

	return vendor{}
}

// KeyEnv returns the environment variable of a provider's key if the settings name none. A vendor's
// usual variable is used only for the vendor itself: its key is not sent elsewhere.
func (p Provider) KeyEnv() string {
	if p.APIKeyEnv != "" {
		return p.APIKeyEnv
	}
	return vendorOf(p.Type, p.BaseURL).keyEnv
}

// onThisMachine reports whether the provider is a server of this machine, which usually has no
// key: one is asked for only if the settings name its variable.
func (p Provider) onThisMachine() bool {
	u, err := url.Parse(p.BaseURL)
	return err == nil && p.APIKeyEnv == "" && lan.Loopback(u.Hostname())
}

// defaultModel is the model if the settings do not name one; "" where there is
// no default.
func (p Provider) defaultModel() string {
	if p.Type == scripted {
		return scripted
	}
	return vendorOf(p.Type, p.BaseURL).model
}

// scripted is type, id and model of the provider that needs nothing.
const scripted = "scripted"

// findSecrets fills in what settings only name.
func (c *Config) findSecrets() {
	for i := range c.Providers {
		p := &c.Providers[i]
		p.APIKey = c.SecretEnv(p.KeyEnv())
		if p.APIKey.IsZero() {
			p.APIKey = c.Secret(p.ID)
		}
	}

	if c.Control.Token.IsZero() {
		c.Control.Token = c.Secret("control")
	}
	c.Cluster.Password = c.Secret("cluster")
}

// A Probe looks for a model server on this machine and returns its first model, and whether there
// is one.
type Probe func(ctx context.Context) (model string, ok bool)

// Choose returns the providers to use, in fallback order, each with Why: those in the settings; if
// there are none, the first vendor with a key in the environment or, by the vendor's id, in
// auth.json; else Ollama, if probe finds it; else the scripted provider, which works offline and
// says so.
func (c *Config) Choose(ctx context.Context, probe Probe) []Provider {
	if len(c.Providers) > 0 {
		return c.Providers
	}
	for _, v := range vendors {
		key, why := c.SecretEnv(v.keyEnv), v.keyEnv+" in the environment"
		if key.IsZero() {
			key, why = c.Secret(v.id), "the secret "+v.id
		}
		if !key.IsZero() {
			return []Provider{{ID: v.id, Type: v.kind, BaseURL: v.baseURL, Model: v.model, APIKeyEnv: v.keyEnv,
				Concurrency: defaultConcurrency, APIKey: key, Why: why}}
		}
	}

	if probe != nil {
		if model, ok := probe(ctx); ok {
			return []Provider{{ID: "ollama", Type: "openai", BaseURL: OllamaURL, Model: model,
				Concurrency: defaultConcurrency, Why: fmt.Sprintf("Ollama answers on %s and has %s", ollamaAddr, model)}}
		}
	}

	return []Provider{{ID: scripted, Type: scripted, Model: scripted, Concurrency: defaultConcurrency,
		Why: "no model is set up: no providers in " + Name + ", no API key in the environment or " + AuthName +
			", no Ollama on " + ollamaAddr}}
}

// Ollama is the Probe of the daemon: it looks for Ollama on this machine.
func Ollama(ctx context.Context) (model string, ok bool) { return probeOllama(ctx, ollamaAddr) }

func probeOllama(ctx context.Context, addr string) (model string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, ollamaTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/api/tags", nil)
	if err != nil {
		return "", false
	}

	// Its own transport: no proxy for loopback, and nothing left open after.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	var tags struct {
		Models []struct{ Name string }
	}
	err = json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 1<<20)).Decode(&tags)
	if err != nil || resp.StatusCode != http.StatusOK || len(tags.Models) == 0 {
		return "", false
	}

	return tags.Models[0].Name, true
}
