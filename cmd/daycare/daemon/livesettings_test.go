package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/commandtest"
	"daycare/engine/address"
	"daycare/engine/config"
	"daycare/engine/permission"
	"daycare/engine/record"
	ws "daycare/engine/workspace"
	"daycare/tools"
	"daycare/tools/hooks"
)

// A live setting is a key of the settings that applies as soon as the file is read: two
// values of it, and what shows which one applies, in the parts that use it.
type live struct {
	one, two string
	shows    func(r *Daemon) any
}

// liveSettings is every key that applies without a restart. TestEverySettingAppliesAtOnceOrNeedsARestart
// holds it against the settings: a key that is in neither list fails.
func liveSettings() map[string]live {
	figures := func(r *Daemon) any { return factory{r}.settingsFor(address.Descriptor{Type: address.User}) }
	limits := func(r *Daemon) any { return r.limits() }
	routed := func(t address.Type) func(r *Daemon) any {
		return func(r *Daemon) any { return factory{r}.settingsFor(address.Descriptor{Type: t}).Routes.Own }
	}
	state := func(r *Daemon) any {
		data, err := factory{r}.newState(address.Descriptor{Type: address.Permanent, Name: "x"})
		s, _ := record.ParseState("state.json", data)
		return fmt.Sprint(s.Permissions.Web, s.Permissions.Hosts, s.Permissions.Lan, err)
	}
	provider := func(key, one, two string) live {
		entry := func(v string) string {
			return "[{id: p, type: openai, model: m, baseURL: 'http://127.0.0.1:1', " + v + "}]"
		}
		return live{entry(key + ": " + one), entry(key + ": " + two),
			func(r *Daemon) any { return fmt.Sprint(r.models.Load().Settings) }}
	}
	model := func(key, one, two string) live {
		entry := func(v string) string { return "[{id: my-model, " + key + ": " + v + "}]" }
		return live{entry(one), entry(two), func(r *Daemon) any {
			m, _ := r.models.Load().Catalogue.Find("p", "my-model")
			return fmt.Sprint(m.Window, m.MaxOutput, m.Images, m.Documents, m.PriceAt(time.Now(), 0))
		}}
	}
	connector := func(key, one, two string) live {
		entry := func(v string) string {
			return "[{id: hook, type: webhook, allow: [a, b], hooks: [], " + key + ": " + v + "}]"
		}
		return live{entry(one), entry(two), func(r *Daemon) any {
			ids, ceiling := authority{r}.owners("hook")
			return fmt.Sprint(ids, ceiling, r.connectors.built[0].settings)
		}}
	}
	exec := func(r *Daemon) any {
		tool, _, _ := r.tools.Get("exec")
		need, err := tool.(tools.Asks).Needs(tools.Call{Name: "exec", Arguments: json.RawMessage(`{"command":"true"}`),
			Access: permission.Default(r.at.Dir)})
		return fmt.Sprint(need != nil, err)
	}
	return map[string]live{
		"permissions.expiry": {"1h", "2h", func(r *Daemon) any {
			p, _, err := r.asks.Ask("agent", permission.Owner{},
				permission.Request{Tag: "@web:" + fmt.Sprint(time.Now().UnixNano()) + ".example"})
			return fmt.Sprint(p.ExpiresAt.Sub(p.AskedAt), err)
		}},
		"permissions.profile": {"auto", "read-only",
			func(r *Daemon) any { return fmt.Sprint(figures(r), r.under(permission.Set{}).Profile) }},
		"permissions.defaults.web":   {"false", "true", state},
		"permissions.defaults.hosts": {"[a.example]", "[b.example]", state},
		"permissions.defaults.lan":   {"['a.home:1']", "['b.home:1']", state},
		"permissions.defaults.exec":  {"sandbox", "ask", exec},

		"agents.emergencyContextLimit": {"2000", "3000", figures}, "agents.parallelTools": {"2", "3", figures},
		"agents.queue":                 {"steer", "collect", figures},
		"agents.toolRounds.foreground": {"2", "3", figures},
		"agents.toolRounds.background": {"2", "3",
			func(r *Daemon) any { return factory{r}.settingsFor(address.Descriptor{Type: address.Permanent}) }},
		"agents.maxAwake":    {"2", "3", func(r *Daemon) any { return r.settings.Current().Agents.MaxAwake }},
		"agents.perMinute":   {"2", "3", func(r *Daemon) any { return r.settings.Current().Agents.PerMinute }},
		"agents.maxChildren": {"2", "3", limits}, "agents.maxRunningChildren": {"2", "3", limits},
		"agents.maxSpawned": {"2", "3", limits}, "agents.subagentTTL": {"1h", "2h", limits},
		"agents.worktrees":      {"false", "true", func(r *Daemon) any { return worktrees{r}.wanted(address.Descriptor{}) }},
		"cron.timezone":         {"Europe/Berlin", "Asia/Tokyo", func(r *Daemon) any { return r.clocks.Zone().String() }},
		"budget.onLimit":        {"stop", "ask", func(r *Daemon) any { return factory{r}.settingsFor(address.Descriptor{}).StopAtLimit }},
		"heartbeat.every":       {"1h", "2h", func(r *Daemon) any { return r.clocks.Every() }},
		"heartbeat.activeHours": {`"08:00-22:00"`, `"09:00-22:00"`, func(r *Daemon) any { return fmt.Sprint(r.clocks.Hours()) }},

		"providers.id": {"[{id: a, type: scripted}]", "[{id: b, type: scripted}]",
			func(r *Daemon) any { return r.models.Load().First().ID }},
		"providers.type": {"[{id: a, type: scripted}]", "[{id: a, type: openai, model: m, baseURL: 'http://127.0.0.1:1'}]",
			func(r *Daemon) any { return r.models.Load().First().Type }},
		"providers.baseURL": {"[{id: p, type: openai, model: m, baseURL: 'http://127.0.0.1:1'}]",
			"[{id: p, type: openai, model: m, baseURL: 'http://127.0.0.1:2'}]",
			func(r *Daemon) any { return r.models.Load().First().BaseURL }},
		"providers.model": {"[{id: p, type: openai, model: m, baseURL: 'http://127.0.0.1:1'}]",
			"[{id: p, type: openai, model: n, baseURL: 'http://127.0.0.1:1'}]",
			func(r *Daemon) any { return r.models.Load().First().Model }},
		"providers.apiKeyEnv": provider("apiKeyEnv", "A_KEY", "B_KEY"), "providers.concurrency": provider("concurrency", "1", "2"),
		"providers.headers": provider("headers", "{x: a}", "{x: b}"), "providers.options": provider("options", "{x: a}", "{x: b}"),

		"routing.summary":   {"fake", "fake/other", figures},
		"routing.heartbeat": {"fake", "fake/other", routed(address.Heartbeat)},
		"routing.subagent":  {"fake", "fake/other", routed(address.Subagent)},

		"models.id":        {"[{id: my-model, window: 9}]", "[{id: other, window: 9}]", model("window", "", "").shows},
		"models.window":    model("window", "1000", "2000"),
		"models.provider":  {"[{id: my-model, window: 9}]", "[{id: my-model, window: 9, provider: q}]", model("window", "", "").shows},
		"models.maxOutput": model("maxOutput", "100", "200"), "models.images": model("images", "true", "false"),
		"models.documents":        model("documents", "true", "false"),
		"models.price.input":      model("price", "{input: 1}", "{input: 2}"),
		"models.price.output":     model("price", "{output: 1}", "{output: 2}"),
		"models.price.cacheRead":  model("price", "{cacheRead: 1}", "{cacheRead: 2}"),
		"models.price.cacheWrite": model("price", "{cacheWrite: 1}", "{cacheWrite: 2}"),

		"connectors.id": {"[{id: hook, type: webhook}]", "[{id: other, type: webhook}]",
			func(r *Daemon) any { return r.connectors.built[0].id }},
		"connectors.type": {"[{id: hook, type: webhook}]", "[{id: hook, type: irc}]",
			func(r *Daemon) any { return r.connectors.built[0].settings }},
		"connectors.allow": {"[{id: hook, type: webhook, allow: [a]}]", "[{id: hook, type: webhook, allow: [b]}]",
			connector("", "", "").shows},
		"connectors.owners":  connector("owners", "[a]", "[b]"),
		"connectors.pairing": connector("pairing", "true", "false"),
		"connectors.ceiling": connector("ceiling", "['@web:a.example']", "['@web:b.example']"),
		"connectors.agentId": connector("agentId", "a", "b"),
		"connectors.queue": {"[{id: hook, type: webhook, queue: steer}]",
			"[{id: hook, type: webhook, queue: collect}]", func(r *Daemon) any { return r.queueOf("hook") }},
	}
}

// liveHooks are the keys of hooks: all of one list, and that each list is read.
func liveHooks() map[string]live {
	known := map[string]live{}
	inForce := func(r *Daemon) any {
		list, err := hooked{r}.Hooks(context.Background())
		return fmt.Sprint(list, hooked{r}.Any(hooks.BeforeTool, "exec"), err)
	}
	add := func(event, key, one, two string) {
		entry := func(v string) string { return "{ " + event + ": [ { command: x" + v + " } ] }" }
		known["hooks."+event+"."+key] = live{entry(one), entry(two), inForce}
	}
	for _, e := range hooks.Events {
		add(string(e), "command", "y", "z")
	}
	for key, values := range map[string][2]string{"matcher": {"exec", "edit"}, "timeout": {"1s", "2s"}, "onError": {"allow", "deny"},
		"sandbox": {"true", "false"}, "approve": {"true", "false"}} {
		add(string(hooks.BeforeTool), key, ", "+key+": "+values[0], ", "+key+": "+values[1])
	}
	return known
}

// liveMCP are the keys of MCP servers: the pool of servers is another after each change.
func liveMCP() map[string]live {
	known := map[string]live{"mcp.toolTokens": {"100", "200", func(r *Daemon) any { return r.settings.Current().MCP.ToolTokens }}}
	offered := func(r *Daemon) any { return fmt.Sprint(mcpServer{r}.offer()) }
	known["mcp.serve.agents"], known["mcp.serve.memory"] = live{"[0/]", "[1/]", offered}, live{"true", "false", offered}
	server := func(key, one, two string) {
		entry := func(text string) string { return "{ servers: [ { " + text + " } ] }" }
		known["mcp.servers."+key] = live{entry(one), entry(two), func(r *Daemon) any { return r.mcp.Version() }}
	}
	server("id", "id: a, command: x", "id: b, command: x")
	server("command", "id: a, command: x", "id: a, command: y")
	server("url", "id: a, url: 'http://127.0.0.1:1'", "id: a, url: 'http://127.0.0.1:2'")
	server("headers", "id: a, url: 'http://127.0.0.1:1', headers: {x: a}", "id: a, url: 'http://127.0.0.1:1', headers: {x: b}")
	for key, values := range map[string][2]string{"args": {"[a]", "[b]"}, "env": {"{A: a}", "{A: b}"}, "workingDir": {"a", "b"},
		"timeout": {"1m", "2m"}} {
		server(key, "id: a, command: x, "+key+": "+values[0], "id: a, command: x, "+key+": "+values[1])
	}
	for key, values := range map[string][2]string{"off": {"true", "false"}, "read": {"[a]", "[b]"}, "write": {"[a]", "[b]"},
		"network": {"[a.example]", "[b.example]"}} {
		entry := func(n int) string { return "id: a, command: x, sandbox: {" + key + ": " + values[n] + "}" }
		server("sandbox."+key, entry(0), entry(1))
	}
	for key, values := range map[string][2]string{"clientId": {"a", "b"}, "clientSecret": {"a", "b"}, "scopes": {"[a]", "[b]"}} {
		entry := func(n int) string {
			more := map[bool]string{true: ", clientId: c"}[key == "clientSecret"]
			return "id: a, url: 'http://127.0.0.1:1', oauth: {" + key + ": " + values[n] + more + "}"
		}
		server("oauth."+key, entry(0), entry(1))
	}
	return known
}

// liveTalk are the keys of how users and agents talk.
func liveTalk() map[string]live {
	known := map[string]live{}
	for key, values := range map[string][2]string{"groups": {"mention", "always"}, "agentPer": {"user", "chat"}, "language": {"en", "de"},
		"quiet": {"'22:00-07:00'", "'23:00-07:00'"}, "stream": {"true", "false"}, "reactions": {"note", "answer"},
		"speak": {"never", "voice"}} {
		entry := func(n int) string {
			return "[{id: hook, type: webhook, allow: [a], hooks: [], " + key + ": " + values[n] + "}]"
		}
		known["connectors."+key] = live{entry(0), entry(1), func(r *Daemon) any {
			k, _ := r.settings.Current().Connector("hook")
			return fmt.Sprint(chats{r}.talk("hook"), k.Quiet, k.Speak)
		}}
	}

	speech := func(r *Daemon) any { return fmt.Sprintf("%+v", r.settings.Current().Speech) }
	known["speech.transcribe.language"], known["speech.speak.voice"] = live{"de", "en", speech}, live{"a", "b", speech}
	for _, of := range []string{"transcribe", "speak"} {
		for key, values := range map[string][2]string{"url": {"'http://127.0.0.1:1'", "'http://127.0.0.1:2'"}, "model": {"a", "b"},
			"keyEnv": {"A_KEY", "B_KEY"}, "command": {"a", "b"}, "timeout": {"1s", "2s"}} {
			known["speech."+of+"."+key] = live{values[0], values[1], speech}
		}
		known["speech."+of+".sandbox"] = live{"true", "false", func(r *Daemon) any {
			v := r.settings.Current().Speech
			return fmt.Sprint(*map[string]*bool{"transcribe": v.Transcribe.Sandbox, "speak": v.Speak.Sandbox}[of])
		}}
	}

	links := func(agent, user string) string {
		return "[{agent: " + agent + ", users: ['hook:" + user + "']}]\nconnectors: [{id: hook, type: webhook, allow: [a, b], hooks: []}]"
	}
	linked := func(r *Daemon) any { return fmt.Sprint(r.settings.Current().Links.Of("hook", "a")) }
	known["links.agent"] = live{links("x", "a"), links("y", "a"), linked}
	known["links.users"] = live{links("x", "a"), links("x", "b"), linked}

	return known
}

// elsewhere are keys that the daemon itself does not use: whoever uses them reads the file
// each time.
var elsewhere = []string{"retention.trash", "retention.blobs", "retention.history", "retention.logs", "retention.undo",
	"providers.batch", "modelsURL"}

// Each key of the settings either applies at once, which is proved where it is used, or is
// named as needing a restart when it changes.
func TestEverySettingAppliesAtOnceOrNeedsARestart(t *testing.T) {
	all := settingKeys(reflect.TypeFor[config.Config](), "", "")
	known := liveSettings()
	for _, period := range []string{"perDay", "perAgent", "total"} {
		for _, unit := range []string{"usd", "tokens"} {
			known["budget."+period+"."+unit] = live{"5", "6", func(r *Daemon) any { return fmt.Sprint(r.settings.Current().Budget) }}
		}
	}
	maps.Copy(known, liveHooks())
	maps.Copy(known, liveMCP())
	maps.Copy(known, liveTalk())
	restart, atOnce, alike := 0, 0, 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		l, isLive := known[key]
		switch {
		case all[key] && isLive:
			t.Errorf("%s needs a restart and is said to apply at once", key)
		case all[key]:
			restart++
		case isLive:
			atOnce++
			t.Run(key, func(t *testing.T) { appliesAtOnce(t, key, l) })
		case strings.HasPrefix(key, "hooks."): // the keys of a hook are the same in each list
			alike++
		case !slices.Contains(elsewhere, key):
			t.Errorf("%s: nothing says when it applies; add it to liveSettings, or apply:\"restart\" to its section", key)
		}
		delete(known, key)
	}
	for key := range known {
		t.Errorf("%s is no key of the settings", key)
	}
	t.Logf("%d keys: %d apply at once, %d need a restart, %d are read by whoever uses them, %d are those of another list of hooks",
		len(all), atOnce, restart, len(elsewhere), alike)
}

// settingKeys are the keys of the settings, with whether they need a restart.
func settingKeys(of reflect.Type, prefix, apply string) map[string]bool {
	keys := map[string]bool{}
	for i := range of.NumField() {
		f := of.Field(i)
		name, tagged := f.Tag.Lookup("json")
		if f.Anonymous && !tagged {
			maps.Copy(keys, settingKeys(f.Type, prefix, apply))
			continue
		}
		if !tagged || name == "-" {
			continue
		}
		how, kind := apply+f.Tag.Get("apply"), f.Type
		if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct && kind.PkgPath() == of.PkgPath() && kind != reflect.TypeFor[config.Secret]() {
			maps.Copy(keys, settingKeys(kind, prefix+name+".", how))
			continue
		}
		keys[prefix+name] = how == "restart"
	}
	return keys
}

// appliesAtOnce changes a setting of a runtime and looks at what uses it.
func appliesAtOnce(t *testing.T, key string, l live) {
	dir := t.TempDir()
	set := func(value string) {
		parts := strings.Split(key, ".")
		if strings.HasPrefix(value, "[{") || strings.HasPrefix(value, "{ ") { // the whole list, or all lists
			parts = parts[:1]
		}
		text := ""
		for i, p := range parts {
			text += strings.Repeat("  ", i) + p + ":"
			if i == len(parts)-1 {
				text += " " + value
			}
			text += "\n"
		}
		if parts[0] != "providers" {
			text += "providers: [{id: fake, type: scripted}]\n"
		}
		if err := os.WriteFile(filepath.Join(dir, ws.Home, config.Name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ws.Home), 0o700); err != nil {
		t.Fatal(err)
	}
	set(l.one)
	r, err := Open(t.Context(), Options{Place: ws.At(dir)}, slog.LevelError)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	before := fmt.Sprint(l.shows(r))
	set(l.two)
	for _, f := range (reloader{r}).reload(t.Context()) {
		if strings.Contains(f.Reason, "after a restart") || isError(f) {
			t.Fatalf("reload says: %s", f)
		}
	}
	if after := fmt.Sprint(l.shows(r)); after == before {
		t.Errorf("after %s became %s it still is %s", l.one, l.two, after)
	}
}

// What is saved between the moment that a start reads the settings and the one from which it watches them is not missed.
func TestSettingsSavedDuringAStart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ws.Home, config.Name)
	provider := "providers: [ { id: fake, type: scripted } ]\n"
	write(t, file, provider)
	r, err := Open(t.Context(), Options{Place: ws.At(dir)}, slog.LevelError)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, provider+"agents: { perMinute: 7 }\n")
	commandtest.Start(t, r)
	waitFor(t, "the settings that were saved during the start", func() bool { return r.settings.Current().Agents.PerMinute == 7 })
}
