package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/tools"
)

type noArgs struct{}

func (p *peers) list() tools.Tool {
	return makeTool("agents_list", "List the agents: handle, id, name, type, state.", `"properties":{}`,
		func(ctx context.Context, call tools.Call, _ noArgs) (tools.Result, error) {
			return p.lines(ctx, call, "There are no other agents.", func(a event.Agent) bool { return a.State != event.Ended })
		})
}

func (p *peers) running() tools.Tool {
	return makeTool("subagents", "List the agents that you started and that are working.", `"properties":{}`,
		func(ctx context.Context, call tools.Call, _ noArgs) (tools.Result, error) {
			return p.lines(ctx, call, "None of your agents is at work.", func(a event.Agent) bool {
				return a.ParentAgentID == call.Agent && a.State != event.Ended && a.State != event.Idle
			})
		})
}

type limitArgs struct {
	Limit int `json:"limit"`
}

func (p *peers) sessionsList() tools.Tool {
	return makeTool("sessions_list", "List the conversations of the agents with the time of the newest message.",
		`"properties":{"limit":{"type":"integer","minimum":1,"maximum":500}}`,
		func(ctx context.Context, call tools.Call, args limitArgs) (tools.Result, error) {
			all, err := p.agents.List(ctx, call.Agent)
			if err != nil {
				return tools.Result{}, err
			}
			if args.Limit > 0 && len(all) > args.Limit {
				all = all[len(all)-args.Limit:]
			}

			var b strings.Builder
			for _, a := range all {
				last := "nothing yet"
				if a.LastAt != nil {
					last = a.LastAt.Format(time.RFC3339)
				}
				fmt.Fprintf(&b, "%s %s %q %s, %d waiting, last %s, $%.4f\n", a.Handle, a.ID, a.Name, a.State, a.Queued, last, a.Cost)
			}

			return said("%s", b.String())
		})
}

// lines lists the agents that keep lets pass.
func (p *peers) lines(ctx context.Context, call tools.Call, none string, keep func(event.Agent) bool) (tools.Result, error) {
	all, err := p.agents.List(ctx, call.Agent)
	if err != nil {
		return tools.Result{}, err
	}
	var b strings.Builder
	for _, a := range all {
		if keep(a) {
			b.WriteString(line(a, call.Agent))
		}
	}

	if b.Len() == 0 {
		return said("%s", none)
	}

	return said("%s", b.String())
}

func line(a event.Agent, self string) string {
	you := ""
	if a.ID == self {
		you = " (you)"
	}

	return fmt.Sprintf("%s %s %q %s %s%s\n", a.Handle, a.ID, a.Name, a.Type, a.State, you)
}

// permanents lists the standing colleagues.
func permanents(all []event.Agent) tools.Result {
	var b strings.Builder
	for _, a := range all {
		if a.Type == string(address.Permanent) && a.State != event.Ended {
			b.WriteString(line(a, ""))
		}
	}

	if b.Len() == 0 {
		b.WriteString("There are no permanent agents. Give name and systemPrompt to make one.")
	}

	return tools.Result{Text: b.String()}
}

type whoArgs struct {
	AgentID string `json:"agentId"`
	Limit   int    `json:"limit"`
}

const whoSchema = `"properties":{"agentId":{"type":"string","minLength":1}},"required":["agentId"]`

func (p *peers) status(name, description string) tools.Tool {
	return makeTool(name, description, whoSchema, func(ctx context.Context, call tools.Call, args whoArgs) (tools.Result, error) {
		a, err := p.find(ctx, call.Agent, args.AgentID)
		if err != nil {
			return tools.Result{}, err
		}
		a.Said = "" // sessions_history reads what it says, and marks the turn
		return asJSON(a)
	})
}

func (p *peers) sessionsStatus() tools.Tool {
	return makeTool("sessions_status", "Show the messages, tokens, cost and state of an agent; without agentId, your own.",
		`"properties":{"agentId":{"type":"string"}}`,
		func(ctx context.Context, call tools.Call, args whoArgs) (tools.Result, error) {
			id := call.Agent
			if args.AgentID != "" {
				a, err := p.find(ctx, call.Agent, args.AgentID)
				if err != nil {
					return tools.Result{}, err
				}
				id = a.ID
			}

			s, err := p.agents.Session(ctx, call.Agent, id)
			if err != nil {
				return tools.Result{}, err
			}
			return asJSON(s)
		})
}

// asJSON is a result that a model reads as JSON.
func asJSON(v any) (tools.Result, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return tools.Result{}, fmt.Errorf("encode result: %w", err)
	}

	return tools.Result{Text: string(data)}, nil
}

// find is the agent that ref names, among those that asker may know of.
func (p *peers) find(ctx context.Context, asker, ref string) (event.Agent, error) {
	all, err := p.agents.List(ctx, asker)
	if err != nil {
		return event.Agent{}, err
	}
	var fits []event.Agent
	for _, a := range all {
		switch {
		case a.ID == ref, strings.TrimSuffix(a.Handle, "/") == strings.TrimSuffix(ref, "/"):
			return a, nil
		case a.Name == ref, len(ref) >= 4 && strings.HasPrefix(a.ID, ref):
			fits = append(fits, a)
		}
	}

	switch len(fits) {
	case 0:
		return event.Agent{}, fmt.Errorf("no such agent: %q; agents_list names those there are", ref)
	case 1:
		return fits[0], nil
	}

	return event.Agent{}, fmt.Errorf("%q fits %d agents; give the id", ref, len(fits))
}

func (p *peers) stop() tools.Tool {
	return makeTool("agent_stop",
		"Stop an agent that you started, and all agents that it started. They cannot be resumed.", whoSchema,
		func(ctx context.Context, call tools.Call, args whoArgs) (tools.Result, error) {
			a, err := p.agents.Stop(ctx, call.Agent, args.AgentID)
			if err != nil {
				return tools.Result{}, err
			}
			return said("Stopped %s (id: %s).", a.Name, a.ID)
		})
}

// Bounds of sessions_history.
const (
	historyLimit = 40   // records, if the call names none
	historyText  = 2000 // characters of one message
)

func (p *peers) sessionsHistory() tools.Tool {
	return makeTool("sessions_history", "Read the newest messages of another agent's conversation.",
		`"properties":{
			"agentId":{"type":"string","minLength":1},
			"limit":{"type":"integer","minimum":1,"maximum":500,"description":"default 40"}},"required":["agentId"]`,
		func(ctx context.Context, call tools.Call, args whoArgs) (tools.Result, error) {
			if args.Limit == 0 {
				args.Limit = historyLimit
			}
			if s, ok := p.agents.(Strangers); ok && len(call.Sources) > 0 && !s.Related(call.Agent, args.AgentID) {
				return tools.Result{Status: tools.Denied, Text: "denied: this turn has read " + strings.Join(call.Sources, ", ") +
					", which may be what asks for it; the conversations of others are read only in a turn of the owner's own"}, nil
			}

			page, err := p.agents.History(ctx, call.Agent, args.AgentID, args.Limit)
			if err != nil {
				return tools.Result{}, err
			}
			var b strings.Builder
			for _, rec := range page.Records {
				b.WriteString(spoken(rec))
			}

			if b.Len() == 0 {
				return said("Nothing was said yet.")
			}
			return tools.Result{Text: b.String(), Source: "the conversation of agent " + args.AgentID}, nil
		})
}

// spoken is a record of history as a line, "" if nothing is said in it.
func spoken(rec json.RawMessage) string {
	var r struct {
		At, Type, Text, Origin, Name, Status string
		ToolCalls                            []struct{ Name string }
	}
	if json.Unmarshal(rec, &r) != nil {
		return ""
	}

	switch r.Type {
	case "user_message":
		who := "person"
		if r.Origin != "" {
			who = "from " + r.Origin
		}
		return fmt.Sprintf("[%s] %s: %s\n", r.At, who, clip(r.Text, historyText))
	case "assistant_message":
		out := ""
		if r.Text != "" {
			out = fmt.Sprintf("[%s] agent: %s\n", r.At, clip(r.Text, historyText))
		}
		for _, c := range r.ToolCalls {
			out += fmt.Sprintf("[%s] agent calls %s\n", r.At, c.Name)
		}
		return out
	case "tool_result":
		return fmt.Sprintf("[%s] %s: %s\n", r.At, r.Name, r.Status)
	}

	return ""
}
