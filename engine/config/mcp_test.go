package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/finding"
)

func TestWhatIsWrongWithMcpServers(t *testing.T) {
	for text, want := range map[string]string{
		"{id: a}":                                             "has no command and no url",
		"{id: a, command: x, url: 'http://h/'}":               "not both",
		"{id: a, url: 'http://h/', args: [x]}":                "args, env and workingDir need a command",
		"{id: a, command: x, headers: {A: b}}":                "headers need a url",
		"{id: a, command: x, env: {'A=B': c}}":                "is not the name of a variable",
		"{id: a, command: x, env: {'': c}}":                   "is not the name of a variable",
		"{id: a, url: 'http://h/', env: {A: x}}":              "args, env and workingDir need a command",
		"{id: a, url: 'http://h/', workingDir: x}":            "args, env and workingDir need a command",
		"{id: a, command: x, oauth: {clientId: i}}":           "oauth needs a url",
		"{id: a, command: x, oauth: {scopes: [s]}}":           "oauth needs a url",
		"{id: a, url: 'http://h/', oauth: {clientSecret: s}}": "a clientSecret needs a clientId",
		"{id: a/b, command: x}":                               "letters, digits",
		"{id: a, command: x}, {id: A, command: y}":            "a second time",
		"{id: a, command: x, timeout: 2h}":                    "timeout",
		"{id: a, command: x, sandbox: {off: maybe}}":          "sandbox.off",
		"{command: x}": "id",
	} {
		_, found, _ := Load(dir(t, map[string]string{Name: "mcp: {servers: [" + text + "]}\n"}), noEnv)
		err := finding.Join(found)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestWhatIsRightWithMcpServers(t *testing.T) {
	text := "mcp: {servers: [{id: a, command: x, args: [y], env: {A: b}, workingDir: z}, {id: b, url: 'http://h/', headers: {A: b}, " +
		"oauth: {clientId: i, clientSecret: s, scopes: [c]}, timeout: 5s}]}\n"
	c, found, err := Load(dir(t, map[string]string{Name: text}), noEnv)
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	if one, two := c.MCP.Servers[0].Timeout, c.MCP.Servers[1].Timeout; one != defaultMCPTimeout || two != 5*time.Second {
		t.Errorf("calls may take %v and %v", one, two)
	}
}

func TestMcpServersNameTheirSecrets(t *testing.T) {
	text := "mcp: {servers: [{id: a, command: x, env: {ApiKey: '${API_KEY}', Mode: fast}}, " +
		"{id: b, url: 'http://h/', headers: {Authorization: 'Bearer ${hub}'}}]}\n"
	env := func(name string) (string, bool) {
		return map[string]string{"API_KEY": "from-env"}[name], name == "API_KEY"
	}
	c, found, err := Load(dir(t, map[string]string{Name: text, AuthName: `{"hub": "from-auth"}`}), env)
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	a, b := c.MCP.Servers[0], c.MCP.Servers[1]
	if a.Env["ApiKey"] == "" || a.Env["Mode"] != "fast" {
		t.Errorf("the case of variables must stay: %v", a.Env)
	}
	if got, missing := c.Expand(a.Env["ApiKey"]); got != "from-env" || missing != nil {
		t.Errorf("Expand of a variable = %q, missing %v", got, missing)
	}
	if got, missing := c.Expand(b.Headers["Authorization"]); got != "Bearer from-auth" || missing != nil {
		t.Errorf("Expand of a secret = %q, missing %v", got, missing)
	}
	if got, missing := c.Expand("${nothing}"); got != "" || !slices.Equal(missing, []string{"nothing"}) {
		t.Errorf("Expand of nothing = %q, missing %v", got, missing)
	}
	if got, missing := c.Expand("${nothing:-a b}/${hub:-x}"); got != "a b/from-auth" || missing != nil {
		t.Errorf("Expand with defaults = %q, missing %v", got, missing)
	}
	for _, secret := range []string{"from-env", "from-auth"} {
		if !slices.Contains(c.Secrets(), NewSecret(secret)) {
			t.Errorf("%q must be known as a secret, so that it is redacted", secret)
		}
	}
}
