package config

import (
	"slices"
	"strings"
	"testing"

	"daycare/engine/finding"
)

// What a short text may be, by what it is for.
func TestFormsOfShortTexts(t *testing.T) {
	for name, tt := range map[string]struct {
		is  func(string) bool
		yes []string
		no  []string
	}{
		"an id": {isID, []string{"a", "9", "my-bot", "a.b_c", strings.Repeat("x", 64)},
			[]string{"-a", ".a", "a b", "a/b", "ä", strings.Repeat("x", 65)}},
		"a variable": {isEnvName, []string{"A", "_a", "KEY_2", "z9"}, []string{"2A", "9", "A-B", "A B", "A=B", strings.Repeat("X", 129)}},
		"an address to listen at": {isListen, []string{"127.0.0.1:80", ":80", "[::1]:65535", "localhost:0"},
			[]string{"80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", "a b:80", "127.0.0.1:00", "127.0.0.1:-1"}},
		"a zone": {isZone, []string{"UTC", "Europe/Berlin"}, []string{"Europe/Nowhere", "../etc/passwd"}},
	} {
		for _, text := range tt.yes {
			if !tt.is(text) {
				t.Errorf("%q is not %s", text, name)
			}
		}
		for _, text := range tt.no {
			if tt.is(text) {
				t.Errorf("%q is %s", text, name)
			}
		}
	}
	if isPort("127.0.0.1:0") || isPort(":80") || isPort("*:80") || !isPort("127.0.0.1:80") {
		t.Error("a server's own address needs a host and a port")
	}
}

// Who answers approvals: those who are named, else the first who may write.
func TestOwnersOfAConnector(t *testing.T) {
	for _, tt := range []struct{ allow, owners, want []string }{
		{nil, nil, nil}, {[]string{"a", "b"}, nil, []string{"a"}}, {[]string{"a", "b"}, []string{"b", "c"}, []string{"b", "c"}}, {nil, []string{"c"}, []string{"c"}},
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
