// Package address maps who a message is from to the agent it is for: the codec of
// descriptor.json, and the Index from descriptor, handle and name to agent id.
//
// Files: agents/<id>/descriptor.json says who an agent is, written once when it is
// made and a person's from then on; agents/handles.jsonl gives every agent a path
// of serial numbers for people, append-only, so that a number is never used twice.
// The engine reads the Index; nobody else writes agents/.
package address

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"daycare/engine/finding"
)

// Type is why an agent exists.
type Type string

const (
	User      Type = "user"      // a person in a chat
	Cron      Type = "cron"      // a scheduled task; the agent's id is the task's
	Heartbeat Type = "heartbeat" // the one that looks around now and then
	Subagent  Type = "subagent"  // started by another agent
	Permanent Type = "permanent" // a standing colleague
)

// A Descriptor is who an agent is. Which members it has follows from its Type.
type Descriptor struct {
	Type          Type   `json:"type"`
	ID            string `json:"id,omitempty"`            // cron, subagent, permanent: the agent's id
	Connector     string `json:"connector,omitempty"`     // user: the connector's id in settings
	UserID        string `json:"userId,omitempty"`        // user: in groups the sender
	ChannelID     string `json:"channelId,omitempty"`     // user
	ParentAgentID string `json:"parentAgentId,omitempty"` // subagent
	Name          string `json:"name,omitempty"`          // subagent, permanent; of a user's agent by choice
	Definition    string `json:"definition,omitempty"`    // subagent: of which definition
	CallID        string `json:"callId,omitempty"`        // subagent: the tool call that started it
	Description   string `json:"description,omitempty"`   // permanent
	SystemPrompt  string `json:"systemPrompt,omitempty"`  // permanent
	WorkspaceDir  string `json:"workspaceDir,omitempty"`  // permanent: relative to the workspace
}

// idRule is how agent ids look: cuid2.
var idRule = regexp.MustCompile(`^[a-z0-9]{24,32}$`)

// ValidID reports whether s can be the id of an agent.
func ValidID(s string) bool { return idRule.MatchString(s) }

// key is what is unique about a descriptor: the same key is the same agent for
// ever. "": only its id tells it from others.
func (d Descriptor) key() string {
	switch d.Type {
	case User:
		return strings.Join([]string{"user", d.Connector, d.ChannelID, d.UserID}, "\x00")
	case Cron:
		return "cron\x00" + d.ID
	case Heartbeat:
		return "heartbeat"
	}
	return ""
}

// check says what is missing or wrong.
func (d Descriptor) check() error {
	need := func(member, value string) error {
		if value == "" {
			return fmt.Errorf("%q is missing; a descriptor of type %q needs it", member, d.Type)
		}
		return nil
	}
	id := func() error {
		if d.ID != "" && !ValidID(d.ID) {
			return fmt.Errorf("id %q is not an agent id (24 to 32 of a-z and 0-9)", d.ID)
		}
		return need("id", d.ID)
	}
	switch d.Type {
	case User:
		return errors.Join(need("connector", d.Connector), need("channelId", d.ChannelID))
	case Heartbeat:
		return nil
	case Cron:
		return id()
	case Subagent:
		return errors.Join(id(), need("parentAgentId", d.ParentAgentID), need("name", d.Name))
	case Permanent:
		return errors.Join(id(), need("name", d.Name))
	}
	return fmt.Errorf("type %q is not one of user, cron, heartbeat, subagent, permanent", d.Type)
}

// Encode writes a descriptor as its file.
func Encode(d Descriptor) ([]byte, error) {
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("write descriptor: %w", err)
	}
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

// Decode reads a descriptor; file names it in errors, which are finding.Findings.
// Members that it does not know are left alone.
func Decode(file string, data []byte) (Descriptor, error) {
	var d Descriptor
	bad := func(offset int64, reason string) (Descriptor, error) {
		line, column := finding.Position(data, offset)
		return Descriptor{}, finding.Finding{ID: "descriptor-invalid", Severity: finding.Error, File: file,
			Line: line, Column: column, Reason: reason, Remedy: "correct the file; until then this agent takes no messages"}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&d); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind):
			return bad(kind.Offset-1, fmt.Sprintf("%q is a %s, want a %s", kind.Field, kind.Value, kind.Type))
		case errors.As(err, &syntax):
			return bad(syntax.Offset-1, "not JSON: "+syntax.Error())
		}
		return bad(int64(len(data)), "not JSON: the file ends too early")
	}
	if dec.More() {
		return bad(dec.InputOffset(), "more than one JSON value")
	}
	if err := d.check(); err != nil {
		return bad(0, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return d, nil
}
