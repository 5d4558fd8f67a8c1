package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"daycare/engine/event"
	"daycare/engine/plain"
)

// agentRoutes serve what is asked about agents, and what is done with them.
type agentRoutes struct {
	api    *api
	agents Agents
	html   func(markdown string) string // nil: records have no HTML
}

func agentRows(a *api, g agentRoutes, t talks) []row {
	return []row{
		on(a, listAgents, g.list),
		on(a, createAgent, g.create),
		on(a, showAgent, g.show),
		on(a, removeAgent, g.remove),
		on(a, history, g.history),
		on(a, draft, g.draft),
		on(a, waiting, g.inbox),
		on(a, dropItem, g.drop),
		on(a, moveToFront, g.front),
		on(a, showItem, g.item),
		on(a, stop, g.stop),
		on(a, reset, t.reset),
		on(a, compact, t.compact),
		on(a, mark, t.mark),
		on(a, kill, g.kill),
	}
}

func (g agentRoutes) list(ctx context.Context, in listIn) (agentsBody, error) {
	list := g.agents.Agents
	if in.Family != "" {
		id, err := g.api.resolve(ctx, in.Family)
		if err != nil {
			return agentsBody{}, err
		}
		list = func(ctx context.Context) ([]event.Agent, error) { return g.agents.Family(ctx, id) }
	}

	all, err := list(ctx)
	all = slices.DeleteFunc(all, func(v event.Agent) bool { return !knows(ctx, v.ID) })

	return agentsBody{some(all)}, err
}

// longestName bounds the name that an agent is given, in characters.
const longestName = 200

// checkName reports what is wrong with a name for an agent.
func checkName(name string) error {
	steers := func(r rune) bool { return r == '\n' || r == '\t' || plain.Steers(r) }
	if utf8.RuneCountInString(name) <= longestName && !strings.ContainsFunc(name, steers) {
		return nil
	}
	return &Invalid{Field: "name",
		Reason: fmt.Sprintf("must be one line of at most %d characters, without control characters", longestName)}
}

// agentTypes are the kinds of agent that are made by hand.
const agentTypes = "user, permanent, subagent"

func (g agentRoutes) create(ctx context.Context, in aBody[NewAgent]) (event.Agent, error) {
	n := in.Body
	if err := checkName(n.Name); err != nil {
		return event.Agent{}, err
	}
	switch n.Type {
	case "", "user":
		n.Type = "user"
	case "permanent":
		if strings.TrimSpace(n.Name) == "" {
			return event.Agent{}, &Invalid{Field: "name", Reason: "required for a permanent agent"}
		}
	case "subagent":
		if n.Parent == "" {
			return event.Agent{}, &Invalid{Field: "parent", Reason: "required for a subagent",
				Hint: "name the agent it works for by handle or id"}
		}
	default:
		return event.Agent{}, &Invalid{Field: "type", Reason: fmt.Sprintf("found %q, allowed: %s", n.Type, agentTypes)}
	}

	if n.Spawned && n.Type != "user" {
		return event.Agent{}, &Invalid{Field: "spawned", Reason: "only agents of type user can be spawned"}
	}
	if (n.Connector == "") != (n.ChannelID == "") || n.Connector != "" && n.Type != "user" {
		return event.Agent{}, &Invalid{Field: "channelId", Reason: "needs connector, and connector needs it, of an agent of type user"}
	}
	if n.Parent != "" {
		parent, err := g.api.resolve(ctx, n.Parent)
		if err != nil {
			return event.Agent{}, err
		}
		n.Parent = parent
	}

	return g.agents.Create(ctx, n)
}

func (g agentRoutes) show(ctx context.Context, in anAgent) (event.Agent, error) {
	return g.agents.Agent(ctx, in.ID)
}

func (g agentRoutes) remove(ctx context.Context, in removeIn) (trashBody, error) {
	trash, err := g.agents.Remove(ctx, in.ID, in.Force)
	return trashBody{trash}, err
}

func (g agentRoutes) stop(ctx context.Context, in stopIn) (stoppedBody, error) {
	stopped, err := g.agents.Stop(ctx, in.ID, in.Item)
	return stoppedBody{stopped}, err
}

func (g agentRoutes) kill(ctx context.Context, in anAgent) (empty, error) {
	return empty{}, g.agents.Kill(ctx, in.ID)
}

func (g agentRoutes) history(ctx context.Context, in historyIn) (event.Page, error) {
	page, err := g.agents.History(ctx, in.ID, in.Before, int(in.Limit))
	page.Records = some(page.Records)
	if in.HTML && g.html != nil {
		for i, r := range page.Records {
			page.Records[i] = withHTML(r, g.html)
		}
	}

	return page, err
}

// withHTML adds html to a record that has a text: what people, models and summaries say.
func withHTML(record json.RawMessage, render func(string) string) json.RawMessage {
	var r struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	said := []string{"user_message", "assistant_message", "system_message", "summary"}
	if json.Unmarshal(record, &r) != nil || r.Text == "" || !slices.Contains(said, r.Type) {
		return record
	}
	made, err := json.Marshal(render(r.Text))
	end := bytes.LastIndexByte(record, '}')
	if err != nil || end < 0 {
		return record
	}

	return slices.Concat(record[:end], []byte(`,"html":`), made, []byte("}"))
}

func (g agentRoutes) draft(ctx context.Context, in anAgent) (event.Draft, error) {
	return g.agents.Draft(ctx, in.ID)
}

func (g agentRoutes) inbox(ctx context.Context, in anAgent) (inboxBody, error) {
	items, err := g.agents.Inbox(ctx, in.ID)
	return inboxBody{some(items)}, err
}

func (g agentRoutes) drop(ctx context.Context, in itemIn) (empty, error) {
	return empty{}, g.agents.Drop(ctx, in.ID, in.Item)
}

func (g agentRoutes) front(ctx context.Context, in itemIn) (empty, error) {
	return empty{}, g.agents.Front(ctx, in.ID, in.Item)
}

func (g agentRoutes) item(ctx context.Context, in itemIn) (event.Posted, error) {
	return g.agents.Item(ctx, in.ID, in.Item)
}

// some makes a nil list an empty one: clients read [] more easily than null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
