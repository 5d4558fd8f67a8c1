package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/form"
)

// A Secret is a string that does not print: not by fmt, JSON, YAML or slog. The
// zero value is no secret.
type Secret struct{ value string }

// NewSecret wraps a secret.
func NewSecret(value string) Secret { return Secret{value} }

var secretType = reflect.TypeFor[Secret]()

const redacted = "[redacted]"

// Reveal returns the secret itself, for the one place that needs it.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.value == "" }

func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return redacted
}

// GoString handles %#v.
func (s Secret) GoString() string { return "config.Secret{" + s.String() + "}" }

// Format handles all other verbs: %x would print a struct's string.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalJSON writes [redacted].
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML writes [redacted].
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// UnmarshalText stores a text as a secret.
func (s *Secret) UnmarshalText(text []byte) error {
	s.value = string(text)
	return nil
}

// LogValue handles slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Secret returns the secret with an id: DAYCARE_SECRET_<ID> in the environment, else auth.json. It
// is zero if there is none.
func (c *Config) Secret(id string) Secret {
	if s := c.SecretEnv(secretEnv(id)); !s.IsZero() {
		return s
	}
	return c.secrets[id]
}

// SecretEnv reads a secret from an environment variable that a setting names.
func (c *Config) SecretEnv(name string) Secret {
	if c.env == nil || name == "" {
		return Secret{}
	}
	v, _ := c.env(name)
	return Secret{strings.TrimSpace(v)}
}

// SecretNamed returns the secret that a connector's setting names: the environment variable of that
// name, else the secret with that id.
func (c *Config) SecretNamed(name string) Secret {
	if s := c.SecretEnv(name); !s.IsZero() {
		return s
	}
	return c.Secret(name)
}

// Secrets lists every secret that the configuration knows, so that their values can be removed from
// what is written and sent.
func (c *Config) Secrets() []Secret {
	var all []Secret
	add := func(s Secret) {
		if !s.IsZero() && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for id := range c.secrets {
		add(c.secrets[id])
		add(c.Secret(id))
	}
	urls := []string{c.ModelsURL, c.Tools.Web.Search, c.Tracing.Endpoint}
	for _, p := range c.Providers {
		add(p.APIKey)
		addNamed(add, p.Headers)
		urls = append(urls, p.BaseURL)
	}
	for _, k := range c.Connectors {
		urls = append(urls, addresses(k.Raw)...)
		for _, more := range []string{"", "-app", "-signing"} { // Slack has three
			add(c.Secret(k.ID + more))
		}
		for _, name := range envNames(k.Raw) {
			add(c.SecretNamed(name))
		}
	}
	urls = append(urls, speechSecrets(c, add)...)
	for _, s := range c.MCP.Servers {
		addNamed(add, s.Env)
		addNamed(add, s.Headers)
		for _, secret := range c.references(s) {
			add(secret)
		}
		urls = append(urls, s.URL)
	}
	headers := []map[string]string{c.Tracing.Headers}
	for _, s := range c.A2A.Remotes {
		headers, urls = append(headers, s.Headers), append(urls, s.URL)
	}
	for _, values := range headers {
		addNamed(add, values)
		for _, text := range values {
			for _, name := range References(text) {
				add(c.SecretNamed(name))
			}
		}
	}
	for _, v := range vendors {
		add(c.SecretEnv(v.keyEnv))
	}
	for _, address := range urls {
		for _, s := range logins(address) {
			add(s)
		}
	}
	add(c.Control.Token)
	add(c.Cluster.Password)
	slices.SortFunc(all, func(a, b Secret) int { return strings.Compare(a.value, b.value) })
	return all
}

// addNamed adds the values whose name says that they are secret, such as the
// header Authorization and the variable GITHUB_TOKEN.
func addNamed(add func(Secret), values map[string]string) {
	for name, value := range values {
		name = strings.ToLower(name)
		if slices.ContainsFunc([]string{"auth", "key", "token", "secret", "password"},
			func(word string) bool { return strings.Contains(name, word) }) {
			value = strings.TrimPrefix(value, "Bearer ")
			add(Secret{value})
		}
	}
}

// envNames finds the variables that a connector's options name: the values of
// all keys that end in Env (tokenEnv, secretEnv).
func envNames(n *yaml.Node) (names []string) {
	if n == nil {
		return nil
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && child.Kind == yaml.ScalarNode && strings.HasSuffix(n.Content[i-1].Value, "Env") {
			names = append(names, child.Value)
		}
		names = append(names, envNames(child)...)
	}

	return names
}

// AuthName is the name of the file in .daycare that stores secrets.
const AuthName = "auth.json"

// readAuth reads auth.json, an object of id to secret. A file that others can
// read is used, and reported.
func readAuth(root string) (map[string]Secret, []finding.Finding, error) {
	path := filepath.Join(root, AuthName)
	data, info, err := beneath.Own(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read secrets: %w", err)
	}
	var found []finding.Finding
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		found = append(found, openToOthers(path, mode))
	}
	secrets, bad := parseAuth(path, data)
	return secrets, append(found, bad...), nil
}

// CheckAuth returns what is wrong with the content of an auth.json; path is for the findings.
func CheckAuth(path string, content []byte) ([]finding.Finding, error) {
	secrets, found := parseAuth(path, content)
	for id := range secrets {
		if id == "$schema" || form.Is("id", id) {
			continue
		}
		f := finding.Finding{ID: "auth-id", Severity: finding.Warning, File: path,
			Reason: fmt.Sprintf("%q is not a valid id; allowed: %s", id, form.Of("id")),
			Remedy: "The secret is ignored. Give it the id of a provider or connector, or remove it."}
		f.Line, f.Column = finding.Position(content, int64(strings.Index(string(content), `"`+id+`"`)))
		found = append(found, f)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		found = append(found, openToOthers(path, info.Mode().Perm()))
	}

	return found, nil
}

func openToOthers(path string, mode fs.FileMode) finding.Finding {
	return finding.Finding{ID: "auth-mode", Severity: finding.Warning, File: path,
		Reason: fmt.Sprintf("found mode %04o, allowed: 0600: other users can read the secrets", mode), Remedy: "chmod 600 " + path}
}

// authKind is how auth.json is read: what is in it is never quoted, as it may be a secret.
var authKind = form.Kind{ID: "auth", Secret: true, IDs: map[string]string{"wrong-type": "syntax"},
	Remedy: `write one object that maps ids to secrets: { "telegram": "…" }`}

// parseAuth returns all secrets of an auth.json or, if anything in it is wrong, none.
func parseAuth(path string, data []byte) (map[string]Secret, []finding.Finding) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	f := authKind.JSON(path, data)
	var secrets map[string]Secret
	if f.Read(&secrets); f.Failed() {
		return nil, f.Found
	}
	for id, s := range secrets {
		secrets[id] = Secret{strings.TrimSpace(s.value)}
	}

	return secrets, f.Found
}
