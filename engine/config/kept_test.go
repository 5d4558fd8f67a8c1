package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/crash"
	"daycare/engine/finding"
)

// A .gitignore that is there stays as it is, also an empty one; one that cannot be written is
// an error, and no secret is written without it.
func TestIgnore(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, IgnoreName)
	content := func() string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	crash.Arm(t, "enospc@ignore.write#1")
	if err := SetSecret(root, "a", NewSecret("x")); err == nil || !strings.HasPrefix(err.Error(), "write secrets: write .gitignore: ") {
		t.Errorf("on a full disk: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, AuthName)); err == nil {
		t.Error("a secret is there without the .gitignore")
	}

	crash.Arm(t, "")
	if err := Ignore(root); err != nil || content() != IgnoreText {
		t.Errorf("%v, the file has %q", err, content())
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Ignore(root); err != nil || content() != "" {
		t.Errorf("an empty one: %v, the file has %q", err, content())
	}
}

// What secrets replaced is there again after undo, and what they added is gone.
func TestUndoneSecrets(t *testing.T) {
	root := t.TempDir()
	if err := SetSecret(root, "old", NewSecret("one")); err != nil {
		t.Fatal(err)
	}
	undo, err := KeepSecrets(root, map[string]Secret{"old": NewSecret("two"), "new": NewSecret("three")})
	if err != nil {
		t.Fatal(err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, AuthName))
	if want := "{\n  \"old\": \"one\"\n}\n"; string(data) != want || err != nil {
		t.Errorf("auth.json has %q, %v, want %q", data, err, want)
	}
}

// An auth.json that cannot be read is an error wherever secrets are asked for, and nothing is
// written over it.
func TestSecretsThatCannotBeRead(t *testing.T) {
	root := dir(t, nil)
	if err := os.Mkdir(filepath.Join(root, AuthName), 0o700); err != nil {
		t.Fatal(err)
	}
	_, stored := StoredSecrets(root, "a")
	_, _, loaded := Load(root, noEnv)
	for what, err := range map[string]error{"stored": stored, "loaded": loaded, "set": SetSecret(root, "a", NewSecret("x"))} {
		if err == nil || !strings.Contains(err.Error(), "read secrets: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An auth.json with one value that is no text gives no secrets at all.
func TestASecretOfAnotherType(t *testing.T) {
	root := dir(t, map[string]string{AuthName: `{"a":"x","b":1}`})
	if list, _ := StoredSecrets(root, "a", "b"); !list[0].IsZero() || !list[1].IsZero() {
		t.Errorf("secrets are %v", list)
	}
}

// The environment variable of a secret has its id in capitals; what such a name cannot have is _.
func TestNamesOfSecretsInTheEnvironment(t *testing.T) {
	for id, want := range map[string]string{"azAZ09": "AZAZ09", "my-key.1": "MY_KEY_1", "é": "_"} {
		if got := secretEnv(id); got != "DAYCARE_SECRET_"+want {
			t.Errorf("of %q it is %q", id, got)
		}
	}
}

// A connector that no file describes has no options, and nothing to say of them.
func TestAConnectorWithoutAFile(t *testing.T) {
	c := &Config{Connectors: []Connector{{ID: "a", Type: "telegram"}}}
	var options struct{ BaseURL string }
	if found := c.Connectors[0].Decode(&options); len(found) > 0 || options.BaseURL != "" {
		t.Errorf("its options are %+v, %v", options, found)
	}
	if found := c.Connectors[0].Invalid(os.ErrInvalid); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	if list := c.Secrets(); len(list) > 0 {
		t.Errorf("secrets are %v", list)
	}
	if list := c.SecretSources(); len(list) > 0 {
		t.Errorf("secrets come from %+v", list)
	}

	full, _, err := Load(dir(t, map[string]string{Name: "connectors: [ { id: a, type: telegram } ]\n"}), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if found := full.Connectors[0].Invalid(nil); len(found) > 0 {
		t.Errorf("of no error: %v", found)
	}
}

// An address without a login has no secret, whether it is right or not.
func TestAddressesWithoutALogin(t *testing.T) {
	for _, address := range []string{"", "https://h.example/a", "https://h.example/%zz", "http://@h.example"} {
		if list := logins(address); len(list) > 0 {
			t.Errorf("of %q: %v", address, list)
		}
		if got := HideLogin(address); strings.Contains(got, "redacted") != strings.Contains(address, "@") {
			t.Errorf("%q is shown as %q", address, got)
		}
	}
	if got := HideLogin("ada@h.example"); got != "ada@h.example" {
		t.Errorf("what is no address is shown as %q", got)
	}
}

// A provider on this machine needs a key if the settings name its variable, and else not.
func TestKeysOfProvidersOnThisMachine(t *testing.T) {
	for env, want := range map[string]int{"": 0, "LOCAL_KEY": 1} {
		c := &Config{Providers: []Provider{{ID: "local", Type: "openai", BaseURL: "http://127.0.0.1:1/v1", APIKeyEnv: env}}}
		if list := c.SecretSources(); len(list) != want {
			t.Errorf("with %q: %+v", env, list)
		}
	}
}

// Two agents elsewhere cannot have the same id.
func TestRemoteAgentsHaveTheirIDs(t *testing.T) {
	_, found, err := Load(dir(t, map[string]string{Name: "a2a: { remotes: [ { id: x, url: https://a.example, about: a }, " +
		"{ id: x, url: https://b.example, about: b } ] }\n"}), noEnv)
	if err == nil || len(found) != 1 || found[0].Severity != finding.Error || !strings.Contains(found[0].Reason, "a2a.remotes[1].id") {
		t.Errorf("%v, found %v", err, found)
	}
}

// A route says where it is written: its line, or that it is of the environment, which has none.
func TestWhereARouteIs(t *testing.T) {
	env := environment(map[string]string{"DAYCARE_ROUTING_SUBAGENT": "b"})
	const text = "providers: [ { id: a, type: scripted }, { id: b, type: scripted } ]\nrouting:\n  summary: a\n"
	c, found, err := Load(dir(t, map[string]string{Name: text}), env)
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	for key, want := range map[string]int{"summary": 3, "subagent": 0} {
		if at := c.Route(key); at.Line != want || at.ID == "" {
			t.Errorf("%s: %+v, want line %d", key, at, want)
		}
	}
}
