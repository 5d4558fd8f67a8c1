//go:build !race

package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports is which packages of this module each folder may import, beside those
// in its own test suites. Arrows point to the engine: users (connectors), actors
// (agents) and abilities (tools) import it, it imports none of them. "x/..." is x
// and all that is below it.
//
// A new folder gets a row here. Keep it as short as it can be: a package that
// needs nothing cannot be broken by anything.
var imports = map[string][]string{
	"cmd/daycare": {"..."},
	// What builds and runs a workspace knows of no command line.
	"cmd/daycare/peers": {"engine", "engine/...", "agents/budget", "agents/providers"},
	"cmd/daycare/daemon": {"cmd/daycare/logfile", "cmd/daycare/models", "cmd/daycare/peers", "cmd/daycare/plugins", "cmd/daycare/tracing",
		"cmd/daycare/version", "engine/...", "agents/...", "tools/...", "connectors/..."},
	"cmd/daycare/models": {"cmd/daycare/plugins", "agents", "agents/providers", "agents/providers/catalogue",
		"engine/beneath", "engine/config", "engine/crash", "engine/event", "engine/finding", "engine/record"},
	"cmd/daycare/plugins": {"connectors/...", "agents/providers/...", "engine", "engine/config", "engine/finding", "engine/permission"},
	"cmd/daycare/version": {},
	// It is initialised before what it does not import.
	"cmd/daycare/early":   {"cmd/daycare/fit", "cmd/daycare/version"},
	"cmd/daycare/fit":     {},
	"cmd/daycare/tracing": {"agents", "agents/providers", "engine/event"},
	"cmd/daycare/man":     {"cmd/daycare/term", "cmd/daycare/version", "engine/fault"},
	"cmd/daycare/mcp": {"cmd/daycare/daemon", "cmd/daycare/plugins", "cmd/daycare/setup", "cmd/daycare/term",
		"cmd/daycare/version", "connectors/mcp",
		"engine/beneath", "engine/config", "engine/control", "engine/disk", "engine/event", "tools/mcp"},
	"cmd/daycare/machine": {"engine/beneath", "engine/disk"},
	"cmd/daycare/follow":  {"engine/watch"},
	"cmd/daycare/setup": {"cmd/daycare/doctor", "cmd/daycare/machine", "cmd/daycare/models", "cmd/daycare/plugins", "cmd/daycare/term",
		"agents/providers", "agents/providers/catalogue", "connectors", "connectors/chat", "engine/apitoken", "engine/config",
		"engine/control", "engine/disk", "engine/event", "engine/finding", "engine/form", "engine/message"},
	"cmd/daycare/talk": {"cmd/daycare/setup", "cmd/daycare/show", "cmd/daycare/term", "engine/address", "engine/changes",
		"engine/control", "engine/disk", "engine/event", "engine/inbox", "engine/message", "engine/permission", "engine/record"},
	"cmd/daycare/commands": {"cmd/daycare/doctor", "cmd/daycare/follow", "cmd/daycare/logfile", "cmd/daycare/machine",
		"cmd/daycare/plugins", "cmd/daycare/setup", "cmd/daycare/show", "cmd/daycare/term", "cmd/daycare/version", "agents/prompt",
		"agents/subagent",
		"tools/peers", "engine/address", "engine/changes", "engine/config",
		"engine/control", "engine/disk", "engine/event", "engine/finding", "engine/folders", "engine/inbox", "engine/message",
		"engine/permission", "engine/record"},
	// it connects to the servers of the cluster without a daemon, and runs one.
	"cmd/daycare/cluster": {"cmd/daycare/commands", "cmd/daycare/peers", "cmd/daycare/term", "engine/address", "engine/cluster",
		"engine/cluster/server", "engine/config", "engine/disk", "engine/folders", "engine/inbox", "engine/record"},
	// what commands print that look at files, for the API.
	"cmd/daycare/inspect": {"cmd/daycare/commands", "cmd/daycare/doctor", "cmd/daycare/plugins", "cmd/daycare/setup", "cmd/daycare/term",
		"engine/beneath", "engine/config", "engine/control", "engine/disk", "engine/finding"},
	"cmd/daycare/upkeep": {"cmd/daycare/machine", "cmd/daycare/plugins", "cmd/daycare/setup", "cmd/daycare/term", "cmd/daycare/version",
		"engine/backup",
		"engine/config", "engine/control", "engine/disk", "engine/fault", "engine/release", "engine/tarball"},
	// an import knows the form of what it places.
	"cmd/daycare/movein": {"cmd/daycare/term", "agents/prompt", "agents/subagent", "tools/skills", "engine", "engine/address",
		"engine/beneath", "engine/control", "engine/crash", "engine/disk", "engine/event", "engine/finding", "engine/folders",
		"engine/form", "engine/permission", "engine/record", "engine/schedule", "engine/slash", "engine/tarball"},
	"cmd/daycare/show": {"cmd/daycare/term", "engine/control", "engine/event", "engine/permission", "engine/record"},
	// doctor knows the form of every file, so it imports those who own them.
	"cmd/daycare/doctor": {"cmd/daycare/daemon", "cmd/daycare/follow", "cmd/daycare/logfile", "cmd/daycare/models", "cmd/daycare/peers",
		"cmd/daycare/plugins", "cmd/daycare/term", "engine/...", "agents/...", "tools/...", "connectors/chat"},
	"cmd/daycare/term": {"cmd/daycare/fit", "cmd/daycare/machine", "cmd/daycare/plugins", "cmd/daycare/version",
		"engine/beneath", "engine/config",
		"engine/control", "engine/disk", "engine/finding", "engine/release"},
	"cmd/daycare/logfile": {"engine/config"},
	"cmd/daycare/commandtest": {"cmd/daycare/term", "engine/control", "engine/event", "engine/finding", "engine/message",
		"engine/record"},
	// The lab runs engines of its own, and knows what answers in them.
	"cmd/daycare/lab": {"cmd/daycare/daemon", "cmd/daycare/follow", "cmd/daycare/models", "cmd/daycare/plugins", "cmd/daycare/show",
		"cmd/daycare/term", "agents/prompt", "agents/providers", "agents/providers/cassette", "agents/providers/scripted", "agents/trial",
		"engine/address", "engine/beneath", "engine/changes", "engine/config", "engine/control", "engine/crash", "engine/disk",
		"engine/event", "engine/finding", "engine/form", "engine/permission", "engine/record", "engine/unseen", "tools",
		"tools/shell/sandbox", "engine/folders", "engine/message"}, // its tests are the helper of commands, and import agents
	"cmd/daycare/browser": {}, // it has the command, and what a browser shows
	"cmd/daycare/chaos":   {"..."},
	// Fakes of platforms, which know nothing of what they are for.
	"cmd/daycare/chaos/platforms": {"connectors/telegram/telegramtest"},
	"cmd/daycare/chaos/child":     {},
	"cmd/daycare/chaos/machines":  {"cmd/daycare/chaos/child", "engine/control", "engine/fault", "engine/freeport"},
	"cmd/daycare/bench":           {"..."},

	"engine":                 {"engine/..."},
	"engine/attacktest":      {},
	"engine/beneath":         {},
	"engine/crash":           {},
	"engine/crash/crashtest": {"engine/crash"},
	"engine/event":           {},
	"engine/fault":           {},
	"engine/finding":         {},
	"engine/form":            {"engine/finding"},
	"engine/form/schema":     {"engine/form"},
	"engine/lazyregexp":      {},
	"engine/freeport":        {},
	"engine/workspace":       {},
	"engine/message":         {},
	"engine/plain":           {},
	"engine/unseen":          {"engine/beneath", "engine/disk", "engine/crash", "engine/finding"},
	"engine/watch":           {},
	"engine/redact":          {},
	"engine/sensitive":       {"engine/beneath"},
	"engine/cuid":            {},
	"engine/disk":            {"engine/crash"},
	"engine/disk/disktest":   {"engine/disk"},
	"engine/lan":             {},
	"engine/permission": {"engine/lan", "engine/sensitive", "engine/beneath", "engine/disk", "engine/crash",
		"engine/finding", "engine/form", "engine/message", "engine/event"},
	"engine/address": {"engine/beneath", "engine/disk", "engine/crash", "engine/message", "engine/finding", "engine/form",
		"engine/permission", "engine/watch"},
	"engine/inbox":   {"engine/beneath", "engine/disk", "engine/crash", "engine/message", "engine/finding"},
	"engine/changes": {"engine/beneath", "engine/crash", "engine/disk", "engine/fault", "engine/record", "engine/sensitive"},
	"engine/folders": {"engine/address", "engine/beneath", "engine/crash", "engine/disk", "engine/event", "engine/fault", "engine/finding",
		"engine/inbox", "engine/lazyregexp", "engine/message", "engine/permission", "engine/record", "engine/tarball"},
	"engine/cluster": {"engine/address", "engine/beneath", "engine/crash", "engine/disk", "engine/event", "engine/inbox", "engine/message",
		"engine/watch"},
	"engine/cluster/server":      {"engine/cluster"},
	"engine/cluster/clustertest": {},
	"engine/backup":              {"engine/beneath", "engine/crash", "engine/disk", "engine/tarball"},
	"engine/tarball":             {},
	"engine/release":             {},
	"engine/inbox/inboxtest":     {"engine/inbox", "engine/disk", "engine/crash", "engine/message", "engine/finding"},
	"engine/record": {"engine/beneath", "engine/disk", "engine/crash", "engine/message", "engine/finding", "engine/form",
		"engine/permission"},
	"engine/slash":    {"engine/beneath", "engine/finding", "engine/form"},
	"engine/schedule": {"engine/beneath", "engine/message", "engine/disk", "engine/crash", "engine/finding", "engine/form"},
	"engine/config":   {"engine/beneath", "engine/crash", "engine/finding", "engine/form", "engine/disk", "engine/lan"},
	"engine/apitoken": {"engine/beneath", "engine/crash", "engine/disk", "engine/finding", "engine/form", "engine/lazyregexp"},
	"engine/pairing":  {"engine/beneath", "engine/crash", "engine/disk", "engine/finding", "engine/form", "engine/message"},
	"engine/control": {"engine/apitoken", "engine/beneath", "engine/event", "engine/message", "engine/inbox",
		"engine/disk", "engine/finding", "engine/permission", "engine/address", "engine/release"},
	"engine/control/openapi": {"engine/control", "engine/disk", "engine/event", "engine/finding", "engine/message"},

	"agents": {"agents/compact", "agents/prompt", "agents/providers", "tools", "tools/hooks", "engine/changes", "engine/record",
		"engine/redact", "engine/inbox", "engine/message", "engine/event", "engine/permission", "engine/disk",
		"engine/crash", "engine/finding", "engine/address", "engine/beneath"},
	"agents/prompt": {"agents/providers", "engine/permission", "engine/record", "engine/message",
		"engine/beneath", "engine/disk", "engine/crash", "engine/finding", "engine/unseen"},
	"agents/compact": {"agents/providers", "engine/record", "engine/message"},
	"agents/budget":  {"agents/providers", "engine/beneath", "engine/permission", "engine/disk"},
	"agents/subagent": {"engine/beneath", "engine/watch", "tools", "engine/address", "engine/finding", "engine/form", "engine/event",
		"engine/message", "engine/permission"},
	"agents/trial":            {"engine/finding", "engine/form"},
	"agents/providers":        {},
	"agents/providers/openai": {"agents/providers"},

	"agents/providers/catalogue":    {"agents/providers"},
	"agents/providers/anthropic":    {"agents/providers"},
	"agents/providers/gemini":       {"agents/providers"},
	"agents/providers/responses":    {"agents/providers"},
	"agents/providers/cassette":     {"agents/providers"},
	"agents/providers/scripted":     {"agents/providers", "engine/finding", "engine/form"},
	"agents/providers/providertest": {"agents/providers"},

	"tools":           {"engine/message", "engine/permission"},
	"tools/toolstest": {"tools", "engine/message", "engine/permission"},
	"tools/files": {"tools", "engine/changes", "engine/sensitive", "tools/pdf", "engine/beneath", "engine/message",
		"engine/permission", "engine/disk", "engine/crash"},
	"tools/shell": {"tools", "engine/changes", "tools/shell/sandbox", "tools/shell/sandbox/probe", "tools/shell/sandbox/relay",
		"tools/shell/guard", "engine/sensitive", "engine/beneath", "engine/redact", "engine/message",
		"engine/permission", "engine/disk", "engine/crash"},
	"tools/shell/sandbox":       {"engine/beneath"},
	"tools/shell/sandbox/probe": {"tools/shell/sandbox"},
	"tools/shell/sandbox/relay": {"tools/shell/sandbox"},
	"tools/shell/guard":         {"engine/sensitive", "engine/beneath"},
	"tools/fetch":               {"engine/lan", "tools", "tools/pdf", "engine/message", "engine/permission"},
	"tools/pdf":                 {},
	"tools/hooks":               {},
	"tools/memory":              {"engine/beneath", "tools", "engine/message", "engine/permission", "engine/disk"},
	"tools/peers":               {"tools", "engine/message", "engine/permission", "engine/address", "engine/event"},
	"tools/cron":                {"tools", "engine/message", "engine/permission", "engine/schedule", "engine/finding", "engine/disk"},
	"tools/ask":                 {"tools", "engine/message", "engine/permission"},
	"tools/mcp/mcptest":         {},
	"tools/a2a":                 {"tools", "engine/lan", "engine/message", "engine/permission"},
	"tools/mcp": {"tools", "engine/beneath", "engine/finding", "engine/form", "engine/message",
		"engine/permission"},
	"tools/skills": {"engine/unseen", "engine/disk", "tools", "engine/beneath", "engine/message",
		"engine/permission", "engine/finding", "engine/form"},

	"connectors":                     {"connectors/chat", "engine/finding", "engine/form", "engine/message"},
	"connectors/format":              {},
	"connectors/ingress":             {"engine/message"},
	"connectors/speech":              {"connectors/chat"},
	"connectors/chat":                {"engine/message", "engine/inbox", "engine/event", "engine/permission", "engine/disk"},
	"connectors/connectortest":       {"connectors/chat", "engine/..."},
	"connectors/connectortest/table": {},
	"connectors/clock":               {"engine/message", "engine/inbox", "engine/schedule", "engine/finding"},
	"connectors/web": {"connectors/format", "engine/apitoken", "engine/control", "engine/crash", "engine/disk", "engine/event",
		"engine/finding", "engine/message"},
	"connectors/acp": {"engine/control", "engine/event", "engine/message", "engine/permission", "engine/record"},
	"connectors/terminal": {"connectors/terminal/...", "engine/address", "engine/message", "engine/control",
		"engine/event", "engine/finding", "engine/permission"},

	"connectors/terminal/theme":      {},
	"connectors/terminal/highlight":  {},
	"connectors/terminal/markdown":   {"connectors/format", "connectors/terminal/highlight", "connectors/terminal/theme"},
	"connectors/terminal/transcript": {"connectors/terminal/markdown", "connectors/terminal/theme", "engine/control", "engine/event"},

	"connectors/a2a": {"connectors", "connectors/chat", "engine/apitoken", "engine/control", "engine/event", "engine/lan",
		"engine/message"},
	"connectors/openai": {"connectors", "connectors/chat", "engine/apitoken", "engine/control", "engine/event", "engine/form",
		"engine/inbox", "engine/message"},
	"connectors/webhook": {"connectors", "connectors/format", "connectors/ingress", "engine/message", "engine/inbox", "engine/disk",
		"engine/finding"},
	"connectors/telegram": {"connectors", "connectors/chat", "connectors/format", "connectors/ingress", "engine/message",
		"engine/inbox", "engine/disk", "engine/finding"},
	"connectors/signal": {"connectors", "connectors/chat", "connectors/format", "engine/message", "engine/inbox", "engine/disk",
		"engine/finding"},
	"connectors/irc": {"connectors", "connectors/chat", "connectors/format", "engine/message", "engine/inbox", "engine/disk",
		"engine/finding"},
	"connectors/email": {"connectors", "connectors/chat", "connectors/format", "engine/message", "engine/inbox", "engine/disk",
		"engine/finding"},
	"connectors/slack": {"connectors", "connectors/chat", "connectors/format", "connectors/ingress", "engine/message",
		"engine/inbox", "engine/disk", "engine/finding"},
	"connectors/matrix/e2ee": {"engine/disk"},
	"connectors/matrix": {"connectors", "connectors/chat", "connectors/format", "connectors/matrix/e2ee", "engine/message",
		"engine/inbox", "engine/disk", "engine/finding"},
	"connectors/xmpp": {"connectors", "connectors/chat", "connectors/format", "engine/message", "engine/inbox", "engine/disk",
		"engine/finding"},
	"connectors/discord": {"connectors", "connectors/chat", "connectors/format", "engine/message", "engine/inbox", "engine/disk",
		"engine/finding", "engine/event", "engine/permission"},
	"connectors/mattermost": {"connectors", "connectors/chat", "connectors/format", "connectors/ingress", "engine/message",
		"engine/inbox", "engine/disk", "engine/finding"},
	"connectors/whatsapp": {"connectors", "connectors/chat", "connectors/format", "connectors/ingress", "engine/message",
		"engine/inbox", "engine/disk", "engine/finding", "engine/permission"},
	"connectors/mcp": {"engine/beneath", "engine/message", "engine/control", "engine/event", "engine/record"},

	"connectors/telegram/telegramtest": {"engine/lazyregexp"},
}

// suites are contracts as tests; every test may import them, and what is written
// to be used by tests.
var suites = []string{
	"engine/inbox/inboxtest", "engine/crash/crashtest", "engine/disk/disktest", "engine/attacktest", "engine/freeport",
	"engine/cluster/clustertest",
	"agents/providers/providertest", "agents/providers/scripted",
	"connectors/connectortest", "connectors/telegram/telegramtest", "tools/toolstest", "cmd/daycare/commandtest",
	"tools/mcp/mcptest",
}

// anywhere are packages that import nothing of daycare: every folder may import them.
var anywhere = []string{"engine/cuid", "engine/fault", "engine/lan", "engine/lazyregexp", "engine/plain", "engine/workspace"}

// only is which folders alone may import a foreign module: its quirks are then
// known in one place.
var only = map[string][]string{
	"github.com/fsnotify/fsnotify":           {"engine/watch"},
	"github.com/spf13/viper":                 {"engine/config"},
	"github.com/modelcontextprotocol/go-sdk": {"tools/mcp", "tools/mcp/mcptest", "connectors/mcp"},
	"github.com/coder/acp-go-sdk":            {"connectors/acp"},
	"maunium.net/go/mautrix":                 {"connectors/matrix/e2ee", "cmd/daycare"}, // a client, in a test
	"github.com/a2aproject/a2a-go":           {"connectors/a2a", "tools/a2a"},
	"go.opentelemetry.io":                    {"cmd/daycare/tracing"},
	"github.com/nats-io":                     {"engine/cluster", "engine/cluster/server", "engine/cluster/clustertest"},
	"github.com/synadia-io/orbit.go":         {"engine/cluster"},
	// What users edit is read by engine/form; the two others change a file in place.
	"go.yaml.in/yaml": {"engine/form", "engine/config", "engine/schedule"},
}

// noCommandLine are the folders of the command that know of no command line: whoever
// runs a workspace otherwise than by a command can use them.
var noCommandLine = []string{"cmd/daycare/daemon", "cmd/daycare/models", "cmd/daycare/plugins", "cmd/daycare/version",
	"cmd/daycare/logfile", "cmd/daycare/peers"}

// A use is one import in one file.
type use struct {
	folder, pos, path string
	test              bool
}

// broken says which rule a use breaks and what to do, or is empty.
func broken(u use) string {
	for foreign, folders := range only {
		if (u.path == foreign || strings.HasPrefix(u.path, foreign+"/")) && !slices.Contains(folders, u.folder) {
			return fmt.Sprintf("only %s may import %s: go through its exported functions", strings.Join(folders, ", "), foreign)
		}
	}
	if strings.HasPrefix(u.path, "github.com/spf13/cobra") && slices.Contains(noCommandLine, u.folder) {
		return u.folder + " may not import cobra: commands are in the packages that import it"
	}
	target, ours := strings.CutPrefix(u.path, module+"/")
	if !ours || target == u.folder || slices.Contains(anywhere, target) {
		return ""
	}
	allowed, ok := imports[u.folder]
	switch {
	case !ok:
		return fmt.Sprintf("the folder %s has no row in the table of imports_test.go: add one that lists what it may import", u.folder)
	case matches(allowed, target), u.test && forTests(u.folder, target):
		return ""
	case target == "engine":
		return "the package engine is put together by cmd/daycare alone: import the subpackage that declares what you " +
			"need, or declare an interface"
	default:
		return fmt.Sprintf("%s may import %s: move the code to where the import is allowed, or declare an interface here",
			u.folder, orNothing(allowed))
	}
}

// forTests reports what tests may import on top. The suite of the connectors
// speaks of engine.Connector, so the tests that call it must, too. Commands are
// tested against a daemon.
func forTests(folder, target string) bool {
	return slices.Contains(suites, target) || target == "engine" && strings.HasPrefix(folder, "connectors/") ||
		target == "cmd/daycare/daemon" && strings.HasPrefix(folder, "cmd/daycare/")
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "no package of this module"
	}
	return "only " + strings.Join(list, ", ")
}

func matches(patterns []string, target string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, wild := strings.CutSuffix(p, "...")
		return p == target || wild && strings.HasPrefix(target+"/", below)
	})
}

func TestImports(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		uses, err := importsOf(root, file)
		if err != nil {
			return err
		}
		folders[folderOf(root, file)] = true
		for _, u := range uses {
			if why := broken(u); why != "" {
				t.Errorf("%s: imports %s\n\t%s", u.pos, u.path, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the module: %v", err)
	}
	for folder := range folders {
		if _, ok := imports[folder]; !ok {
			t.Errorf("%s: %s", folder, broken(use{folder: folder, path: module + "/none"}))
		}
	}
}

// importsOf reads the imports of a file for every system, not only for this one.
func importsOf(root, file string) ([]use, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var uses []use
	for _, spec := range f.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		folder := folderOf(root, file)
		uses = append(uses, use{
			folder: folder,
			pos:    fmt.Sprintf("%s:%d", path.Join(folder, filepath.Base(file)), set.Position(spec.Pos()).Line),
			path:   target,
			test:   strings.HasSuffix(file, "_test.go"),
		})
	}
	return uses, nil
}

func folderOf(root, file string) string {
	rel, err := filepath.Rel(root, filepath.Dir(file))
	if err != nil {
		return file
	}
	return filepath.ToSlash(rel)
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the test's folder")
		}
	}
}

// The rows themselves obey the one rule, so that nobody lengthens a row against it.
func TestImportsPointToTheEngine(t *testing.T) {
	mayReach := map[string][]string{
		"engine":     {"engine"},
		"tools":      {"tools", "engine"},
		"connectors": {"connectors", "engine"},
		"agents":     {"agents", "tools", "engine"},
	}
	house := func(folder string) string { h, _, _ := strings.Cut(folder, "/"); return h }
	for folder, allowed := range imports {
		if house(folder) == "cmd" {
			continue
		}
		for _, target := range allowed {
			if !slices.Contains(mayReach[house(folder)], house(target)) {
				t.Errorf("the row of %s allows %s: %s may reach only %v", folder, target, house(folder), mayReach[house(folder)])
			}
			if matches([]string{target}, "engine") && folder != "engine" && folder != "connectors/connectortest" {
				t.Errorf("the row of %s allows the package engine, which only cmd/daycare and connectortest may import", folder)
			}
		}
	}
}

// A check that never failed proves nothing.
func TestBrokenImportsAreFound(t *testing.T) {
	for _, tt := range []struct {
		use  use
		want string // part of the message; "" where the import is allowed
	}{
		{use{folder: "engine/disk", path: "os"}, ""},
		{use{folder: "engine/disk", path: module + "/engine/crash"}, ""},
		{use{folder: "engine/disk", path: module + "/engine/disk", test: true}, ""},
		{use{folder: "cmd/daycare", path: module + "/engine"}, ""},
		{use{folder: "engine", path: module + "/engine/inbox"}, ""},
		{use{folder: "agents", path: module + "/agents/providers/scripted", test: true}, ""},
		{use{folder: "agents", path: module + "/agents/providers/scripted"}, "agents may import only"},
		{use{folder: "engine/disk", path: module + "/tools"}, "engine/disk may import only engine/crash"},
		{use{folder: "engine/event", path: module + "/engine/disk"}, "no package of this module"},
		{use{folder: "connectors/webhook", path: module + "/engine"}, "put together by cmd/daycare alone"},
		{use{folder: "connectors/webhook", path: module + "/engine", test: true}, ""},
		{use{folder: "agents", path: module + "/engine", test: true}, "put together by cmd/daycare alone"},
		{use{folder: "util", path: module + "/engine/disk"}, "has no row"},
		{use{folder: "cmd/daycare/daemon", path: "github.com/spf13/cobra"}, "may not import cobra"},
		{use{folder: "cmd/daycare/daemon", path: module + "/cmd/daycare"}, "cmd/daycare/daemon may import only"},
		{use{folder: "engine/config", path: "github.com/spf13/viper"}, ""},
		{use{folder: "cmd/daycare", path: "github.com/spf13/viper"}, "only engine/config may import"},
		{use{folder: "engine/schedule", path: "github.com/fsnotify/fsnotify/internal"}, "only engine/watch may import"},
	} {
		got := broken(tt.use)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s importing %s: %q, want %q", tt.use.folder, tt.use.path, got, tt.want)
		}
	}
}
