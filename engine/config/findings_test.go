package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"daycare/engine/finding"
	"daycare/engine/form"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// badSettings is a table of what users get wrong: the text, and each finding as
// "line:column severity: reason | remedy".
var badSettings = []struct {
	name, text string
	want       []string
}{
	{"unknown section", "log: {}\nloging: {}\n", []string{`2:1 warning: loging is unknown and ignored | did you mean "log"?`}},
	{"unknown key", "log:\n  levle: info\n", []string{`2:3 warning: log.levle is unknown and ignored | did you mean "level"?`}},
	{"wrong case", "agents: {maxchildren: 3}\n",
		[]string{`1:10 warning: agents.maxchildren is unknown and ignored | did you mean "maxChildren"?`}},
	{"far off", "log:\n  colour: red\n", []string{"2:3 warning: log.colour is unknown and ignored | known here: level, format, file"}},
	{"not a word of the list", "log:\n  level: loud\n",
		[]string{`2:10 error: log.level: found the text "loud", allowed: debug, info, warn, error`}},
	{"number for a word", "log:\n  level: 3\n", []string{`2:10 error: log.level: found 3, allowed: debug, info, warn, error`}},
	{"text for a number", "agents:\n  parallelTools: four\n",
		[]string{`2:18 error: agents.parallelTools: found the text "four", allowed: a whole number from 1 to 64`}},
	{"quoted number", "agents: {maxChildren: \"8\"}\n",
		[]string{`1:23 error: agents.maxChildren: found the text "8", allowed: a whole number of at least 0`}},
	{"fraction", "agents: {maxChildren: 1.5}\n",
		[]string{`1:23 error: agents.maxChildren: found 1.5, allowed: a whole number of at least 0`}},
	{"too small", "agents:\n  toolRounds:\n    foreground: 0\n",
		[]string{`3:17 error: agents.toolRounds.foreground: found 0, allowed: a whole number from 1 to 1000`}},
	{"negative", "budget: {perDay: {usd: -1}}\n", []string{`1:24 error: budget.perDay.usd: found -1, allowed: a number of at least 0`}},
	{"not a number", "budget: {perDay: {usd: .nan}}\n",
		[]string{`1:24 error: budget.perDay.usd: found .nan, allowed: a number of at least 0`}},
	{"duration without unit", "permissions:\n  expiry: 24\n",
		[]string{`2:11 error: permissions.expiry: found 24, allowed: a duration such as 30s, 5m or 1h30m of at least 1m`}},
	{"duration in words", "heartbeat: {every: half an hour}\n",
		[]string{`1:20 error: heartbeat.every: found the text "half an hour", allowed: 0 for never, or a duration such as 30m or 1h30m ` +
			`of at least 1m`}},
	{"negative duration", "tools: {exec: {timeout: -5s}}\n",
		[]string{`1:25 error: tools.exec.timeout: found the text "-5s", allowed: a duration such as 30s, 5m or 1h30m from 1s to 30m`}},
	{"yes for true", "permissions: {defaults: {web: \"on\"}}\n",
		[]string{`1:31 error: permissions.defaults.web: found the text "on", allowed: true or false`}},
	{"value for a section", "log: debug\n", []string{`1:6 error: log: found the text "debug", allowed: keys and values`}},
	{"value for a list", "connectors:\n  - id: t\n    type: telegram\n    allow: 5550001\n",
		[]string{`4:12 error: connectors[0].allow: found 5550001, allowed: a list: each entry on a line that begins with "- "`}},
	{"list for a value", "cron: {timezone: [a]}\n",
		[]string{`1:18 error: cron.timezone: found a list, allowed: an IANA time zone such as Europe/Berlin`}},
	{"zone", "cron: {timezone: Berlin}\n",
		[]string{`1:18 error: cron.timezone: found the text "Berlin", allowed: an IANA time zone such as Europe/Berlin`}},
	{"lan without port", "permissions: {defaults: {lan: [nas.home]}}\n", []string{
		`1:32 error: permissions.defaults.lan[0]: found the text "nas.home", allowed: HOST:PORT of one host in your network, such as ` +
			`nas.home:8080`}},
	{"lan of all", "permissions: {defaults: {lan: [\":80\"]}}\n", []string{
		`1:32 error: permissions.defaults.lan[0]: found the text ":80", allowed: HOST:PORT of one host in your network, such as ` +
			`nas.home:8080`}},
	{"a host in the network", "permissions:\n  defaults:\n    hosts: [a.org, 192.168.1.5]\n", []string{
		`3:20 warning: permissions.defaults.hosts[1]: "192.168.1.5" is not on the Internet, so this has no effect | name it with its ` +
			`port in permissions.defaults.lan`}},
	{"hours", "heartbeat: {activeHours: 8-22}\n",
		[]string{`1:26 error: heartbeat.activeHours: found the text "8-22", allowed: hours such as "08:00-22:00"`}},
	{"provider type", "providers:\n  - {id: a, type: claude}\n",
		[]string{`2:19 error: providers[0].type: found the text "claude", allowed: anthropic, openai, gemini, scripted`}},
	{"missing id", "providers:\n  - type: anthropic\n", []string{`2:5 error: providers[0].id is missing`}},
	{"missing model", "providers:\n  - {id: a, type: openai, baseURL: \"http://x/v1\"}\n",
		[]string{`2:5 error: providers[0].model is missing: this service has no default`}},
	{"url", "providers:\n  - {id: a, type: openai, model: m, baseURL: localhost:8080}\n",
		[]string{`2:46 error: providers[0].baseURL: found the text "localhost:8080", allowed: an address that starts with http:// ` +
			`or https://`}},
	{"key for its name", "providers:\n  - {id: a, type: anthropic, apiKeyEnv: sk-ant-123}\n",
		[]string{`2:41 error: providers[0].apiKeyEnv: found something else, allowed: the name of an environment variable, not the ` +
			`secret itself`}},
	{"bad id", "connectors:\n  - {id: my chat, type: telegram}\n",
		[]string{`2:10 error: connectors[0].id: found the text "my chat", allowed: letters, digits, dot, dash and underscore, at most 64`}},
	{"same id", "connectors:\n  - {id: a, type: telegram}\n  - {id: A, type: telegram}\n",
		[]string{`3:10 error: connectors[1].id: found "A" a second time, first on line 2`}},
	{"connector type", "connectors:\n  - {id: a, type: telegrm}\n",
		[]string{`2:19 error: connectors[0].type: found "telegrm", allowed: telegram, webhook | did you mean "telegram"?`}},
	{"api's id", "connectors:\n  - {id: api, type: webhook}\n",
		[]string{`2:10 error: connectors[0].id: found "api", which is reserved for the control API; use another id`}},
	{"the id of MCP clients", "connectors:\n  - {id: mcp, type: webhook}\n",
		[]string{`2:10 error: connectors[0].id: found "mcp", which is reserved for MCP clients; use another id`}},
	{"a blank agent for MCP", "mcp: {serve: {agents: [\"0/\", \" \"]}}\n",
		[]string{`1:30 error: mcp.serve.agents[1] is empty | write the handle, the name or the id of an agent, or remove the line`}},
	{"the terminal's id", "connectors:\n  - {id: terminal, type: webhook}\n",
		[]string{`2:10 error: connectors[0].id: found "terminal", which is reserved for the terminal; use another id`}},
	{"editors' id", "connectors:\n  - {id: acp, type: webhook}\n",
		[]string{`2:10 error: connectors[0].id: found "acp", which is reserved for editors (daycare acp); use another id`}},
	{"page to the world", "web: {listen: \"0.0.0.0:7331\"}\n",
		[]string{`1:15 error: web.listen: "0.0.0.0" is not a loopback address and needs control.tlsCert and control.tlsKey | ` +
			`listen on 127.0.0.1, or name a certificate and its key`}},
	{"page on loopback", "web: {listen: \"127.0.0.1:7331\", hosts: [box.example.org, \"localhost:9000\"]}\n", nil},
	{"page under an address", "web: {hosts: [\"https://box.example.org\"]}\n",
		[]string{`1:15 error: web.hosts: found "https://box.example.org", allowed: a name such as box.example.org, or with a port`}},
	{"reserved for the page", "connectors:\n  - {id: web, type: webhook}\n",
		[]string{`2:10 error: connectors[0].id: found "web", which is reserved for the page; use another id`}},
	{"listen", "control: {listen: 7331, token: t}\n",
		[]string{`1:19 error: control.listen: found 7331, allowed: HOST:PORT, such as 127.0.0.1:7331`}},
	{"listen without token", "control: {listen: \"127.0.0.1:7331\"}\n",
		[]string{`1:19 error: control.listen needs a token | set one with: daycare auth set control`}},
	{"listen to the world", "control: {listen: \"0.0.0.0:7331\", token: t}\n",
		[]string{`1:19 error: control.listen: "0.0.0.0" is not a loopback address and needs tlsCert and tlsKey | listen on 127.0.0.1, ` +
			`or name a certificate and its key`}},
	{"a certificate without its key", "control: {tlsKey: a.pem}\n",
		[]string{`1:10 error: control: found one of tlsCert and tlsKey, allowed: both or neither`}},
	{"half a certificate", "control: {tlsCert: a.pem}\n",
		[]string{`1:10 error: control: found one of tlsCert and tlsKey, allowed: both or neither`}},
	{"what is not there yet", "tools:\n  mcp:\n    - id: x\n",
		[]string{`2:3 warning: tools.mcp is unknown and ignored | known here: exec, web`}},
	{"a service without a default", "providers: [{id: a, type: openai, baseURL: \"http://127.0.0.1:1/v1\"}]\n",
		[]string{`1:13 error: providers[0].model is missing: this service has no default`}},
	{"pairing of programs", "connectors:\n  - {id: w, type: webhook, pairing: true}\n", []string{
		`2:37 warning: connectors[0].pairing: a webhook has secrets instead of users | take it out`}},
	{"an owner who is a stranger", "connectors:\n  - {id: t, type: telegram, allow: [a, B], owners: [b, c]}\n", []string{
		`2:52 error: connectors[0].owners: "c" is not in allow, so their messages are refused | add the id to allow of this connector, ` +
			`or remove it from owners`}},
	{"routes", "providers:\n  - {id: claude, type: scripted, model: one/big}\nrouting:\n  heartbeat: claud\n  summary: claude/small\n" +
		"  subagent: one/big\n", []string{
		`4:14 error: routing.heartbeat: found "claud", and no provider has that id or model | did you mean "claude"?`}},
	{"a route to nothing like it", "providers: [{id: claude, type: scripted}]\nrouting: {summary: x}\n", []string{
		`2:20 error: routing.summary: found "x", and no provider has that id or model | write PROVIDER or PROVIDER/MODEL, with a ` +
			`PROVIDER of the list providers`}},
	{"routes of the environment", "routing:\n  heartbeat: claud\n", nil},
	{"unused model", "providers: [{id: a, type: scripted}]\nmodels: [{id: m, provider: b}]\n",
		[]string{`2:28 warning: models[0].provider: no provider has the id "b" | use an id from the list providers`}},
	{"key twice", "log:\n  level: info\n  level: warn\n", []string{`3:3 error: log.level appears twice, first on line 2`}},
	{"not YAML", "log:\n  level: info\n bad: [\n", []string{`2 error: not YAML: did not find expected key`}},
	{"tab", "log:\n\tlevel: info\n", []string{`2:1 error: not YAML: found a tab in front of the line, allowed: spaces`}},
	{"a tab behind spaces", "log:\n  file: x\n \tlevel: info\n",
		[]string{`3:2 error: not YAML: found a tab in front of the line, allowed: spaces`}},
	{"a tab elsewhere", "log:\tx: [\n", []string{`1 error: not YAML: mapping values are not allowed in this context`}},
	{"Latin-1", "log:\n  level: info\n# caf\xe9\n", []string{`3:6 error: not YAML: found the byte 0xe9, allowed: text in UTF-8`}},
	{"a control character", "log:\n  level: \"\x1b[2J\"\n",
		[]string{`2:11 error: not YAML: found the character U+001B, allowed: text in UTF-8`}},
	{"zeros, as after a power cut", "log:\n\x00\x00", []string{`2:1 error: not YAML: found the character U+0000, allowed: text in UTF-8`}},
	{"two providers of one id", "providers:\n  - {id: a, type: scripted}\n  - {id: a, type: scripted}\n",
		[]string{`3:10 error: providers[1].id: found "a" a second time, first on line 2`}},
	{"speech twice", "speech: {transcribe: {url: \"http://x/v1\", command: c}, speak: {command: c}}\n",
		[]string{`1:52 error: speech.transcribe.command: found both a command and a url; remove one of them`}},
	{"a cluster without TLS", "cluster: {servers: [\"nats://a.example:4222\"]}\n",
		[]string{`1:21 error: cluster.servers[0]: a.example:4222 is not on this machine and needs TLS | write tls://a.example:4222`}},
	{"links", "connectors:\n  - {id: t, type: telegram, allow: [\"1\"]}\n  - {id: w, type: webhook, agentId: x}\nlinks:\n" +
		"  - {agent: ada, users: [\"t:1\", t, \"none:1\", \"w:1\"]}\n  - {agent: bob, users: [\"t:1\", \"t:2\"]}\n", []string{
		`5:33 error: links[0].users[1]: found "t", allowed: CONNECTOR:USER such as "telegram:5550001"`,
		`5:36 error: links[0].users[2]: found "none:1", but no connector has the id none`,
		`5:46 error: links[0].users[3]: found "w:1", but all messages of w go to its agentId; remove one of them`,
		`6:26 error: links[1].users[0]: found "t:1", which is in another link; a person has one agent`,
		`6:33 warning: links[1].users[1]: 2 is not in allow of t | add the id to allow of the connector; until then their messages ` +
			`are refused`}},
	{"list at the top", "- a\n", []string{`1:1 error: the file: found a list, allowed: keys and values`}},
	{"two documents", "log: {}\n---\nlog: {}\n", []string{`2 error: there is a second document after ---, allowed: one`}},
	{"column in bytes", "log: {file: ü, levle: info}\n",
		[]string{`1:17 warning: log.levle is unknown and ignored | did you mean "level"?`}},
	{"all at once", "log: {level: loud}\nagents: {queue: none, x: 1}\n", []string{
		`1:14 error: log.level: found the text "loud", allowed: debug, info, warn, error`,
		`2:17 error: agents.queue: found the text "none", allowed: steer, followup, collect, interrupt`,
		`2:23 warning: agents.x is unknown and ignored | known here: emergencyContextLimit, toolRounds, parallelTools, queue, perMinute,` +
			` maxChildren, maxRunningChildren, maxSpawned, maxAwake, subagentTTL, worktrees`}},
}

func tell(found []finding.Finding) []string {
	var lines []string
	for _, f := range found {
		place := fmt.Sprint(f.Line)
		if f.Column > 0 {
			place += fmt.Sprintf(":%d", f.Column)
		}
		s := fmt.Sprintf("%s %s: %s", place, f.Severity, f.Reason)
		if f.Remedy != "" {
			s += " | " + f.Remedy
		}
		lines = append(lines, s)
	}
	return lines
}

// kindsOf are types of connectors that accept all settings.
func kindsOf(types ...string) (kinds []ConnectorKind) {
	for _, t := range types {
		kinds = append(kinds, ConnectorKind{Type: t, Check: func(Connector) []finding.Finding { return nil }})
	}

	return kinds
}

// The settings of a connector are checked with the others. What keeps only that connector
// from running does not refuse the rest.
func TestSettingsOfConnectorsAreChecked(t *testing.T) {
	text := "connectors:\n  - id: chat\n    type: irc\n    server: here\n    chanels: [a]\n"
	root := dir(t, map[string]string{Name: text})
	check := func(c Connector) []finding.Finding {
		var options struct {
			Server   string   `json:"server"`
			Channels []string `json:"channels"`
		}
		return append(c.Decode(&options), c.Invalid(errors.New("server: found \"here\"\nnick: missing"))...)
	}
	conf, found, err := Load(root, noEnv, ConnectorKind{Type: "irc", Check: check})
	if err != nil || conf == nil {
		t.Fatal(err)
	}
	want := []string{`5:5 warning: connector chat: chanels is unknown and ignored | did you mean "channels"?`}
	if d := cmp.Diff(want, tell(found)); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}

	want = append(want, `4:13 error: connector chat: server: found "here"`, `2:5 error: connector chat: nick: missing`)
	if d := cmp.Diff(want, tell(check(conf.Connectors[0]))); d != "" {
		t.Errorf("of the connector (-want +got):\n%s", d)
	}
}

func TestBadSettings(t *testing.T) {
	for _, c := range badSettings {
		t.Run(c.name, func(t *testing.T) {
			root := dir(t, map[string]string{Name: c.text})
			conf, found, err := Load(root, noEnv, kindsOf("telegram", "webhook")...)
			if d := cmp.Diff(c.want, tell(found)); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
			if bad := finding.Join(found) != nil; bad != (err != nil) || bad != (conf == nil) {
				t.Errorf("error %v, config %v, with findings %v", err, conf, found)
			}
			for _, f := range found {
				if f.File != filepath.Join(root, Name) || f.ID == "" {
					t.Errorf("finding without file or id: %+v", f)
				}
			}
		})
	}
}

func TestBadEnvironment(t *testing.T) {
	_, found, err := Load(t.TempDir(), environment(map[string]string{"DAYCARE_LOG_LEVEL": "loud", "DAYCARE_TOOLS_EXEC_TIMEOUT": "5"}))
	want := []string{
		`0 error: DAYCARE_TOOLS_EXEC_TIMEOUT: found "5", allowed: a duration such as 30s, 5m or 1h30m from 1s to 30m | change or unset ` +
			`the variable`,
		`0 error: DAYCARE_LOG_LEVEL: found "loud", allowed: debug, info, warn, error | change or unset the variable`,
	}
	if d := cmp.Diff(want, tell(found)); d != "" || err == nil {
		t.Errorf("error %v, findings (-want +got):\n%s", err, d)
	}
}

func TestAuth(t *testing.T) {
	const settings = "providers: [{id: main-one, type: anthropic}]\nconnectors: [{id: tg, type: telegram, tokenEnv: TG}]\n"
	root := dir(t, map[string]string{Name: settings, AuthName: `{"main-one": "file-key", "tg": "file-tg", "control": "ctl"}`})
	load := func(env map[string]string) *Config {
		t.Helper()
		c, found, err := Load(root, environment(env))
		if err != nil || len(found) > 0 {
			t.Fatal(err, found)
		}
		return c
	}
	c := load(nil)
	if c.Providers[0].APIKey.Reveal() != "file-key" || c.Secret("tg").Reveal() != "file-tg" || c.Control.Token.Reveal() != "ctl" {
		t.Errorf("secrets of auth.json are not used")
	}
	env := map[string]string{"DAYCARE_SECRET_MAIN_ONE": "env-key", "DAYCARE_SECRET_TG": "env-tg", "TG": "named"}
	c = load(env)
	if c.Providers[0].APIKey.Reveal() != "env-key" || c.Secret("tg").Reveal() != "env-tg" || c.SecretEnv("TG").Reveal() != "named" {
		t.Errorf("the environment does not win over auth.json")
	}
	env["ANTHROPIC_API_KEY"] = "vendor-key"
	if c = load(env); c.Providers[0].APIKey.Reveal() != "vendor-key" {
		t.Errorf("the vendor's variable does not win")
	}
	var all []string
	for _, s := range c.Secrets() {
		all = append(all, s.Reveal())
	}
	if d := cmp.Diff([]string{"ctl", "env-key", "env-tg", "file-key", "file-tg", "named", "vendor-key"}, all); d != "" {
		t.Errorf("Secrets (-want +got):\n%s", d)
	}
}

// TestVendorKeyStaysHome: a key in the environment is not sent to other services.
func TestVendorKeyStaysHome(t *testing.T) {
	root := dir(t, map[string]string{Name: "providers: [{id: x, type: openai, model: m, baseURL: \"http://127.0.0.1:1/v1\"}]\n"})
	c, _, err := Load(root, environment(map[string]string{"OPENAI_API_KEY": "sk"}))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Providers[0].APIKey.IsZero() {
		t.Error("OPENAI_API_KEY is used for another service")
	}
}

func TestBadAuth(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON": {"{\n  \"tg\": s3cret\n}", `2:9 error: not JSON | write one object that maps ids to secrets: { "telegram": "…" }`},
		"a list": {`["s3cret"]`, `1:1 error: found a list, allowed: one JSON object | write one object that maps ids to secrets: { ` +
			`"telegram": "…" }`},
		"a number": {`{"tg": 5}`, `1:8 error: tg: found something else, allowed: a text | write one object that maps ids to secrets: { ` +
			`"telegram": "…" }`},
	} {
		t.Run(name, func(t *testing.T) {
			_, found, err := Load(dir(t, map[string]string{AuthName: c.text}), noEnv)
			if d := cmp.Diff([]string{c.want}, tell(found)); d != "" || err == nil {
				t.Errorf("error %v, findings (-want +got):\n%s", err, d)
			}
			if strings.Contains(fmt.Sprint(err, found), "s3cret") {
				t.Error("the finding holds the secret")
			}
		})
	}
	root := dir(t, map[string]string{AuthName: "{}"})
	if err := os.Chmod(filepath.Join(root, AuthName), 0o644); err != nil {
		t.Fatal(err)
	}
	_, found, err := Load(root, noEnv)
	if err != nil || len(found) != 1 || found[0].ID != "auth-mode" || found[0].Severity != finding.Warning {
		t.Errorf("mode 0644: error %v, findings %v", err, found)
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	const value = "hunter2"
	s := NewSecret(value)
	holder := struct {
		S Secret
		P *Secret
	}{s, &s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", holder)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "s", s, "h", holder)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "s", s, "h", holder)
	j, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	text := out.String() + string(j) + string(y)
	for _, leak := range []string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value)} {
		if strings.Contains(text, leak) {
			t.Errorf("the secret shows as %q in:\n%s", leak, text)
		}
	}
	if s.Reveal() != value || !strings.Contains(string(j), "[redacted]") {
		t.Errorf("Reveal %q, JSON %s", s.Reveal(), j)
	}
}

func TestMasked(t *testing.T) {
	c, _, err := Load(dir(t, map[string]string{Name: full}), environment(map[string]string{"LOCAL_KEY": "k1"}))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(c.Masked(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{"s3cret-token", "k1", "Blue", "Baz", "high"} {
		if bytes.Contains(data, []byte(`"`+leak+`"`)) {
			t.Errorf("Masked shows %q", leak)
		}
	}
	for _, want := range []string{`"token": "[redacted]"`, `"subagentTTL": "1h30m"`, `"expiry": "1h"`, `"every": "0s"`,
		`"X-Team": "[redacted]"`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("Masked does not show %s:\n%s", want, data)
		}
	}
}

func TestConnectorDecode(t *testing.T) {
	type hook struct {
		ID     string `json:"id" check:"id,required"`
		Secret string `json:"secretEnv" check:"env"`
	}
	type options struct {
		Listen string `json:"listen" check:"listen"`
		Mode   string `json:"mode" allow:"poll|push"`
		Hooks  []hook `json:"hooks"`
	}
	load := func(entry string) Connector {
		t.Helper()
		c, found, err := Load(dir(t, map[string]string{Name: "connectors:\n  - id: hooks\n    type: webhook\n    allow: []\n" +
			entry}), noEnv)
		if err != nil || len(found) > 0 {
			t.Fatal(err, found)
		}
		return c.Connectors[0]
	}
	got := options{Mode: "poll"}
	if found := load("    listen: \"127.0.0.1:80\"\n    hooks: [{id: Ci, secretEnv: CI_SECRET}]\n").Decode(&got); len(found) > 0 {
		t.Fatal(found)
	}
	if d := cmp.Diff(options{"127.0.0.1:80", "poll", []hook{{"Ci", "CI_SECRET"}}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	found := load("    listn: x\n    mode: pull\n    hooks: [{secretEnv: A}]\n").Decode(&got)
	want := []string{
		`5:5 warning: connector hooks: listn is unknown and ignored | did you mean "listen"?`,
		`6:11 error: connector hooks: mode: found the text "pull", allowed: poll, push`,
		`7:13 error: connector hooks: hooks[0].id is missing`,
	}
	if d := cmp.Diff(want, tell(found)); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
}

// missing fails for each key of the schema that the example does not show.
func missing(t *testing.T, f *form.File, typ reflect.Type, path string) {
	t.Helper()
	if typ == reflect.TypeFor[[]Hook]() && path != "hooks.before_tool" {
		return // the keys of a hook are listed once
	}
	if typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct {
		typ, path = typ.Elem(), path+"[0]"
	}
	if typ.Kind() != reflect.Struct || typ == secretType {
		return
	}
	for _, field := range form.Fields(typ) {
		at := form.Join(path, field.Key)
		if !f.Has(at) {
			t.Errorf("settings.example.yaml does not have %s", at)
			continue
		}
		missing(t, f, field.Type, at)
	}
}

// The OpenAI format has one place in the API, so one connector can serve it, for tokens and not
// for users.
func TestOneConnectorServesTheOpenAIFormat(t *testing.T) {
	const text = "connectors:\n  - {id: a, type: openai}\n  - {id: b, type: openai, pairing: true}\n"
	_, found, err := Load(dir(t, map[string]string{Name: text}), noEnv, kindsOf("openai")...)
	if err == nil || len(found) != 2 || found[0].Line != 3 || found[1].Line != 3 {
		t.Errorf("%+v, %v", found, err)
	}
	_, found, err = Load(dir(t, map[string]string{Name: "connectors:\n  - {id: a, type: openai}\n"}), noEnv, kindsOf("openai")...)
	if err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
