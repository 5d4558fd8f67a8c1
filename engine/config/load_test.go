package config

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/engine/finding"
)

// dir makes a .daycare directory with files of the given names.
func dir(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func environment(m map[string]string) Env {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

var noEnv = environment(nil)

// same compares configurations without what only Load knows.
var same = cmp.Options{
	cmpopts.IgnoreUnexported(Config{}, Connector{}),
	cmpopts.IgnoreFields(Connector{}, "Raw"),
	cmpopts.EquateComparable(Secret{}),
	cmpopts.EquateEmpty(),
}

func TestNoFileIsDefaults(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no file":       nil,
		"empty":         {Name: ""},
		"comments only": {Name: "# nothing\n"},
		"empty section": {Name: "log:\nagents:\n  toolRounds:\n"},
		"only ---":      {Name: "---\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c, found, err := Load(dir(t, files), noEnv)
			if err != nil || len(found) > 0 {
				t.Fatalf("Load: %v, findings %v", err, found)
			}
			if d := cmp.Diff(Default(), c, same); d != "" {
				t.Errorf("not the defaults (-want +got):\n%s", d)
			}
		})
	}
}

const full = `
providers:
  - id: main
    type: anthropic
    model: Claude.X-5
    headers: { X-Team: Blue, Ünï: ö }
    options: { ReasoningEffort: high, nested: { CamelCase: [1, two] } }
  - {id: local, type: openai, baseURL: "http://127.0.0.1:8080/v1", model: gpt-4.1, apiKeyEnv: LOCAL_KEY, concurrency: 2}
models:
  - id: gpt-4.1
    provider: local
    window: 1_000_000
    price: { input: 0, output: 2.5 }
connectors:
  - id: Team.Chat
    type: telegram
    allow: [5550001, "@ann", 007]
    agentId: ops
    tokenEnv: TG_TOKEN
    hooks: [{ID: x, secretEnv: HOOK}]
agents: { toolRounds: { foreground: 5 }, queue: collect, subagentTTL: 90m }
tools:
  exec: { sandbox: landlock, timeout: 30s }
cron: { timezone: Europe/Berlin }
heartbeat: { every: 0, activeHours: "08:00-24:00" }
permissions: { expiry: 1h, defaults: { web: true, hosts: [example.org], exec: ask } }
budget: { perDay: { usd: 1.5, tokens: 9000000000 } }
control: { listen: "127.0.0.1:7331", token: s3cret-token }
log: { level: debug, format: json, file: "" }
`

func fullWant() *Config {
	zero, out := 0.0, 2.5
	want := Default()
	want.Providers = []Provider{
		{ID: "main", Type: "anthropic", Model: "Claude.X-5", Concurrency: 8, Headers: map[string]string{"X-Team": "Blue", "Ünï": "ö"},
			Options: Options{"ReasoningEffort": "high", "nested": Options{"CamelCase": []any{1, "two"}}}, Why: "settings.yaml:3"},
		{ID: "local", Type: "openai", BaseURL: "http://127.0.0.1:8080/v1", Model: "gpt-4.1", APIKeyEnv: "LOCAL_KEY", Concurrency: 2,
			APIKey: NewSecret("k1"), Why: "settings.yaml:8"},
	}
	want.Models = []Model{{ID: "gpt-4.1", Provider: "local", Window: 1_000_000, Price: Price{Input: &zero, Output: &out}}}
	want.Connectors = []Connector{{ID: "Team.Chat", Type: "telegram", Allow: []string{"5550001", "@ann", "007"}, AgentID: "ops"}}
	want.Agents.ToolRounds.Foreground, want.Agents.Queue, want.Agents.SubagentTTL = 5, "collect", 90*time.Minute
	want.Tools = Tools{Exec: Exec{Sandbox: "landlock", Timeout: 30 * time.Second, ReserveMB: 256}}
	want.Cron.Timezone = "Europe/Berlin"
	want.Heartbeat = Heartbeat{ActiveHours: "08:00-24:00"}
	want.Permissions = Permissions{Expiry: time.Hour, Defaults: Defaults{Web: true, Hosts: []string{"example.org"}, Exec: "ask"}}
	want.Budget.PerDay = Limit{USD: 1.5, Tokens: 9_000_000_000}
	want.Control = Control{Listen: "127.0.0.1:7331", Token: NewSecret("s3cret-token")}
	want.Log = Log{Level: "debug", Format: "json"}
	return want
}

func TestFull(t *testing.T) {
	c, found, err := Load(dir(t, map[string]string{Name: full}), environment(map[string]string{"LOCAL_KEY": "k1"}), kindsOf("telegram")...)
	if err != nil || len(found) > 0 {
		t.Fatalf("Load: %v, findings %v", err, found)
	}
	if d := cmp.Diff(fullWant(), c, same); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestEnvironmentWins(t *testing.T) {
	env := environment(map[string]string{
		"DAYCARE_LOG_LEVEL": "error", "DAYCARE_AGENTS_TOOLROUNDS_FOREGROUND": "7", "DAYCARE_TOOLS_EXEC_TIMEOUT": "1m",
		"DAYCARE_PERMISSIONS_DEFAULTS_HOSTS": "a.org, b.org", "DAYCARE_PERMISSIONS_DEFAULTS_WEB": "0", "DAYCARE_CONTROL_TOKEN": "fromenv",
		"LOCAL_KEY": "k1", "DAYCARE_HEARTBEAT_ACTIVEHOURS": "",
	})
	c, found, err := Load(dir(t, map[string]string{Name: full}), env)
	if err != nil || len(found) > 0 {
		t.Fatalf("Load: %v, findings %v", err, found)
	}
	want := fullWant()
	want.Log.Level, want.Agents.ToolRounds.Foreground, want.Tools.Exec.Timeout = "error", 7, time.Minute
	want.Permissions.Defaults.Hosts, want.Permissions.Defaults.Web = []string{"a.org", "b.org"}, false
	want.Control.Token = NewSecret("fromenv")
	want.Heartbeat.ActiveHours = ""
	if d := cmp.Diff(want, c, same); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestMergeKeys(t *testing.T) {
	const text = "providers:\n  - &a\n    id: a\n    type: openai\n    model: m\n    concurrency: 3\n  - <<: *a\n    id: b\n"
	c, found, err := Load(dir(t, map[string]string{Name: text}), noEnv)
	if err != nil || len(found) > 0 {
		t.Fatalf("Load: %v, findings %v", err, found)
	}
	if p := c.Providers[1]; p.ID != "b" || p.Model != "m" || p.Concurrency != 3 {
		t.Errorf("merged provider is %+v", p)
	}
}

// example is the file that users copy.
func example(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("../../settings.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestExampleChangesNothing(t *testing.T) {
	c, found, err := Load(dir(t, map[string]string{Name: example(t)}), noEnv)
	if err != nil || len(found) > 0 {
		t.Fatalf("Load: %v, findings %v", err, found)
	}
	if d := cmp.Diff(Default(), c, same); d != "" {
		t.Errorf("a copy of settings.example.yaml changes the defaults (-want +got):\n%s", d)
	}
}

// TestExampleHasEveryKey takes the comment signs off and compares key by key.
func TestExampleHasEveryKey(t *testing.T) {
	text := regexp.MustCompile(`(?m)^( *)#([^ #])`).ReplaceAllString(example(t), "$1$2")
	c, found, err := Load(dir(t, map[string]string{Name: text}), noEnv)
	if err != nil || len(found) > 0 {
		t.Fatalf("the example without its # does not load: %v, findings %v", err, found)
	}
	f := kind.YAML(Name, []byte(text))
	if f.Values(reflect.TypeFor[Config]()); len(f.Found) > 0 {
		t.Fatal(f.Found)
	}
	missing(t, f, reflect.TypeFor[Config](), "")
	want := Default()
	want.Providers = []Provider{{ID: "main", Type: "anthropic", Model: c.Providers[0].Model, Concurrency: 8, Why: c.Providers[0].Why}}
	zero := 0.0
	no := false
	want.Models = []Model{{ID: "my-model", Images: &no, Documents: &no, Price: Price{&zero, &zero, &zero, &zero}}}
	want.Connectors = []Connector{{ID: "telegram", Type: "telegram"}}
	want.Links = Links{{Agent: "0/", Users: []string{}}}
	yes := true
	want.Speech.Transcribe.Sandbox, want.Speech.Speak.Sandbox = &yes, &yes
	want.Hooks.BeforeTool = []Hook{{Command: ".daycare/hooks/policy.sh", Timeout: DefaultHookTimeout, Sandbox: &yes}}
	want.MCP.Servers = []MCPServer{{ID: "files", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "."},
		Timeout: defaultMCPTimeout}}
	want.A2A.Remotes = []A2ARemote{{ID: "weather", URL: "https://agents.example.com/weather", About: "Forecasts for every town"}}
	if d := cmp.Diff(want, c, same); d != "" {
		t.Errorf("a value in settings.example.yaml is not the default (-want +got):\n%s", d)
	}
}

func TestUnreadable(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, Name), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(root, noEnv); err == nil {
		t.Error("a settings.yaml that is a folder must be an error")
	}
	big := dir(t, map[string]string{Name: strings.Repeat("# x\n", maxSettings/4+1)})
	if _, _, err := Load(big, noEnv); err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("over %d bytes: %v", maxSettings, err)
	}
}

// Hooks are checked with their place: a matcher that cannot be read, keys without effect, and a
// refusal where there is nothing to refuse.
func TestHooksAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"before_tool: [{matcher: 'exec|edit', command: x, timeout: 5s, onError: allow, sandbox: false, approve: true}]": "",
		"before_tool: [{matcher: '*', command: x}]":   "",
		"before_tool: [{matcher: '(', command: x}]":   "hooks.before_tool[0].matcher: found \"(\"",
		"before_tool: [{matcher: exec}]":              "command",
		"before_tool: [{command: x, timeout: 11m}]":   "timeout",
		"before_tool: [{command: x, onError: maybe}]": "onError",
		"after_tool: [{command: x, onError: deny}]":   "at after_tool there is nothing to deny",
		"on_message: [{command: x, matcher: exec}]":   "hooks.on_message[0].matcher has no effect",
		"turn_end: [{command: x, approve: true}]":     "hooks.turn_end[0].approve has no effect",
		"PreToolUse: [{command: x}]":                  "PreToolUse",
	} {
		_, found, _ := Load(dir(t, map[string]string{Name: "hooks: { " + text + " }"}), noEnv)
		switch {
		case want == "" && len(found) > 0, want != "" && len(found) != 1:
			t.Errorf("%s: %v", text, found)
		case want != "" && (!strings.Contains(found[0].Reason, want) || found[0].Line != 1):
			t.Errorf("%s: %+v, want %q", text, found[0], want)
		}
	}
}

func TestReloadKeepsTheLastGood(t *testing.T) {
	root := dir(t, map[string]string{Name: "log: {level: warn}\n"})
	r, found, err := NewReloader(root, noEnv)
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, Name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log: {level: loud}\n")
	if found := r.Reload(); finding.Join(found) == nil || r.Current().Log.Level != "warn" {
		t.Errorf("bad file: findings %v, level %s", found, r.Current().Log.Level)
	}
	write("log: {level: error, colour: red}\n")
	if found := r.Reload(); len(found) != 1 || found[0].Severity != finding.Warning || r.Current().Log.Level != "error" {
		t.Errorf("good file with a warning: findings %v, level %s", found, r.Current().Log.Level)
	}
	if err := os.Remove(filepath.Join(root, Name)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, Name), 0o700); err != nil {
		t.Fatal(err)
	}
	if found := r.Reload(); finding.Join(found) == nil || r.Current().Log.Level != "error" {
		t.Errorf("unreadable file: findings %v, level %s", found, r.Current().Log.Level)
	}

	// Without a good configuration there is nothing to keep, but for who only looks.
	if _, _, err := NewReloader(root, noEnv); err == nil {
		t.Error("an unreadable file is loaded")
	}
	looking := NewDefaults(root, noEnv)
	if found := looking.Reload(); finding.Join(found) == nil || looking.Current().Log.Level != Default().Log.Level {
		t.Errorf("who only looks: findings %v, level %s", found, looking.Current().Log.Level)
	}
}

func TestChoose(t *testing.T) {
	yes := func(context.Context) (string, bool) { return "llama9:8b", true }
	no := func(context.Context) (string, bool) { return "", false }
	keys := map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "OPENROUTER_API_KEY": "r"}
	without := func(names ...string) map[string]string {
		m := map[string]string{}
		for k, v := range keys {
			m[k] = v
		}
		for _, n := range names {
			delete(m, n)
		}
		return m
	}
	for name, c := range map[string]struct {
		settings string
		env      map[string]string
		probe    Probe
		want     Provider
	}{
		"settings first": {"providers: [{id: x, type: scripted}]", keys, yes,
			Provider{ID: "x", Type: "scripted", Model: "scripted", Concurrency: 8, Why: "settings.yaml:1"}},
		"anthropic": {"", keys, yes, Provider{ID: "anthropic", Type: "anthropic", Model: DefaultAnthropicModel,
			APIKeyEnv:   "ANTHROPIC_API_KEY",
			Concurrency: 8, APIKey: NewSecret("a"), Why: "ANTHROPIC_API_KEY in the environment"}},
		"openai": {"", without("ANTHROPIC_API_KEY"), yes,
			Provider{ID: "openai", Type: "openai", Model: DefaultOpenAIModel, APIKeyEnv: "OPENAI_API_KEY",
				Concurrency: 8, APIKey: NewSecret("o"), Why: "OPENAI_API_KEY in the environment"}},
		"openrouter": {"", without("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), yes,
			Provider{ID: "openrouter", Type: "openai", BaseURL: "https://openrouter.ai/api/v1",
				Model: DefaultOpenRouterModel, APIKeyEnv: "OPENROUTER_API_KEY", Concurrency: 8, APIKey: NewSecret("r"),
				Why: "OPENROUTER_API_KEY in the environment"}},
		"gemini": {"", map[string]string{"GEMINI_API_KEY": "g"}, yes,
			Provider{ID: "gemini", Type: "gemini", Model: DefaultGeminiModel, APIKeyEnv: "GEMINI_API_KEY",
				Concurrency: 8, APIKey: NewSecret("g"), Why: "GEMINI_API_KEY in the environment"}},
		"ollama": {"", map[string]string{"ANTHROPIC_API_KEY": " "}, yes,
			Provider{ID: "ollama", Type: "openai", BaseURL: "http://127.0.0.1:11434/v1", Model: "llama9:8b",
				Concurrency: 8, Why: "Ollama answers on 127.0.0.1:11434 and has llama9:8b"}},
		"scripted": {"", nil, no, Provider{ID: "scripted", Type: "scripted", Model: "scripted", Concurrency: 8,
			Why: "no model is set up: no providers in settings.yaml, no API key in the environment or auth.json, no Ollama on " +
				"127.0.0.1:11434"}},
	} {
		t.Run(name, func(t *testing.T) {
			conf, found, err := Load(dir(t, map[string]string{Name: c.settings}), environment(c.env))
			if err != nil || len(found) > 0 {
				t.Fatal(err, found)
			}
			if d := cmp.Diff([]Provider{c.want}, conf.Choose(t.Context(), c.probe), same); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// A key that is kept for a vendor is enough: without it, daycare auth set would do nothing
// in a workspace whose settings name no provider.
func TestChooseAKeyThatIsKept(t *testing.T) {
	root := dir(t, map[string]string{AuthName: `{"openai": "kept"}`})
	conf, _, err := Load(root, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	got := conf.Choose(t.Context(), nil)[0]
	if got.ID != "openai" || got.Model != DefaultOpenAIModel || got.APIKey.Reveal() != "kept" || got.Why != "the secret openai" {
		t.Errorf("chose %s, model %s, because of %s", got.ID, got.Model, got.Why)
	}
}

func TestOllama(t *testing.T) {
	for name, c := range map[string]struct {
		status       int
		answer, want string
	}{
		"models":  {200, `{"models":[{"name":"a:1"},{"name":"b:2"}]}`, "a:1"},
		"none":    {200, `{"models":[]}`, ""},
		"no json": {200, `hello`, ""},
		"refused": {403, `{"models":[{"name":"a:1"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/tags" {
					t.Errorf("asked for %s", r.URL)
				}
				w.WriteHeader(c.status)
				w.Write([]byte(c.answer))
			}))
			defer s.Close()
			if got, ok := probeOllama(t.Context(), s.Listener.Addr().String()); got != c.want || ok != (c.want != "") {
				t.Errorf("found %q, %v; want %q", got, ok, c.want)
			}
		})
	}
	if _, ok := probeOllama(t.Context(), "no address"); ok {
		t.Error("found Ollama at what is no address")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := probeOllama(ctx, "127.0.0.1:1"); ok || !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("found Ollama where there is none")
	}
}

func BenchmarkLoad(b *testing.B) {
	for name, text := range map[string]string{"none": "", "example": example(b), "full": full} {
		root := dir(b, map[string]string{Name: text, AuthName: "{}"})
		if text == "" {
			os.Remove(filepath.Join(root, Name))
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := Load(root, os.LookupEnv); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(full)
	f.Add(example(f))
	for _, c := range badSettings {
		f.Add(c.text)
	}
	f.Add("a: &a [*a]\nproviders: *a\n")
	f.Add("log: {<<: &a [*a, *a]}\n")
	f.Add("connectors: [{<<: {id: api, type: x}}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, found, err := Load(dir(t, map[string]string{Name: text}), noEnv, kindsOf("telegram")...)
		if (c == nil) == (err == nil) {
			t.Fatalf("Load gives config %v and error %v", c, err)
		}
		for _, f := range found {
			if f.ID == "" || f.Reason == "" || f.Line < 0 || f.Line > len(text)+2 {
				t.Errorf("finding %+v", f)
			}
		}
		if c != nil {
			c.Masked()
			c.Secrets()
		}
	})
}
