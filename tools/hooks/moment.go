package hooks

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// A Moment is what a program reads: where the agent is, and what is about to happen or has.
type Moment struct {
	Event   Event
	Agent   Agent
	Turn    string
	Origin  string   // who sent the message that the turn is about: "telegram/5550001", an agent's id
	Sources []string // what the turn has read from outside

	Call            // before_tool, after_tool
	Message Message // on_message, before_prompt
	Answer  string  // turn_end: what the model said last
	Again   bool    // turn_end: the turn continues because of a hook
	Source  string  // session_start: startup
	Request Request // approval
}

// A Call is a call of a tool.
type Call struct {
	ID       string
	Tool     string
	Input    json.RawMessage
	Response *Response // after_tool
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

// A Request is what a user is asked.
type Request struct{ Token, Permission, Reason, Detail string }

// their names of events, for programs that look at hook_event_name.
var names = map[Event]string{SessionStart: "SessionStart", OnMessage: "UserPromptSubmit", BeforeTool: "PreToolUse",
	AfterTool: "PostToolUse", TurnEnd: "Stop", Approval: "Notification"}

// An input is a Moment as a program reads it.
type input struct {
	HookEventName  string   `json:"hook_event_name"`
	Event          Event    `json:"event"`
	SessionID      string   `json:"session_id"`
	TranscriptPath string   `json:"transcript_path"`
	Cwd            string   `json:"cwd"`
	TurnID         string   `json:"turn_id,omitempty"`
	Origin         string   `json:"origin,omitempty"`
	Sources        []string `json:"sources,omitempty"`
	inputAgent
	inputTool
	inputTalk
	inputRequest
}

// The parts of an input.
type (
	inputAgent struct {
		AgentID   string `json:"agent_id"`
		Handle    string `json:"handle"`
		AgentName string `json:"agent_name"`
	}
	inputTool struct {
		ToolName     string          `json:"tool_name,omitempty"`
		ToolUseID    string          `json:"tool_use_id,omitempty"`
		ToolInput    json.RawMessage `json:"tool_input,omitempty"`
		ToolResponse *Response       `json:"tool_response,omitempty"`
	}
	inputTalk struct {
		Prompt         *string `json:"prompt,omitempty"`
		ItemID         string  `json:"item_id,omitempty"`
		StopHookActive *bool   `json:"stop_hook_active,omitempty"`
		LastAnswer     *string `json:"last_assistant_message,omitempty"`
		Source         string  `json:"source,omitempty"`
	}
	inputRequest struct {
		NotificationType string `json:"notification_type,omitempty"`
		Title            string `json:"title,omitempty"`
		Notification     string `json:"message,omitempty"`
		Token            string `json:"approval_token,omitempty"`
		Permission       string `json:"permission,omitempty"`
	}
)

// encode is what a program reads of the moment.
func (m Moment) encode() ([]byte, error) {
	in := input{HookEventName: cmp.Or(names[m.Event], string(m.Event)), Event: m.Event, SessionID: m.Agent.Session,
		TranscriptPath: m.Agent.History, Cwd: m.Agent.Dir, TurnID: m.Turn, Origin: m.Origin, Sources: m.Sources,
		inputAgent: inputAgent{m.Agent.ID, m.Agent.Handle, m.Agent.Name}}
	switch m.Event {
	case BeforeTool:
		in.inputTool = inputTool{m.Tool, m.ID, m.Input, nil}
	case AfterTool:
		in.inputTool = inputTool{m.Tool, m.ID, m.Input, m.Response}
	case OnMessage, BeforePrompt:
		in.Prompt, in.ItemID = &m.Message.Text, m.Message.Item
	case TurnEnd:
		in.StopHookActive, in.LastAnswer = &m.Again, &m.Answer
	case SessionStart:
		in.inputTalk.Source = m.Source
	case Approval:
		in.inputRequest = inputRequest{NotificationType: "permission_prompt", Title: "Approval requested",
			Token: m.Request.Token, Permission: m.Request.Permission,
			Notification: fmt.Sprintf("%s asks to allow %s: %s\n%s", cmp.Or(m.Agent.Name, m.Agent.ID), m.Request.Permission,
				m.Request.Reason, m.Request.Detail)}
	}
	data, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of a hook: %w", err)
	}

	return data, nil
}
