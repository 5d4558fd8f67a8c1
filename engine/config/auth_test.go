package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetSecret(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, AuthName)
	for id, value := range map[string]string{"telegram": "123:abc<&>", "main": "sk-1"} {
		if err := SetSecret(root, id, NewSecret(value)); err != nil {
			t.Fatal(err)
		}
	}

	if err := SetSecret(root, "main", NewSecret("sk-2")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	want := "{\n  \"main\": \"sk-2\",\n  \"telegram\": \"123:abc<&>\"\n}\n"
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("auth.json (-want +got):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if err := RemoveSecret(root, "main"); err != nil {
		t.Fatal(err)
	}
	if err := RemoveSecret(root, "main"); !errors.Is(err, ErrNoSecret) {
		t.Errorf("removed twice: %v, want ErrNoSecret", err)
	}

	left, err := os.ReadDir(root)
	if err != nil || len(left) != 2 || left[0].Name() != IgnoreName || left[1].Name() != AuthName {
		t.Errorf("%v, %v; want auth.json and what keeps it out of git", left, err)
	}
}

func TestSetSecretRefuses(t *testing.T) {
	root := t.TempDir()
	for _, id := range []string{"", "a b", "../x", "-x"} {
		if err := SetSecret(root, id, NewSecret("s")); err == nil {
			t.Errorf("id %q was taken", id)
		}
	}

	if err := SetSecret(root, "a", Secret{}); err == nil {
		t.Error("an empty secret was taken")
	}
	broken := `{ "a": "one-secret" `
	if err := os.WriteFile(filepath.Join(root, AuthName), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}

	err := SetSecret(root, "b", NewSecret("another"))
	if err == nil || strings.Contains(err.Error(), "one-secret") {
		t.Errorf("a broken file: %v; want an error that does not show it", err)
	}
	if data, _ := os.ReadFile(filepath.Join(root, AuthName)); string(data) != broken {
		t.Errorf("a broken file was overwritten with %s", data)
	}
}

func TestSecretSources(t *testing.T) {
	root := t.TempDir()
	settings := "providers:\n" +
		"  - { id: main, type: anthropic }\n" +
		"  - { id: gate, type: openai, baseURL: https://gate.example/v1, model: m, apiKeyEnv: GATE_KEY }\n" +
		"  - { id: local, type: openai, baseURL: http://127.0.0.1:1/v1, model: m }\n" + // needs no key
		"  - { id: remote, type: openai, baseURL: https://models.example/v1, model: m }\n" +
		"connectors:\n" +
		"  - { id: hooks, type: webhook, hooks: [{ id: a, secretEnv: HOOK_SECRET }] }\n"
	for name, text := range map[string]string{Name: settings,
		AuthName: `{"main":"in-the-file-1","HOOK_SECRET":"in-the-file-2","spare":"in-the-file-3"}`} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	env := map[string]string{"ANTHROPIC_API_KEY": "from-env-1", "GATE_KEY": "from-env-2"}
	c, _, err := Load(root, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	want := []SecretSource{
		{ID: "HOOK_SECRET", Source: AuthName, File: true, UsedBy: []string{"connector hooks"}},
		{ID: "gate", Source: "GATE_KEY", UsedBy: []string{"provider gate"}},
		{ID: "main", Source: "ANTHROPIC_API_KEY", File: true, UsedBy: []string{"provider main"}},
		{ID: "remote", UsedBy: []string{"provider remote"}},
		{ID: "spare", Source: AuthName, File: true},
	}
	if diff := cmp.Diff(want, c.SecretSources()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := c.SecretNamed("HOOK_SECRET").Reveal(); got != "in-the-file-2" {
		t.Errorf("SecretNamed = %q", got)
	}
	for _, s := range c.SecretSources() {
		if s.Missing() != (s.ID == "remote") {
			t.Errorf("%s is missing: %v", s.ID, s.Missing())
		}
	}
}

// A secret of a connector, and that of the control API, are listed where they are asked for.
func TestSourcesOfConnectorsAndControl(t *testing.T) {
	root := dir(t, map[string]string{AuthName: `{"one": "in-the-file", "control": "token"}`,
		Name: "connectors: [{id: one, type: telegram}, {id: two, type: telegram}, {id: three, type: telegram}]\n" +
			"control: {listen: \"127.0.0.1:1\"}\n"})
	c, _, err := Load(root, environment(map[string]string{"DAYCARE_SECRET_TWO": "from-env"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []SecretSource{{ID: "control", Source: AuthName, File: true, UsedBy: []string{"control.listen"}},
		{ID: "one", Source: AuthName, File: true, UsedBy: []string{"connector one"}},
		{ID: "two", Source: "DAYCARE_SECRET_TWO", UsedBy: []string{"connector two"}}}
	if diff := cmp.Diff(want, c.SecretSources()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	if k, ok := c.Connector("two"); !ok || k.ID != "two" {
		t.Errorf("the connector two is %+v, %v", k, ok)
	} else if file, line, column := k.Place(); file != filepath.Join(root, Name) || line != 1 || column != 41 {
		t.Errorf("it begins at %s:%d:%d", file, line, column)
	}
	if k, ok := c.Connector("four"); ok {
		t.Errorf("a connector that there is not is %+v", k)
	}
}

// Every secret that the settings name is known as one: it is kept out of logs, files and
// what models read.
func TestEverySecretIsKnown(t *testing.T) {
	root := dir(t, map[string]string{AuthName: `{"chat-app": "s-app", "chat-signing": "s-signing", "spare": "s-spare"}`, Name: `
modelsURL: https://s-models@h/
tools: {web: {search: "https://u:s-search@h/"}}
providers: [{id: p, type: openai, model: m, apiKeyEnv: PK, baseURL: "https://s-base@h/v1", headers: {X-Key: s-header, X-Title: plain}}]
a2a: {remotes: [{id: r, about: x, url: "https://s-remote@h/", headers: {X-Key: "${FAR}"}}]}
connectors: [{id: chat, type: slack, tokenEnv: CHAT, server: "https://s-server@h/"}]
control: {token: s-control}
mcp:
  servers:
    - {id: a, command: x, env: {GITHUB_TOKEN: s-env, MODE: plain, A: "${NAMED}"}}
    - {id: b, url: "https://s-url@h/", headers: {Authorization: "Bearer s-bearer"}, oauth: {clientId: i, clientSecret: "${spare}"}}
`})
	c, found, err := Load(root, environment(map[string]string{"CHAT": "s-chat", "NAMED": "s-named", "FAR": "s-far", "PK": "s-provider",
		"OPENAI_API_KEY": "s-vendor", "DAYCARE_SECRET_CHAT": "s-own", "DAYCARE_SECRET_SPARE": "s-over"}))
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	want := []string{"s-app", "s-base", "s-bearer", "s-chat", "s-control", "s-env", "s-far", "s-header", "s-models", "s-named", "s-over",
		"s-own", "s-provider", "s-remote", "s-search", "s-server", "s-signing", "s-spare", "s-url", "s-vendor"}
	var got []string
	for _, s := range c.Secrets() {
		if got = append(got, s.Reveal()); strings.Contains(fmt.Sprintf("%v %+v %x %q", s, s, s, s), s.Reveal()) {
			t.Errorf("%s is printed", s.Reveal())
		}
	}
	if diff := cmp.Diff(want, slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "${") })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := fmt.Sprint(NewSecret("s-x"), "|", Secret{}); text != "[redacted]|" {
		t.Errorf("a secret, and none, are printed as %q", text)
	}
}

// Several secrets are stored in one step, and taken back as they were.
func TestSeveralSecrets(t *testing.T) {
	root := dir(t, map[string]string{AuthName: `{"a": "1", "b": "2"}`})
	has := func(want ...string) {
		t.Helper()
		list, err := StoredSecrets(root, "a", "b", "c")
		for i, s := range list {
			if err != nil || s.Reveal() != want[i] {
				t.Errorf("stored are %q, %v, want %q", s.Reveal(), err, want[i])
			}
		}
	}
	undo, err := KeepSecrets(root, map[string]Secret{"a": NewSecret("new"), "c": NewSecret("3")})
	if err != nil {
		t.Fatal(err)
	}
	has("new", "2", "3")
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	has("1", "2", "")
	if err := ReplaceSecrets(root, map[string]Secret{"a": {}, "c": NewSecret("3")}); err != nil {
		t.Fatal(err)
	}
	has("", "2", "3")
	if data, err := os.ReadFile(filepath.Join(root, AuthName)); err != nil || strings.Contains(string(data), `"a"`) {
		t.Errorf("the file is %s, %v; want nothing of a secret that was removed", data, err)
	}

	if err := os.WriteFile(filepath.Join(root, AuthName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, kept := KeepSecrets(root, map[string]Secret{"a": NewSecret("new")})
	for what, err := range map[string]error{"kept": kept, "replaced": ReplaceSecrets(root, nil), "removed": RemoveSecret(root, "a")} {
		if err == nil {
			t.Errorf("%s in a file that cannot be read", what)
		}
	}
	if data, err := os.ReadFile(filepath.Join(root, AuthName)); err != nil || string(data) != "{" {
		t.Errorf("it is now %q, %v", data, err)
	}

	for _, of := range []*Config{{}, {secrets: map[string]Secret{"a": NewSecret("1")}}} {
		with := of.WithSecrets(map[string]Secret{"b": NewSecret("2")})
		if with.Secret("b").Reveal() != "2" || with.Secret("a") != of.Secret("a") || !of.Secret("b").IsZero() {
			t.Errorf("with one more it has %v, before it has %v", with.secrets, of.secrets)
		}
	}
}

// An id that nothing can have, and a file that others can read, are reported.
func TestCheckAuth(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, AuthName)
	content := []byte("{\"$schema\": \"x\", \"good\": \"x\",\n \"not an id\": \"s3cret\"}")
	for mode, want := range map[os.FileMode][]string{0o600: {"auth-id"}, 0o644: {"auth-id", "auth-mode"}, 0o640: {"auth-id", "auth-mode"}} {
		if err := errors.Join(os.WriteFile(path, content, mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		found, err := CheckAuth(path, content)
		var got []string
		for _, f := range found {
			if got = append(got, f.ID); strings.Contains(f.Reason+f.Remedy, "s3cret") ||
				f.ID == "auth-id" && (f.Line != 2 || f.Column != 2) {
				t.Errorf("mode %04o: %+v", mode, f)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("mode %04o: %v (-want +got):\n%s", mode, err, diff)
		}
		if _, found, err := Load(root, noEnv); err != nil || (len(found) > 0) != (mode != 0o600) {
			t.Errorf("mode %04o is loaded with %v, %v", mode, found, err)
		}
	}
	if found, err := CheckAuth(filepath.Join(root, "none"), nil); err != nil || len(found) > 0 {
		t.Errorf("an empty file: %v, %v", found, err)
	}
}

func TestSecretsOfHeaders(t *testing.T) {
	headers := func(secret string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + secret, "X-Title": "daycare"}
	}
	c := &Config{Providers: []Provider{{Headers: headers("of a service")}}}
	c.Tracing.Headers, c.A2A.Remotes = headers("of traces"), []A2ARemote{{Headers: headers("of an agent elsewhere")}}
	c.MCP.Servers = []MCPServer{{Headers: headers("of a server of tools")}}
	c.Cluster.Password = NewSecret("of the cluster")
	var got []string
	for _, s := range c.Secrets() {
		got = append(got, s.Reveal())
	}
	want := []string{"of a server of tools", "of a service", "of an agent elsewhere", "of the cluster", "of traces"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An auth.json that is a link stays one: the secret goes to where it leads.
func TestSetSecretThroughLink(t *testing.T) {
	base := t.TempDir()
	root, kept := filepath.Join(base, "work", ".daycare"), filepath.Join(base, "kept.json")
	if err := errors.Join(os.MkdirAll(root, 0o700), os.WriteFile(kept, []byte("{}"), 0o600),
		os.Symlink(kept, filepath.Join(root, AuthName))); err != nil {
		t.Fatal(err)
	}
	if err := SetSecret(root, "x", NewSecret("a secret")); err != nil {
		t.Fatal(err)
	}

	data, err := os.ReadFile(kept)
	if _, lerr := os.Readlink(filepath.Join(root, AuthName)); err != nil || lerr != nil || !strings.Contains(string(data), "a secret") {
		t.Errorf("the file holds %q, %v; the link: %v", data, err, lerr)
	}
}

// A speech service without a name for its key has that of all of them.
func TestKeysOfSpeech(t *testing.T) {
	text := "speech: {transcribe: {url: \"https://a.example/v1\"}, speak: {url: \"https://b.example/v1\", keyEnv: OTHER}}\n"
	env := map[string]string{"DAYCARE_SPEECH": "", "OTHER": "other key"}
	c, found, err := Load(dir(t, map[string]string{Name: text, AuthName: `{"speech": "speech key"}`}),
		func(name string) (string, bool) { v, ok := env[name]; return v, ok && v != "" })
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	if a, b := c.Speech.Transcribe.Secret(c).Reveal(), c.Speech.Speak.Secret(c).Reveal(); a != "speech key" || b != "other key" {
		t.Errorf("%q and %q", a, b)
	}
	for _, key := range []string{"speech key", "other key"} {
		if !slices.Contains(c.Secrets(), NewSecret(key)) {
			t.Errorf("%q is not among the secrets", key)
		}
	}
	want := []SecretSource{{ID: "OTHER", Source: "OTHER", UsedBy: []string{"speech.speak"}},
		{ID: "speech", Source: AuthName, File: true, UsedBy: []string{"speech.transcribe"}}}
	if diff := cmp.Diff(want, c.SecretSources()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// A program needs no key, and neither does a service for which there is none.
	c, _, err = Load(dir(t, map[string]string{Name: "speech: {transcribe: {command: c}, speak: {url: \"https://b.example/v1\"}}\n" +
		"cluster: {servers: [\"nats://127.0.0.1:1\"], user: u}\n"}), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]SecretSource{{ID: "cluster", UsedBy: []string{"cluster.user"}}}, c.SecretSources()); diff != "" {
		t.Errorf("without keys (-want +got):\n%s", diff)
	}
}

// Two processes that change secrets at once lose none, and bring none back.
func TestSecretsAtOnce(t *testing.T) {
	root := t.TempDir()
	const many = 20
	id := func(kind string, i int) string { return fmt.Sprintf("%s%d", kind, i) }
	for i := range many {
		if err := SetSecret(root, id("old", i), NewSecret("1")); err != nil {
			t.Fatal(err)
		}
	}

	var wg sync.WaitGroup
	for i := range many {
		for what, change := range map[string]func() error{
			"set":     func() error { return SetSecret(root, id("set", i), NewSecret("2")) },
			"removed": func() error { return RemoveSecret(root, id("old", i)) },
			"replaced": func() error {
				return ReplaceSecrets(root, map[string]Secret{id("mcp", i): NewSecret("3")})
			},
		} {
			wg.Go(func() {
				if err := change(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
	}

	wg.Wait()
	secrets, _, err := readAuth(root)
	if err != nil || len(secrets) != 2*many {
		t.Errorf("%d secrets are left, %v; want %d", len(secrets), err, 2*many)
	}
	for i := range many {
		for kind, want := range map[string]string{"set": "2", "old": "", "mcp": "3"} {
			if got := secrets[id(kind, i)].Reveal(); got != want {
				t.Errorf("%s is %q, want %q", id(kind, i), got, want)
			}
		}
	}
}
