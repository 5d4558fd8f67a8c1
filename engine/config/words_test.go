package config

import (
	"slices"
	"strings"
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

// What keeps a machine from joining others is named by its key; beyond loopback there are TLS and
// credentials.
func TestWhatIsWrongWithACluster(t *testing.T) {
	for name, tt := range map[string]struct {
		c   Cluster
		key string // "": nothing is wrong
	}{
		"none":                        {Cluster{}, ""},
		"on this machine":             {Cluster{Servers: []string{"nats://127.0.0.1:4222", "nats://localhost:4222"}}, ""},
		"elsewhere, with a password":  {Cluster{Servers: []string{"tls://a.example:4222"}, User: "u", Password: NewSecret("p")}, ""},
		"elsewhere, with a key":       {Cluster{Servers: []string{"tls://a.example:4222"}, TLSCert: "c", TLSKey: "k"}, ""},
		"elsewhere, without anything": {Cluster{Servers: []string{"tls://a.example:4222"}}, "cluster.servers[0]"},
		"elsewhere, without password": {Cluster{Servers: []string{"tls://a.example:4222"}, User: "u"}, "cluster.servers[0]"},
		"elsewhere, without a user":   {Cluster{Servers: []string{"tls://a.example:4222"}, Password: NewSecret("p")}, "cluster.servers[0]"},
		"elsewhere, without TLS": {Cluster{Servers: []string{"nats://a.example:4222"}, User: "u", Password: NewSecret("p")},
			"cluster.servers[0]"},
		"the second elsewhere": {Cluster{Servers: []string{"nats://127.0.0.1:1", "nats://a.example:1"}}, "cluster.servers[1]"},
		"another scheme":       {Cluster{Servers: []string{"http://127.0.0.1:4222"}}, "cluster.servers[0]"},
		"no host":              {Cluster{Servers: []string{"nats://:4222"}}, "cluster.servers[0]"},
		"no address":           {Cluster{Servers: []string{"nats://a b"}}, "cluster.servers[0]"},
		"a login in it":        {Cluster{Servers: []string{"nats://u:p@127.0.0.1:4222"}}, "cluster.servers[0]"},
		"a certificate alone":  {Cluster{TLSCert: "c"}, "cluster.tlsCert"},
		"a key alone":          {Cluster{TLSKey: "k"}, "cluster.tlsCert"},
	} {
		key := ""
		if d := tt.c.Check(); d != nil {
			if key = d.Key; !strings.Contains(d.Reason, "cluster") {
				t.Errorf("%s: the reason is %q", name, d.Reason)
			}
		}
		if key != tt.key || tt.c.On() != (len(tt.c.Servers) > 0) {
			t.Errorf("%s: wrong is %q, want %q; on: %v", name, key, tt.key, tt.c.On())
		}
	}
}

// A person's messages from each of their accounts go to one agent, and those of others to none of it.
func TestWhoseAgentALinkNames(t *testing.T) {
	all := Links{{Agent: "ada", Users: []string{"t:1", "d:7"}}, {Agent: "bob", Users: []string{"t:2"}}}
	for user, want := range map[string]string{"t:1": "ada", "d:7": "ada", "t:2": "bob", "t:7": "", "d:1": ""} {
		connector, id, _ := strings.Cut(user, ":")
		if agent, ok := all.Of(connector, id); agent != want || ok != (want != "") {
			t.Errorf("the messages of %s go to %q, %v; want %q", user, agent, ok, want)
		}
	}
}

// A speech service is one with an address, or a program.
func TestWhetherSpeechIsSetUp(t *testing.T) {
	for _, v := range []Voicing{{URL: "http://x/v1"}, {Command: "say"}} {
		if !v.On() {
			t.Errorf("%+v is off", v)
		}
	}
	if (Voicing{Model: "m", KeyEnv: "K"}).On() {
		t.Error("a model alone is on")
	}
}
