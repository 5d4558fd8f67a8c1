package hooks

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// A Moment is what hooks are told of.
type Moment struct {
	Event   Event
	Agent   Agent
	Turn    string
	Origin  string   // who sent the message that the turn is about: "telegram/5550001", an agent's id
	Sources []string // what the turn has read from outside

	Tool     string // before_tool, after_tool
	Call     string // its id
	Input    json.RawMessage
	Response *Response // after_tool
	Message  Message   // on_message, before_prompt
	Answer   string    // turn_end: what the model said last
	Again    bool      // turn_end: the turn goes on because of a hook
	Source   string    // session_start: startup, clear
	Request  Request   // approval
}

// An Agent is whose moment it is.
type Agent struct {
	ID, Handle, Name string
	Session          string
	History          string // path of the file
	Dir              string // where it works
}

// A Message is what came in.
type Message struct{ Item, Text string }

// A Response is what a tool gave.
type Response struct {
	Status string `json:"status"`
	Output string `json:"output"`
}

// A Request is what a person is asked.
type Request struct{ Token, Permission, Reason, Detail string }

// their names of events, for programs that look at hook_event_name.
var names = map[Event]string{SessionStart: "SessionStart", OnMessage: "UserPromptSubmit", BeforeTool: "PreToolUse",
	AfterTool: "PostToolUse", TurnEnd: "Stop", Approval: "Notification"}

// input is a Moment as a program reads it.
type input struct {
	HookEventName  string   `json:"hook_event_name"`
	Event          Event    `json:"event"`
	SessionID      string   `json:"session_id"`
	TranscriptPath string   `json:"transcript_path"`
	Cwd            string   `json:"cwd"`
	AgentID        string   `json:"agent_id"`
	Handle         string   `json:"handle"`
	AgentName      string   `json:"agent_name"`
	TurnID         string   `json:"turn_id,omitempty"`
	Origin         string   `json:"origin,omitempty"`
	Sources        []string `json:"sources,omitempty"`

	ToolName     string          `json:"tool_name,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	ToolInput    json.RawMessage `json:"tool_input,omitempty"`
	ToolResponse *Response       `json:"tool_response,omitempty"`

	Prompt           *string `json:"prompt,omitempty"`
	ItemID           string  `json:"item_id,omitempty"`
	StopHookActive   *bool   `json:"stop_hook_active,omitempty"`
	LastAnswer       *string `json:"last_assistant_message,omitempty"`
	Source           string  `json:"source,omitempty"`
	NotificationType string  `json:"notification_type,omitempty"`
	Title            string  `json:"title,omitempty"`
	Notification     string  `json:"message,omitempty"`
	Token            string  `json:"approval_token,omitempty"`
	Permission       string  `json:"permission,omitempty"`
}

// encode is what a program reads of the moment.
func (m Moment) encode() ([]byte, error) {
	in := input{HookEventName: cmp.Or(names[m.Event], string(m.Event)), Event: m.Event, SessionID: m.Agent.Session,
		TranscriptPath: m.Agent.History, Cwd: m.Agent.Dir, AgentID: m.Agent.ID, Handle: m.Agent.Handle, AgentName: m.Agent.Name,
		TurnID: m.Turn, Origin: m.Origin, Sources: m.Sources, ToolName: m.Tool, ToolUseID: m.Call, ToolInput: m.Input,
		ToolResponse: m.Response, ItemID: m.Message.Item, Source: m.Source}
	if m.Event != AfterTool {
		in.ToolResponse = nil
	}
	switch m.Event {
	case OnMessage, BeforePrompt:
		in.Prompt = &m.Message.Text
	case TurnEnd:
		in.StopHookActive, in.LastAnswer = &m.Again, &m.Answer
	case Approval:
		in.NotificationType, in.Title, in.Token, in.Permission = "permission_prompt", "Approval requested", m.Request.Token, m.Request.Permission
		in.Notification = fmt.Sprintf("%s asks to allow %s: %s\n%s", cmp.Or(m.Agent.Name, m.Agent.ID), m.Request.Permission,
			m.Request.Reason, m.Request.Detail)
	}
	data, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of a hook: %w", err)
	}
	return data, nil
}
