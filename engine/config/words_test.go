package config

import (
	"slices"
	"testing"

	"daycare/engine/finding"
)

// Who answers approvals: those who are named, else the first who may write.
func TestOwnersOfAConnector(t *testing.T) {
	for _, tt := range []struct{ allow, owners, want []string }{
		{nil, nil, nil}, {[]string{"a", "b"}, nil, []string{"a"}}, {[]string{"a", "b"}, []string{"b", "c"}, []string{"b", "c"}},
		{nil, []string{"c"}, []string{"c"}},
	} {
		c := Connector{}
		c.Allow, c.Owners = tt.allow, tt.owners
		if got := c.OwnerIDs(); !slices.Equal(got, tt.want) {
			t.Errorf("allow %v and owners %v: %v, want %v", tt.allow, tt.owners, got, tt.want)
		}
	}
}

// Settings that take effect after a restart are named where they differ, and others never.
func TestWhatNeedsARestart(t *testing.T) {
	load := func(text string) *Config {
		t.Helper()
		c, found, err := Load(dir(t, map[string]string{Name: text}), nil)
		if err != nil || finding.Join(found) != nil {
			t.Fatal(found, err)
		}
		return c
	}
	base := load("agents: {maxChildren: 3}\n")
	if got := NeedRestart(base, load("agents: {maxChildren: 3}\n")); len(got) != 0 {
		t.Errorf("the same settings: %v", got)
	}
	if got := NeedRestart(base, load("agents: {maxChildren: 4}\n")); slices.Contains(got, "agents") {
		t.Errorf("what takes effect at once: %v", got)
	}

	for section, text := range map[string]string{"log": "log: {level: debug}\nagents: {maxChildren: 3}\n"} {
		if got := NeedRestart(base, load(text)); !slices.Equal(got, []string{section}) {
			t.Errorf("%s differs: %v", section, got)
		}
	}
}
