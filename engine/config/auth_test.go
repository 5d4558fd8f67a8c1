package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
}

func TestSecretsOfHeaders(t *testing.T) {
	c := &Config{Providers: []Provider{{Headers: map[string]string{"Authorization": "Bearer header-secret", "X-Title": "daycare"}}}}
	var got []string
	for _, s := range c.Secrets() {
		got = append(got, s.Reveal())
	}
	if diff := cmp.Diff([]string{"header-secret"}, got); diff != "" {
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
