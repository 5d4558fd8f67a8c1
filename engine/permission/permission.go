// Package permission is what an agent may do and how it asks for more: Access and
// Set with their tags, Request and Decision, and the durable queue of requests
// in .daycare/permissions.
package permission

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"daycare/engine/disk"
)

// A Set is the rights of one agent, the permissions member of its state.json.
type Set struct {
	WorkingDir string   `json:"workingDir"` // absolute; on disk relative if it lies in the workspace
	ReadDirs   []string `json:"readDirs"`   // likewise, beside WorkingDir
	WriteDirs  []string `json:"writeDirs"`
	Web        bool     `json:"web"`
	Hosts      []string `json:"hosts,omitempty"`
	Lan        []string `json:"lan,omitempty"` // host:port of this machine or in its network
	Exec       []string `json:"exec"`          // command prefixes allowed without asking
	MCP        []string `json:"mcp,omitempty"` // server/tool, or server for all of its tools
	Grants     []Grant  `json:"grants,omitempty"`
	// Profile narrows all of it; "" is that of the settings.
	Profile Profile `json:"profile,omitempty" allow:"|read-only|ask|auto|plan"`
	// Planned: a plan was approved in this turn.
	Planned bool `json:"-"`
}

// A Grant remembers who gave a right and when.
type Grant struct {
	Tag   string     `json:"tag"`
	At    disk.Stamp `json:"at"`
	By    string     `json:"by"`
	Token string     `json:"token,omitempty"`
	// SHA256 binds the grant to one exact request, where the tag alone would
	// allow more than the person saw.
	SHA256 string `json:"sha256,omitempty"`
	// Scripts are the contents of the files that the words of an @exec: rule name: with
	// another content the rule does not cover the command.
	Scripts []Script `json:"scripts,omitempty"`
}

// Detail is the exact thing that a person is asked to allow; one member is set.
type Detail struct {
	Command string `json:"command,omitempty"`
	Diff    string `json:"diff,omitempty"`
	Path    string `json:"path,omitempty"`
	Host    string `json:"host,omitempty"`
	Budget  string `json:"budget,omitempty"`
	Call    string `json:"call,omitempty"` // of a tool of an MCP server, with its arguments
}

// String is the detail as people read it.
func (d Detail) String() string { return cmp.Or(d.Command, d.Diff, d.Path, d.Host, d.Budget, d.Call) }

// A Request is what a tool call needs beyond the agent's rights.
type Request struct {
	Tag string // "@exec:git push": what "always" would grant
	// Also are the further rights without which the call cannot run: the same answer is
	// for all of them. Part of the hash.
	Also    []string
	Reason  string
	Detail  Detail
	Workdir string // where it would run; part of the hash
	// Sandbox is what would hold a command: the level of a sandbox, NoSandbox, or "" for
	// what is not a command. That there is none is part of the hash.
	Sandbox string
	// Programs are the programs that a command names and the files that would run,
	// "git: /usr/bin/git".
	Programs []string
	// Scripts are the files named by a command that the agent could change; part of the
	// hash.
	Scripts []Script
	// Prefix is the tag that the answer Prefix grants: "@exec:git push". "" where no rule
	// covers exactly this request.
	Prefix string
	// Sources are what the turn read from outside before it asked, with who is not known
	// to speak for the owner: "https://example.com/".
	Sources []string
	// AskAlways makes every call ask, whatever was granted for the tag: there is
	// no sandbox to hold the command.
	AskAlways bool
	// Gate: no call of the agent asks but the gate of a scheduled task. The answer is
	// nothing to the model, which has not asked.
	Gate bool
}

// NoSandbox is the Request.Sandbox of a command that nothing holds.
const NoSandbox = "none"

// SHA256 is the hash that binds an approval to the exact request of one agent. What was
// allowed in a sandbox is not allowed without one, nor with another content of the
// scripts that it names.
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
	Always  Decision = "always" // this exact request, or the right that was asked for as such
	Prefix  Decision = "prefix" // every command that begins with the words of Request.Prefix
	Deny    Decision = "deny"
	Expired Decision = "expired"
	// Freed: a limit that was reached has room again, so that the question is no more.
	Freed Decision = "freed"
)
