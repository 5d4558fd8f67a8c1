package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/workspace"
)

// A copy of the settings has no secret in it, in whatever way it was written there; the rest
// stays as it is, byte for byte.
func TestScrubbedSettingsHaveNoSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"control: { listen: 127.0.0.1:1, token: canary-token } # mine\n": "control: { listen: 127.0.0.1:1, token:  } # mine\n",
		"control:\n  listen: 127.0.0.1:1\n  token: \"canary-token\"\n":   "control:\n  listen: 127.0.0.1:1\n  token: \"\"\n",
		"providers:\n- id: a\n  type: openai\n  headers: { Authorization: Bearer canary-token }\n": "providers:\n- id: a\n" +
			"  type: openai\n  headers: { Authorization: Bearer  }\n",
		"modelsURL: https://me:canary-token@models.example/\n":            "modelsURL: https://me:@models.example/\n",
		"control: { listen: 127.0.0.1:1, token: \"canary\\x2dtoken\" }\n": "error",
		"control: [\n": "error",
	} {
		root := t.TempDir()
		path := filepath.Join(root, Name)
		if err := os.WriteFile(path, []byte("log: { level: info }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if want != "error" || strings.Contains(text, "token") {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, _, err := Load(root, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Scrub([]byte(text))
		if want == "error" {
			unread := err != nil && strings.Contains(err.Error(), "cannot be read")
			if err == nil || got != nil || unread != strings.HasSuffix(text, "[\n") {
				t.Errorf("%q became %q, %v; want an error of its own", text, got, err)
			}
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%q became %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestFilesThatSettingsName(t *testing.T) {
	c := Default()
	c.Providers = []Provider{{Options: Options{"script": "talk.yaml"}}, {Options: Options{"script": "/elsewhere/talk.yaml"}}}
	c.Control.TLSCert, c.Control.TLSKey = "/ws/tls/cert.pem", "tls/key.pem"
	c.Cluster.TLSCA, c.Cluster.TLSCert, c.Cluster.TLSKey = "nats/ca.pem", "nats/cert.pem", "nats/key.pem"
	all, private := c.Named(workspace.At("/ws"))
	want := "[talk.yaml tls/cert.pem nats/ca.pem nats/cert.pem nats/key.pem tls/key.pem] [nats/key.pem tls/key.pem]"
	if got := fmt.Sprint(all, private); got != want {
		t.Errorf("named are %s", got)
	}
}

// Providers may share a file: a backup has it once.
func TestAFileThatIsNamedTwiceIsListedOnce(t *testing.T) {
	c := Default()
	c.Providers = []Provider{{Options: Options{"script": "talk.yaml"}}, {Options: Options{"script": "/ws/talk.yaml"}}}
	if all, _ := c.Named(workspace.At("/ws")); fmt.Sprint(all) != "[talk.yaml]" {
		t.Errorf("named are %s", all)
	}
}
