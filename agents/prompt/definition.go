package prompt

import (
	"reflect"
	"slices"
)

// A Role is why an agent exists. The words are those of a descriptor's "type".
type Role string

const (
	User      Role = "user" // in the foreground: a user reads what it answers
	Subagent  Role = "subagent"
	Cron      Role = "cron"
	Heartbeat Role = "heartbeat"
	Permanent Role = "permanent"
)

// A Definition is all that the system prompt is made of. It holds nothing that
// varies inside a session, because a changed system prompt empties every cache.
type Definition struct {
	Name   string
	Handle string // "0/1"
	Role   Role   // "" is User
	Parent string // id of the agent that started it; "": none

	Workspace string // absolute
	OS        string // runtime.GOOS

	Prompt string  // what a definition or a descriptor adds in its own words
	Peers  bool    // it can start and write to other agents
	Skills []Skill // how-tos that it can read with the tool skill

	Files Files
}

// Equal reports whether two definitions give the same system prompt, without rendering it: false may be
// wrong.
func (d Definition) Equal(other Definition) bool {
	if !slices.Equal(d.Skills, other.Skills) {
		return false
	}
	d.Skills, other.Skills = nil, nil
	return reflect.DeepEqual(d, other)
}

// A Skill is what the model sees of a skill before it reads it.
type Skill struct{ Name, Description string }

// Files are the texts that users write for their agents. Each is cut at MaxFile.
type Files struct {
	Soul   string // .daycare/SOUL.md: how the agent is
	User   string // .daycare/USER.md: whom it works for
	Rules  string // .daycare/AGENTS.md: house rules
	Agents string // AGENTS.md of the workspace: the project's own
	Claude string // CLAUDE.md of the workspace, where there is no AGENTS.md
}

// MaxFile is how many bytes of one of the Files the model sees.
const MaxFile = 16 << 10
