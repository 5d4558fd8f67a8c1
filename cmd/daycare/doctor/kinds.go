package doctor

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"daycare/agents/subagent"
	"daycare/agents/trial"
	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/folders"
	"daycare/engine/pairing"
	"daycare/engine/schedule"
	"daycare/engine/slash"
	"daycare/engine/workspace"
	"daycare/tools/mcp"
	"daycare/tools/skills"
)

// A kind is one kind of file in .daycare. validate checks files by it, schema has its JSON
// Schema, doctor knows from it what others must not read, and gc what may go.
type kind struct {
	pattern string // where it is; ** at the end is all that is below
	what    string
	owner   string      // the package that reads and writes it
	mode    fs.FileMode // what it is made with, where others must not read it; 0: they may
	schema  string      // the name of its JSON Schema, "": it has none

	ledger bool // doctor repairs its lines: they have no reader that complains

	check check // nil: it has no form
	gc    *end  // nil: it is kept
}

// A check looks for what is wrong in a file. schema is that of its kind.
type check func(schema, path string, content []byte) ([]finding.Finding, error)

// by is a check that needs no schema.
func by(f func(path string, content []byte) ([]finding.Finding, error)) check {
	return func(_, path string, content []byte) ([]finding.Finding, error) { return f(path, content) }
}

// private is the mode of what others must not read.
const private fs.FileMode = 0o600

// kinds are all kinds of files. Of several that fit a file the first counts.
var kinds = slices.Concat(
	[]kind{
		{pattern: "settings.yaml", what: "the settings", owner: "engine/config", schema: "settings", check: validateSettings},
		{pattern: config.AuthName, what: "secrets by id", owner: "engine/config", mode: private, schema: "auth",
			check: by(config.CheckAuth)},
		{pattern: apitoken.Name, what: "hashes of API tokens", owner: "engine/apitoken", mode: private, schema: "tokens",
			check: by(apitoken.Check)},
		{pattern: pairing.Name, what: "pending pairing codes", owner: "engine/pairing", mode: private,
			schema: "pairing", check: by(pairing.Check)},
		{pattern: "SOUL.md", what: "the persona of agents", owner: "agents/prompt", check: text},
		{pattern: "USER.md", what: "facts about the user", owner: "agents/prompt", check: text},
		{pattern: "AGENTS.md", what: "house rules", owner: "agents/prompt", check: text},
	},
	ofAgents, ofClocks,
	[]kind{
		{pattern: "subagents/*.md", what: "a kind of sub-agent", owner: "agents/subagent", schema: "subagent",
			check: by(func(path string, content []byte) ([]finding.Finding, error) {
				_, found := subagent.Parse(path, content)
				return found, nil
			})},
		{pattern: "skills/*/SKILL.md", what: "a skill", owner: "tools/skills", schema: "skill",
			check: by(func(path string, content []byte) ([]finding.Finding, error) {
				_, found, _ := skills.Parse(path, content)
				return found, nil
			})},
		{pattern: "commands/*.md", what: "a slash command", owner: "engine/slash",
			check: by(func(path string, content []byte) ([]finding.Finding, error) {
				_, found := slash.Parse(path, content)
				return found, nil
			})},
		{pattern: "tests/*.test.yaml", what: "a test of an agent", owner: "agents/trial", schema: "test", check: by(trial.CheckFile)},
		{pattern: "tests/*/*.test.yaml", what: "a test of an agent", owner: "agents/trial", schema: "test", check: by(trial.CheckFile)},
		{pattern: "tests/**", what: "scripts and cassettes of tests", owner: "agents/providers/cassette"},
		{pattern: "memory/*.md", what: "notes of agents", owner: "tools/memory", check: text},
	},
	ofRuntime,
)

// ofAgents are the files in the folders of agents.
var ofAgents = []kind{
	{pattern: "agents/*/descriptor.json", what: "an agent's identity", owner: "engine/address", mode: private, schema: "descriptor",
		check: by(folders.CheckFile)},
	{pattern: "agents/*/state.json", what: "an agent's permissions, model and budget", owner: "engine/record", mode: private,
		schema: "state", check: by(folders.CheckFile)},
	{pattern: "agents/*/history.jsonl", what: "an agent's history", owner: "engine/record", mode: private, schema: "history",
		check: historyFile},
	{pattern: "agents/*/history/*.jsonl", what: "a closed part of a history", owner: "engine/record", mode: private, schema: "history",
		check: historyFile, gc: &end{why: "a closed part of a history", age: historyAge}},
	{pattern: "agents/*/inbox.jsonl", what: "an agent's inbox", owner: "engine/inbox", mode: private, schema: "inbox",
		check: inboxFile},
	{pattern: "agents/*/sessions.jsonl", what: "past sessions", owner: "engine/record", mode: private, schema: "session",
		ledger: true, check: ledger},
	{pattern: "agents/*/draft.json", what: "the answer being streamed", owner: "engine/record", mode: private, schema: "draft",
		check: object},
	{pattern: "agents/*/SYSTEM.md", what: "the last rendered system prompt", owner: "agents/prompt", mode: private},
	{pattern: "agents/*/blobs/*", what: "a long output", owner: "engine/record", mode: private,
		gc: &end{why: "a long output that no history refers to", age: blobAge, list: unnamedBlobs, making: true}},
	{pattern: "agents/*/undo/**", what: "what an agent's tools wrote, and what was there before", owner: "engine/changes", mode: private,
		gc: &end{why: "a file's content before or after an old write of an agent", age: undoAge, list: oldUndo, making: true}},
	{pattern: "agents/*/.descriptor.json", what: "the last good descriptor", owner: "engine/address", mode: private},
	{pattern: "agents/*/.state.json", what: "the last good state", owner: "engine/record", mode: private},
	{pattern: "agents/*/*.test.yaml", what: "a test of an agent", owner: "agents/trial", mode: private, schema: "test",
		check: by(trial.CheckFile)},
	{pattern: "agents/*/cassettes/*.jsonl", what: "recorded answers of a model, for a test", owner: "agents/providers/cassette",
		mode: private},
	{pattern: "agents/handles.jsonl", what: "handles of agents", owner: "engine/address", mode: private, schema: "handle",
		check: ledger},
}

// ofClocks are the files of tasks and of the heartbeat.
var ofClocks = []kind{
	{pattern: "cron/*/TASK.md", what: "a task", owner: "engine/schedule", schema: "task", check: taskFile},
	{pattern: "cron/*/MEMORY.md", what: "the notes of a task", owner: "engine/schedule", check: text},
	{pattern: "cron/*/runs.jsonl", what: "the runs of a task", owner: "engine/schedule", schema: "run",
		ledger: true, check: ledger},
	{pattern: "cron/*/runs/*.jsonl", what: "a closed part of the runs of a task", owner: "engine/schedule", schema: "run", check: ledger},
	{pattern: "cron/*/files/**", what: "the working files of a task", owner: "tools/files"},
	{pattern: "heartbeat/runs.jsonl", what: "the runs of the heartbeat", owner: "engine/schedule", schema: "run",
		ledger: true, check: ledger},
	{pattern: "heartbeat/runs/*.jsonl", what: "a closed part of the runs of the heartbeat", owner: "engine/schedule", schema: "run",
		check: ledger},
	{pattern: "heartbeat/*.md", what: "a heartbeat item", owner: "engine/schedule", schema: "heartbeat",
		check: by(func(path string, content []byte) ([]finding.Finding, error) {
			_, found := schedule.DecodePrompt(path, strings.TrimSuffix(filepath.Base(path), ".md"), content)
			return found, nil
		})},
}

// ofRuntime are the files that the runtime keeps for itself.
var ofRuntime = []kind{
	{pattern: address.IndexFile, what: "what a start found in the files of agents", owner: "engine/address", mode: private},
	{pattern: "mcp/*.json", what: "the pinned tools of an MCP server", owner: "tools/mcp", mode: private, schema: "mcp",
		check: by(mcp.Check)},
	{pattern: mcp.QuestionsName, what: "questions of MCP servers to the user", owner: "tools/mcp", mode: private, schema: "mcp-questions",
		check: by(mcp.CheckQuestions)},
	{pattern: config.TrustedName, what: "the .mcp.json of the workspace that you trusted", owner: "engine/config", mode: private,
		check: by(config.CheckProject)},
	{pattern: "a2a.json", what: "tasks that remote agents work on", owner: "tools/a2a", mode: private, check: object},
	{pattern: "mcp/*.log", what: "the error output of an MCP server", owner: "tools/mcp", mode: private},
	{pattern: "drop/*.md", what: "a dropped message", owner: "engine/inbox", mode: private, check: letterFile},
	{pattern: "drop/*.txt", what: "a dropped message", owner: "engine/inbox", mode: private, check: letterFile},
	{pattern: "drop/*.json", what: "a dropped message", owner: "engine/inbox", mode: private, schema: "letter", check: letterFile},
	{pattern: "drop/.taken/*", what: "a dropped message being picked up", owner: "engine/inbox", mode: private},
	{pattern: "drop/bad/*", what: "a refused dropped message, or the reason", owner: "engine/inbox", mode: private},
	{pattern: "files/*.json", what: "the reference of an attachment", owner: "engine/control", mode: private, schema: "file",
		check: reference},
	{pattern: "files/*__*", what: "an attachment", owner: "engine/control", mode: private},
	{pattern: "usage/*.jsonl", what: "the cost of model calls", owner: "agents/budget", mode: private, schema: "usage",
		ledger: true, check: ledger},
	{pattern: "usage/*.json", what: "spending totals and raised budgets", owner: "agents/budget", mode: private},
	{pattern: "logs/*.jsonl", what: "the log of the daemon", owner: "cmd/daycare/logfile", mode: private, schema: "log", check: ledger},
	{pattern: "logs/*.jsonl.*", what: "a rotated log file", owner: "cmd/daycare/logfile", mode: private,
		gc: &end{why: "a rotated log file", age: logAge, list: olderLogs}},
	{pattern: "logs/*.log", what: "the output of a background daemon", owner: "cmd/daycare/commands", mode: private},
	{pattern: "permissions/log.jsonl", what: "answered approvals", owner: "engine/permission", mode: private, schema: "request",
		ledger: true, check: ledger},
	{pattern: "permissions/*.json", what: "a pending approval", owner: "engine/permission", mode: private, schema: "request",
		check: requestFile},
	{pattern: "permissions/*.answered", what: "an answered approval, kept while an editor may save it", owner: "engine/permission",
		mode: private},
	{pattern: "hooks/**", what: "a program of a hook", owner: "tools/hooks"},
	{pattern: "connectors/**", what: "the state of a connector", owner: "connectors", mode: private},
	{pattern: "trash/**", what: "removed agents and tasks", owner: "engine", mode: private,
		gc: &end{why: "removed by you", age: trashAge, list: inTrash}},
	{pattern: "unseen/**", what: "a change waiting for your review", owner: "engine/unseen"},
	{pattern: "folders.json", what: "the folder behind each granted path", owner: "engine/permission"},
	{pattern: workspace.FileName, what: "the workspace of a data folder that is outside of it", owner: "engine/workspace", check: object},
	{pattern: "cluster.json", what: "the cluster that the workspace has joined", owner: "cmd/daycare/peers", check: object},
	{pattern: "shared.json", what: "which state of the cluster's shared files is here", owner: "engine/cluster", mode: private,
		check: object},
	{pattern: "models.json", what: "the fetched list of models", owner: "cmd/daycare/models"},
	{pattern: "daycare.lock", what: "the running daemon, or the last one", owner: "engine/disk", schema: "lock", check: object},
	{pattern: "daycare.sock", what: "the socket of the daemon", owner: "engine/control"},
	{pattern: ".ballast", what: "disk space reserved for essential writes when the disk is full", owner: "engine/disk"},
	{pattern: "README.md", what: "an overview of this folder", owner: "cmd/daycare/setup"},
	{pattern: config.IgnoreName, what: "files that git ignores", owner: "engine/config"},
}

// at reports whether a file is of the kind by its place in .daycare.
func (k kind) at(rel string) bool {
	if above, all := strings.CutSuffix(k.pattern, "/**"); all {
		parts := strings.Split(rel, "/")
		if n := strings.Count(above, "/") + 1; len(parts) > n {
			ok, err := path.Match(above, strings.Join(parts[:n], "/"))
			return ok && err == nil
		}
		return false
	}
	ok, err := path.Match(k.pattern, rel)
	return ok && err == nil
}

// named reports whether a file is of the kind, wherever it lies: its name says so, or
// with a name that anything may have its folder's as well.
func (k kind) named(file string) bool {
	pattern := path.Base(k.pattern)
	name := filepath.Base(file)
	if strings.ContainsRune(pattern, '*') {
		pattern = path.Join(path.Base(path.Dir(k.pattern)), pattern)
		name = path.Join(filepath.Base(filepath.Dir(file)), name)
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// kindOfFile is the kind of a file that has a form.
func kindOfFile(file string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.check != nil && k.named(file) })
	if i < 0 {
		return kind{}, false
	}

	return kinds[i], true
}

// SchemaNameOf is the name of the schema of a file; "": it has none.
func SchemaNameOf(file string) string {
	k, _ := kindOfFile(file)
	return k.schema
}

// PatternOf is where in .daycare files of the kind of a file are; "": it is of no kind.
func PatternOf(file string) string {
	k, _ := kindOfFile(file)
	return k.pattern
}

// Known reports whether files at a place in .daycare have a row in the table of kinds.
func Known(rel string) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return k.at(filepath.ToSlash(rel)) })
}

// Files lists the files in a .daycare directory that have a form.
func Files(root string) (all []string, err error) {
	seen := map[string]bool{}
	for _, k := range kinds {
		if k.check == nil {
			continue
		}
		paths, err := disk.Glob(root, k.pattern)
		if err != nil {
			return nil, fmt.Errorf("list files: %w", err)
		}
		for _, path := range paths {
			rel, err := filepath.Rel(root, path)
			// What begins with a dot is not in its place yet; a name with __ in
			// files/ is an attachment itself.
			if err != nil || seen[path] || strings.Contains("/"+filepath.ToSlash(rel), "/.") ||
				strings.HasPrefix(k.pattern, "files/") && strings.Contains(filepath.Base(path), "__") {
				continue
			}
			seen[path] = true
			all = append(all, path)
		}
	}

	return all, nil
}

// privateParts are the names in .daycare below which others must not read anything.
func privateParts() (parts []string) {
	for _, k := range kinds {
		if top, _, _ := strings.Cut(k.pattern, "/"); k.mode != 0 && !slices.Contains(parts, top) {
			parts = append(parts, top)
		}
	}

	return parts
}

// A remnant is a file that a crash or a repair left behind, wherever it is.
type remnant struct {
	is     func(name string) bool
	why    string          // gc may delete it
	making bool            // a running daemon may be writing a young one
	found  finding.Finding // what doctor says of it
}

var remnants = []remnant{
	{is: isTemp, why: "left by a crash", making: true, found: finding.Finding{ID: "temp-leftover", Severity: finding.Info,
		Reason: "a temporary file left by a crash; nothing acknowledged is in it", Remedy: "doctor --fix removes it."}},
	{is: holds(".torn-"), why: "a partial line left by a crash", found: finding.Finding{ID: "torn-kept", Severity: finding.Info, Line: 1,
		Reason: "a partial line left by a crash", Remedy: "Remove it if you do not need it: daycare gc"}},
	{is: holds(kept), why: "unreadable lines", found: finding.Finding{ID: "lines-kept", Severity: finding.Info, Line: 1,
		Reason: "unreadable lines, moved here by doctor --fix", Remedy: "Remove it if you do not need it: daycare gc"}},
}

func holds(mark string) func(string) bool {
	return func(name string) bool { return strings.Contains(name, mark) }
}

// remnantOf is what a file with a name was left behind as.
func remnantOf(name string) (remnant, bool) {
	i := slices.IndexFunc(remnants, func(r remnant) bool { return r.is(name) })
	if i < 0 {
		return remnant{}, false
	}

	return remnants[i], true
}
