package address

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
)

// Type is why an agent exists.
type Type string

const (
	User      Type = "user"      // a user in a chat
	Cron      Type = "cron"      // a scheduled task; the agent's id is the task's
	Heartbeat Type = "heartbeat" // the one that looks around now and then
	Subagent  Type = "subagent"  // started by another agent
	Permanent Type = "permanent" // a standing colleague
)

// A Descriptor is who an agent is. Which members it has follows from its Type.
type Descriptor struct {
	Type          Type   `json:"type" check:"required" allow:"user|cron|heartbeat|subagent|permanent"`
	ID            string `json:"id,omitempty"`            // cron, subagent, permanent: the agent's id
	Connector     string `json:"connector,omitempty"`     // user: the connector's id in settings
	UserID        string `json:"userId,omitempty"`        // user: in groups the sender
	ChannelID     string `json:"channelId,omitempty"`     // user
	ThreadID      string `json:"threadId,omitempty"`      // user: of an agent that has a thread of the channel
	ParentAgentID string `json:"parentAgentId,omitempty"` // subagent
	Name          string `json:"name,omitempty"`          // subagent, permanent; of a user's agent by choice
	Definition    string `json:"definition,omitempty"`    // subagent: of which definition
	CallID        string `json:"callId,omitempty"`        // subagent: the tool call that started it
	Description   string `json:"description,omitempty"`   // permanent
	SystemPrompt  string `json:"systemPrompt,omitempty"`  // permanent; subagent: of its definition, as it was then
	WorkspaceDir  string `json:"workspaceDir,omitempty"`  // permanent: relative to the workspace
	Spawned       bool   `json:"spawned,omitempty"`       // user: started by /spawn, whose agents are bounded in number

	// Label and Task are of a subagent that spawn started: the end of each of its
	// turns is reported under this label.
	Label string `json:"label,omitempty"`
	Task  string `json:"task,omitempty"` // the beginning of what it was asked
	// Worktree: a subagent works in a copy of its parent's folder, which is merged when a turn of it is done.
	Worktree bool `json:"worktree,omitempty"`

	// Node is the machine of a cluster, by its cluster.name, that alone works on the agent and those below it; "": any does.
	Node  string `json:"node,omitempty"`
	Model string `json:"model,omitempty"` // subagent: asked for at its start; "": that of its parent
	// CreatedBy is the agent that made a permanent one or a task: it knows and may at
	// most what its maker does.
	CreatedBy string `json:"createdBy,omitempty"`
	// Route is where the work of a subagent was asked for, so that its parent
	// answers there.
	Route message.Address `json:"route,omitzero"`
}

// idRule is how agent ids look: cuid2.
var idRule = lazyregexp.New(`^[a-z0-9]{24,32}$`)

// ValidID reports whether s can be the id of an agent.
func ValidID(s string) bool { return idRule.MatchString(s) }

// Of describes the agent of an address: of a user in a channel, or, without a user, of all who
// write there.
func Of(a message.Address) Descriptor {
	return Descriptor{Type: User, Connector: a.Connector, ChannelID: a.ChannelID, UserID: a.UserID, ThreadID: a.ThreadID}
}

// Address is where the user of an agent of type user is reached.
func (d Descriptor) Address() message.Address {
	return message.Address{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID, ThreadID: d.ThreadID}
}

// Key is what is unique about a descriptor: the same key is the same agent for
// ever. "": only its id tells it from others.
func (d Descriptor) Key() string {
	switch d.Type {
	case User:
		return strings.Join([]string{"user", d.Connector, d.ChannelID, d.UserID, d.ThreadID}, "\x00")
	case Cron:
		return "cron\x00" + d.ID
	case Heartbeat:
		return "heartbeat"
	default:
		return ""
	}
}

// A defect is what is wrong with one member of a descriptor.
type defect struct{ member, reason string }

// check lists what is missing or wrong.
func (d Descriptor) check() []defect {
	var bad []defect
	need := func(member, value string) {
		if value == "" {
			bad = append(bad, defect{member, fmt.Sprintf("%q is missing; a descriptor of type %q needs it", member, d.Type)})
		}
	}
	switch d.Type {
	case User:
		need("connector", d.Connector)
		need("channelId", d.ChannelID)
	case Cron:
		need("id", d.ID)
	case Heartbeat:
	case Subagent:
		need("id", d.ID)
		need("parentAgentId", d.ParentAgentID)
		need("name", d.Name)
	case Permanent:
		need("id", d.ID)
		need("name", d.Name)
	default:
		bad = append(bad, defect{"type", fmt.Sprintf("type %q is not one of user, cron, heartbeat, subagent, permanent", d.Type)})
	}

	for member, id := range map[string]string{"id": d.ID, "parentAgentId": d.ParentAgentID, "createdBy": d.CreatedBy} {
		if id != "" && !ValidID(id) {
			bad = append(bad, defect{member, fmt.Sprintf("%q is not an agent id (24 to 32 of a-z and 0-9)", id)})
		}
	}

	return bad
}

// Encode writes a descriptor as its file.
func Encode(d Descriptor) ([]byte, error) {
	if bad := d.check(); len(bad) > 0 {
		return nil, fmt.Errorf("write descriptor: %s", bad[0].reason)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(d) // text can be written

	return buf.Bytes(), nil
}

// kind is how descriptors are read.
var kind = form.Kind{ID: "descriptor", Unknown: finding.Info, IDs: map[string]string{"bad-value": "invalid", "missing": "invalid"},
	Remedy: "Correct the file; until then the last valid version stays active. Without one, the agent accepts no messages."}

// Decode reads a descriptor; file names it in the findings. With one of severity
// Error the descriptor is not to be used. Members that it does not know stay in
// the file and are findings of severity Info.
func Decode(file string, data []byte) (d Descriptor, found []finding.Finding) {
	if form.Clean(data, &d) && len(d.check()) == 0 {
		return d, nil
	}
	d = Descriptor{}
	f := kind.JSON(file, data)
	if f.Read(&d); f.Failed() {
		return d, f.Found
	}

	for _, bad := range d.check() {
		f.Tell(finding.Error, "bad-value", bad.member, bad.reason, "")
	}

	return d, f.Found
}
