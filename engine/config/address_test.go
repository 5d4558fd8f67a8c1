package config

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestLoginsInAddressesAreSecrets: who reads the settings, a log or a history sees no
// password that is part of an address.
func TestLoginsInAddressesAreSecrets(t *testing.T) {
	c, found, err := Load(dir(t, map[string]string{Name: `
providers:
  - { id: a, type: openai, model: m, baseURL: "http://ada:canary-one@llm.example/v1" }
  - { id: b, type: openai, model: m, baseURL: "https://canary%2Ftwo@llm.example" }
modelsURL: "https://ada:canary-three@models.example/list"
tools: { web: { search: "https://ada:canary-four@search.example/a@b" } }
connectors:
  - { id: tg, type: telegram, allow: [], baseURL: "http://ada:canary-five@bots.example" }
`}), noEnv)
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}

	masked, err := json.Marshal(c.Masked())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(masked), "canary") || !strings.Contains(string(masked), "http://[redacted]@llm.example/v1") ||
		!strings.Contains(string(masked), "https://[redacted]@search.example/a@b") {
		t.Errorf("the settings are shown as %s", masked)
	}

	var known []string
	for _, s := range c.Secrets() {
		known = append(known, s.Reveal())
	}
	all := strings.Join(known, " ")
	for _, want := range []string{"canary-one", "canary/two", "canary%2Ftwo", "canary-three", "canary-four", "canary-five"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not known to be secret: %s", want, all)
		}
	}
}

func TestHideLogin(t *testing.T) {
	for address, want := range map[string]string{
		"": "", "searxng": "searxng", "http://host/x": "http://host/x", "http://host/a@b": "http://host/a@b",
		"http://u:p@host:80/x?y": "http://[redacted]@host:80/x?y", "http://t@host": "http://[redacted]@host",
		"http://a@b@host?c@d": "http://[redacted]@host?c@d", "http://u:%zz@host": "http://[redacted]@host",
	} {
		if got := HideLogin(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}
