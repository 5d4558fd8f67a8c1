package permission

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"daycare/engine/disk"
)

// A Set is the permissions of one agent: the member permissions of its state.json.
type Set struct {
	WorkingDir string   `json:"workingDir"` // absolute; on disk relative if it is in the workspace
	ReadDirs   []string `json:"readDirs"`   // likewise, in addition to WorkingDir
	WriteDirs  []string `json:"writeDirs"`
	Web        bool     `json:"web"`
	Hosts      []string `json:"hosts,omitempty"`
	Lan        []string `json:"lan,omitempty"` // host:port of this machine or in its network
	Exec       []string `json:"exec"`          // command prefixes allowed without asking
	MCP        []string `json:"mcp,omitempty"` // server/tool, or server for all of its tools
	A2A        []string `json:"a2a,omitempty"` // hosts whose agents it may give tasks to
	Grants     []Grant  `json:"grants,omitempty"`
	// Profile narrows all of them; "": the one in settings.yaml.
	Profile Profile `json:"profile,omitempty" allow:"|read-only|ask|auto|plan|dry-run"`
	// Planned: a plan was approved in this turn.
	Planned bool `json:"-"`
}

// A Grant records who gave a permission, and when.
type Grant struct {
	Tag   string     `json:"tag"`
	At    disk.Stamp `json:"at"`
	By    string     `json:"by"`
	Token string     `json:"token,omitempty"`
	// SHA256 limits the grant to one exact request, if the tag alone would allow more than
	// the user saw.
	SHA256 string `json:"sha256,omitempty"`
	// Scripts are the contents of the files that an @exec: rule names. If a file has other
	// content, the rule does not cover the command.
	Scripts []Script `json:"scripts,omitempty"`
}

// Detail is exactly what a user is asked to approve. One member is set.
type Detail struct {
	Command string `json:"command,omitempty"`
	Diff    string `json:"diff,omitempty"`
	Path    string `json:"path,omitempty"`
	Host    string `json:"host,omitempty"`
	Budget  string `json:"budget,omitempty"`
	Call    string `json:"call,omitempty"` // of a tool of an MCP server, or a task for a remote agent, whole
}

// String is the text shown to users.
func (d Detail) String() string { return cmp.Or(d.Command, d.Diff, d.Path, d.Host, d.Budget, d.Call) }

// A Request is what a tool call needs beyond the permissions of the agent.
type Request struct {
	Tag string // "@exec:git push": what "always" would grant
	// Also are the tags of further permissions that the call needs; one answer is for all
	// of them. Part of the hash.
	Also    []string
	Reason  string
	Detail  Detail
	Workdir string // absolute path of the folder where it would run; part of the hash
	// Sandbox is the level of the sandbox that a command would run in, NoSandbox, or "" if
	// it is not a command. Whether there is one is part of the hash.
	Sandbox string
	// Programs are the programs that a command names and the files that would run,
	// "git: /usr/bin/git".
	Programs []string
	// Scripts are the files that a command names and the agent could change. Part of the
	// hash.
	Scripts []Script
	// Prefix is the tag that the answer Prefix grants: "@exec:git push"; "" if no rule
	// covers exactly this request.
	Prefix string
	// Sources are what the turn had read from outside when it asked, and senders who do not
	// speak for the owner: "https://example.com/", "the guest Bob".
	Sources []string
	// AskAlways: every call asks, even if the tag was granted, for example because there is
	// no sandbox.
	AskAlways bool
	// Gate: the request comes from the gate of a scheduled task, not from a call of the
	// agent, so the model is not notified of the answer.
	Gate bool
}

// NoSandbox is the Request.Sandbox of a command that runs without a sandbox.
const NoSandbox = "none"

// SHA256 is the hash that binds an approval to the exact request of one agent. An approval for a
// command in a sandbox is not valid without a sandbox, nor if the scripts that the command names
// have other content.
func (r Request) SHA256(agent string) string {
	if b, ok := BudgetOf(r.Tag); ok {
		b.More = 0 // each request that a limit refuses is the same question
		r.Tag = b.Tag()
	}
	data, _ := json.Marshal(struct { // of strings and truths, which cannot fail
		Agent, Tag, Workdir string
		Detail              Detail
		Scripts             []Script `json:",omitempty"`
		Unconfined          bool     `json:",omitempty"`
		Also                []string `json:",omitempty"`
	}{agent, r.Tag, r.Workdir, r.Detail, r.Scripts, r.Sandbox == NoSandbox, r.Also})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A Decision is the answer to a request.
type Decision string

const (
	Once    Decision = "once"
	Always  Decision = "always" // this exact request from now on; for a General request the permission itself
	Prefix  Decision = "prefix" // every command that begins with the words of Request.Prefix
	Deny    Decision = "deny"
	Expired Decision = "expired"
	// Freed: the request became obsolete because the limit that was reached has room again.
	Freed Decision = "freed"
)
