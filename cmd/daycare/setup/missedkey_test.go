package setup

import (
	"strings"
	"testing"

	"daycare/engine/config"
	"daycare/engine/event"
)

// A daemon keeps the environment that it was started with: a key that a shell was given
// later is named with what to do, and nothing is said where the daemon lacks nothing.
func TestMissedKeyIsNamed(t *testing.T) {
	key := config.NewSecret("sk-secret")
	shell := []config.Provider{{ID: "anthropic", Type: "anthropic", APIKey: key, Why: "ANTHROPIC_API_KEY in the environment"}}
	claude := []config.Provider{{ID: "claude", Type: "anthropic", APIKeyEnv: "CLAUDE_KEY", APIKey: key, Why: "settings.yaml:2"}}
	ollama := []config.Provider{{ID: "ollama", Type: "openai", Why: "Ollama answers on 127.0.0.1:11434 and has qwen3"}}
	offline := []config.Provider{{ID: "scripted", Type: "scripted"}}
	nothing := event.Service{ID: "scripted", Type: "scripted"}
	for _, tt := range []struct {
		name     string
		mine     []config.Provider
		theirs   event.Service
		what, do string // "": nothing is said
	}{
		{"a key set after the start", shell, nothing, "it would use anthropic (ANTHROPIC_API_KEY in the environment)",
			"daycare auth set anthropic"},
		{"Ollama begun after the start", ollama, nothing, "Ollama answers", "daycare restart"},
		{"a provider without its key", claude, event.Service{ID: "claude", Type: "anthropic"},
			"no key for claude; this shell has one (CLAUDE_KEY)",
			"daycare auth set claude"},
		{"both have it", claude, event.Service{ID: "claude", Type: "anthropic", Key: true}, "", ""},
		{"the daemon has more", offline, event.Service{ID: "anthropic", Type: "anthropic", Key: true}, "", ""},
		{"nobody has any", offline, nothing, "", ""},
		{"offline by choice", claude, event.Service{ID: "offline", Type: "scripted"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			what, do := missed(tt.mine, []event.Service{tt.theirs})
			if (what != "") != (tt.what != "") || !strings.Contains(what, tt.what) || !strings.Contains(do, tt.do) {
				t.Errorf("got %q, %q; want %q, %q", what, do, tt.what, tt.do)
			}
			if strings.Contains(what+do, "sk-secret") {
				t.Error("the key itself is shown")
			}
		})
	}
}
