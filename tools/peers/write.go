package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

type sendArgs struct {
	Text    string `json:"text"`
	AgentID string `json:"agentId"`
	Silent  bool   `json:"silent"`
}

const sendName = "send_agent_message"

func (p *peers) send() tools.Tool {
	return p.telling(makeTool(sendName,
		"Send a message to another agent. Without agentId: to the agent that started you, or the one that talks with the user.",
		`"properties":{
			"text":{"type":"string","minLength":1},
			"agentId":{"type":"string","description":"id, name or handle"},
			"silent":{"type":"boolean","description":"do not start a turn"}},"required":["text"]`,
		func(ctx context.Context, call tools.Call, args sendArgs) (tools.Result, error) {
			in := text(call, args.AgentID, args.Text)
			in.Silent = args.Silent
			if call.Route != (message.Address{}) {
				in.Route = &call.Route
			}

			r, err := p.agents.Post(ctx, in)
			if err != nil {
				return tools.Result{}, err
			}

			return said("Sent to agent %s.", r.Agent)
		}))
}

// telling makes a tool ask before it writes to someone else in a turn that has read text
// from outside.
func (p *peers) telling(t *tool) *tool {
	t.asks = func(call tools.Call) *permission.Request {
		var args struct{ AgentID, Text string }
		if json.Unmarshal(call.Arguments, &args) != nil || args.AgentID == "" {
			return nil // Run says what is wrong; without a name it is the own person
		}
		return p.needs(call, args.AgentID, args.Text)
	}

	return t
}

// Target is whom a call of these tools writes to: ref is what the call names, ""
// the default. ok is false for a call that writes to nobody, or only notes.
func Target(name string, arguments json.RawMessage) (ref string, ok bool) {
	var args sendArgs
	switch name {
	case sendName, "sessions_send":
		err := json.Unmarshal(arguments, &args)
		return args.AgentID, err == nil && !args.Silent && strings.TrimSpace(args.Text) != ""
	}

	return "", false
}

type askArgs struct {
	AgentID        string `json:"agentId"`
	Text           string `json:"text"`
	TimeoutSeconds int    `json:"timeoutSeconds"`
}

// maxWait bounds how long one agent waits for another: two that wait for each
// other are freed by it.
const maxWait = 10 * time.Minute

func (p *peers) sessionsSend() tools.Tool {
	return p.telling(makeTool("sessions_send",
		"Send a message to another agent and wait for its answer; without text: wait for its current turn. timeoutSeconds 0: do not wait.",
		`"properties":{
			"agentId":{"type":"string","minLength":1},
			"text":{"type":"string"},
			"timeoutSeconds":{"type":"integer","minimum":0,"maximum":600}},"required":["agentId"]`,
		func(ctx context.Context, call tools.Call, args askArgs) (tools.Result, error) {
			if strings.TrimSpace(args.Text) == "" {
				return p.receive(ctx, call, args)
			}
			to, err := p.agents.Target(call.Agent, args.AgentID)
			if err != nil {
				return tools.Result{}, err
			}
			if to == call.Agent { // it would wait for itself until the timeout
				return tools.Errorf("sessions_send: %s is yourself; agents_list names the others", args.AgentID), nil
			}

			r, err := p.agents.Post(ctx, text(call, args.AgentID, args.Text))
			if err != nil {
				return tools.Result{}, err
			}
			w, ok := p.agents.(Awaiter)
			if !ok || args.TimeoutSeconds == 0 {
				return said("Sent to agent %s.", r.Agent)
			}

			return answer(ctx, w, r, min(time.Duration(args.TimeoutSeconds)*time.Second, maxWait))
		}))
}

// waitDefault is how long sessions_send waits for an agent's work if the call does not say.
const waitDefault = 2 * time.Minute

// receive waits for what an agent is working on: a receive that blocks the turn but no
// inbox. What the agent writes meanwhile arrives there, as always.
func (p *peers) receive(ctx context.Context, call tools.Call, args askArgs) (tools.Result, error) {
	a, err := p.find(ctx, call.Agent, args.AgentID)
	if err != nil {
		return tools.Result{}, err
	}
	w, ok := p.agents.(Awaiter)
	if !ok {
		return tools.Errorf("text is missing"), nil
	}
	if a.ID == call.Agent {
		return tools.Errorf("you are that agent: end your turn instead; what is sent to you begins the next one"), nil
	}

	item, err := w.Work(ctx, call.Agent, a.ID)
	if err != nil {
		return tools.Result{}, err
	}
	if item == "" {
		return said("%s has nothing to do. sessions_history shows what it said.", a.Name)
	}

	limit := waitDefault
	if args.TimeoutSeconds > 0 {
		limit = min(time.Duration(args.TimeoutSeconds)*time.Second, maxWait)
	}

	return answer(ctx, w, message.Receipt{Agent: a.ID, Item: item}, limit)
}

// answer waits for the answer to an item.
func answer(ctx context.Context, w Awaiter, r message.Receipt, limit time.Duration) (tools.Result, error) {
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	o, err := w.Await(inner, r.Agent, r.Item)
	switch {
	case err != nil && errors.Is(inner.Err(), context.DeadlineExceeded) && ctx.Err() == nil:
		return tools.Result{Status: tools.TimedOut, Text: "there was no answer within " + limit.String() +
			"; sessions_history shows it later"}, nil
	case err != nil:
		return tools.Result{}, err
	case o.Reason != "done":
		return tools.Errorf("the other agent's turn ended with %q: %s", o.Reason, o.Text), nil
	}

	return tools.Result{Text: o.Text, Source: message.Relayed(r.Agent, o.Untrusted)}, nil
}

type messageArgs struct {
	Text    string `json:"text"`
	AgentID string `json:"agentId"`
}

func (p *peers) message(c Courier) tools.Tool {
	return p.telling(makeTool("message",
		"Send a message to the chat now, in addition to your answer. With agentId: to that agent's chat, if it is the same user's.",
		`"properties":{
			"text":{"type":"string","minLength":1},
			"agentId":{"type":"string"}},"required":["text"]`,
		func(ctx context.Context, call tools.Call, args messageArgs) (tools.Result, error) {
			if err := c.Say(ctx, call.Agent, args.AgentID, call.Route, call.ID, args.Text); err != nil {
				return tools.Result{}, err
			}
			return said("Delivered.")
		}))
}

type reactArgs struct {
	Emoji     string `json:"emoji"`
	MessageID string `json:"messageId"`
}

// ToChat lists the tools that reach the chat of a person.
var ToChat = []string{"message", "send_file", "set_reaction"}

// maxEmoji is how long an emoji, or a platform's name for one, may be, in bytes.
const maxEmoji = 64

func (p *peers) react(r Reactor) tools.Tool {
	return makeTool("set_reaction",
		"React with an emoji to the message that you are answering. If that is enough, answer NO_MESSAGE.",
		`"properties":{
			"emoji":{"type":"string","minLength":1},
			"messageId":{"type":"string","description":"default: the message that you are answering"}},"required":["emoji"]`,
		func(ctx context.Context, call tools.Call, args reactArgs) (tools.Result, error) {
			id := cmp.Or(args.MessageID, call.Message)
			switch {
			case len(args.Emoji) > maxEmoji:
				return tools.Errorf("set_reaction: one emoji, please"), nil
			case id == "":
				return tools.Errorf("set_reaction: the message that you answer is not from a chat; name one by messageId"), nil
			}

			if err := r.React(ctx, call.Route, id, args.Emoji); err != nil {
				return tools.Result{}, err
			}

			return said("Reacted.")
		})
}
