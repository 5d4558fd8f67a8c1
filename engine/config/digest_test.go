package config

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A section has another hash when it is changed, those of a machine's own and secrets have none.
func TestDigest(t *testing.T) {
	of := func(settings string) map[string]string {
		t.Helper()
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "settings.yaml"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		c, found, err := Load(root, func(string) (string, bool) { return "", false })
		if err != nil || len(found) > 0 {
			t.Fatal(found, err)
		}
		digest, err := c.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	base := of("")
	for _, test := range []struct{ settings, changes string }{
		{"agents: { queue: collect }", "agents"},
		{"connectors: [ { id: hooks, type: webhook, listen: 127.0.0.1:1, hooks: [ { id: a, secretEnv: X_SECRET } ] } ]", "connectors"},
		{"cluster: { name: box }", ""},
		{"log: { level: debug }", ""},
	} {
		now := of(test.settings)
		var changed []string
		for key := range now {
			if now[key] != base[key] {
				changed = append(changed, key)
			}
		}
		want := []string{test.changes}
		if test.changes == "" {
			want = nil
		}
		if !slices.Equal(changed, want) {
			t.Errorf("%s changes %q", test.settings, changed)
		}
	}
	c := &Config{Connectors: []Connector{{ID: "a"}}}
	if digest, err := c.Digest(); err != nil || digest["connectors"] == "" {
		t.Errorf("of a connector without options: %q, %v", digest, err)
	}
	c.Budget.PerDay.USD = math.NaN()
	if digest, err := c.Digest(); err == nil || digest != nil {
		t.Errorf("of what cannot be written: %q, %v", digest, err)
	}
	if again := of(""); !maps.Equal(again, base) {
		t.Error("the same settings have other hashes")
	}
}
