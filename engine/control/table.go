package control

import (
	"net/http"

	"daycare/engine/apitoken"
	"daycare/engine/fault"
)

// A reach says which agents a route is about, for callers whose rights are about some
// agents only.
type reach int

const (
	_     reach = iota
	none        // no agent: everybody may use it
	one         // the agent {id} of the path; another than the caller's does not exist
	known       // the handler leaves out what belongs to other agents
	all         // all of them, or the daemon: not for such callers
)

// A route is a row of the table. Every row says which scope it needs and which agents it
// is about.
type route struct {
	pattern string
	scope   apitoken.Scope
	reach   reach
	serve   http.HandlerFunc
}

// table is the list of all routes that the backend has something for.
func (a *api) table() []route {
	rows := append(a.daemonRows(), a.agentRows()...)
	rows = append(rows, a.messageRows()...)
	if a.Folders != nil {
		rows = append(rows, a.folderRows()...)
	}
	if a.Grants != nil {
		rows = append(rows, a.grantRows()...)
	}
	if a.Schedules != nil {
		rows = append(rows, clocks{a, a.Schedules}.rows()...)
	}
	return rows
}

func (a *api) daemonRows() []route {
	rows := []route{
		{"GET /healthz", apitoken.Read, none, healthz},
		{"GET /metrics", apitoken.Read, all, a.metrics},
		{"GET /v1/status", apitoken.Read, known, a.handle(a.status)},
		{"GET /v1/config", apitoken.Admin, all, a.handle(a.config)},
		{"GET /v1/tools", apitoken.Read, none, a.handle(a.tools)},
		{"POST /v1/reload", apitoken.Admin, all, a.handle(a.reload)},
		{"POST /v1/shutdown", apitoken.Admin, all, a.handle(a.shutdown)},
	}
	if a.SubAgents != nil {
		rows = append(rows, route{"GET /v1/subagents", apitoken.Read, none, a.handle(a.subAgents)})
	}
	if a.Offers != nil {
		rows = append(rows, route{"GET /v1/models", apitoken.Read, none, a.handle(a.models)},
			route{"GET /v1/skills", apitoken.Read, none, a.handle(a.skills)})
	}
	if a.Costs != nil {
		rows = append(rows, route{"GET /v1/cost", apitoken.Read, all, a.handle(a.cost)})
	}
	return rows
}

func (a *api) agentRows() []route {
	return []route{
		{"GET /v1/agents", apitoken.Read, known, a.handle(a.listAgents)},
		{"POST /v1/agents", apitoken.Admin, all, a.handle(a.createAgent)},
		{"GET /v1/agents/{id}", apitoken.Read, one, a.agent(a.showAgent)},
		{"DELETE /v1/agents/{id}", apitoken.Admin, one, a.agent(a.removeAgent)},
		{"POST /v1/agents/{id}/stop", apitoken.Chat, one, a.agent(a.stop)},
		{"POST /v1/agents/{id}/reset", apitoken.Chat, one, a.agent(a.reset)},
		{"POST /v1/agents/{id}/compact", apitoken.Chat, one, a.agent(a.compact)},
		{"POST /v1/agents/{id}/mark", apitoken.Chat, one, a.agent(a.mark)},
		{"POST /v1/agents/{id}/kill", apitoken.Admin, one, a.agent(a.kill)},
		{"GET /v1/agents/{id}/history", apitoken.Read, one, a.agent(a.history)},
		{"GET /v1/agents/{id}/draft", apitoken.Read, one, a.agent(a.draft)},
		{"GET /v1/agents/{id}/inbox", apitoken.Read, one, a.agent(a.inbox)},
		{"DELETE /v1/agents/{id}/inbox/{item}", apitoken.Chat, one, a.agent(a.drop)},
		{"POST /v1/agents/{id}/inbox/{item}/front", apitoken.Chat, one, a.agent(a.front)},
	}
}

// messageRows are about talk. Who posts by a descriptor speaks for whoever it names.
func (a *api) messageRows() []route {
	return []route{
		{"POST /v1/agents/{id}/messages", apitoken.Chat, one, a.postToAgent},
		{"POST /v1/messages", apitoken.Admin, all, a.postByDescriptor},
		{"GET /v1/events", apitoken.Read, known, a.events},
		{"GET /v1/permissions", apitoken.Read, known, a.handle(a.asks)},
		{"POST /v1/permissions/{token}", apitoken.Approve, known, a.handle(a.decide)},
	}
}

// folderRows change what an agent is, or make another one. A descriptor decides where
// answers go and a state what is allowed, so an edit reaches beyond the agent.
func (a *api) folderRows() []route {
	return []route{
		{"POST /v1/agents/{id}/rewind", apitoken.Chat, one, a.agent(a.rewind)},
		{"POST /v1/agents/{id}/fork", apitoken.Admin, all, a.agent(a.fork)},
		{"POST /v1/agents/{id}/model", apitoken.Admin, one, a.agent(a.switchModel)},
		{"GET /v1/agents/{id}/files/{name}", apitoken.Read, one, a.readFile},
		{"PUT /v1/agents/{id}/files/{name}", apitoken.Admin, all, a.agent(a.writeFile)},
		{"GET /v1/trash", apitoken.Read, all, a.handle(a.trash)},
		{"POST /v1/trash/{name}/restore", apitoken.Admin, all, a.handle(a.restore)},
		{"POST /v1/import", apitoken.Admin, all, a.handle(a.importAgent)},
	}
}

func (a *api) grantRows() []route {
	return []route{
		{"GET /v1/agents/{id}/grants", apitoken.Read, one, a.agent(a.grants)},
		{"POST /v1/agents/{id}/grants", apitoken.Admin, all, a.grant},
		{"DELETE /v1/agents/{id}/grants", apitoken.Admin, one, a.agent(a.revoke)},
		{"GET /v1/agents/{id}/why", apitoken.Read, one, a.agent(a.why)},
	}
}

// rows are those of the clocks, which run with any agent.
func (c clocks) rows() []route {
	return []route{
		{"GET /v1/cron", apitoken.Read, all, c.handle(c.tasks)},
		{"POST /v1/cron", apitoken.Admin, all, c.handle(c.addTask)},
		{"GET /v1/cron/{slug}", apitoken.Read, all, c.handle(c.task)},
		{"PUT /v1/cron/{slug}", apitoken.Admin, all, c.handle(c.changeTask)},
		{"DELETE /v1/cron/{slug}", apitoken.Admin, all, c.handle(c.removeTask)},
		{"POST /v1/cron/{slug}/run", apitoken.Admin, all, c.handle(c.runTask)},
		{"GET /v1/cron/{slug}/runs", apitoken.Read, all, c.handle(c.taskRuns)},
		{"GET /v1/heartbeats", apitoken.Read, all, c.handle(c.heartbeat)},
		{"POST /v1/heartbeats", apitoken.Admin, all, c.handle(c.addPrompt)},
		{"DELETE /v1/heartbeats/{slug}", apitoken.Admin, all, c.handle(c.removePrompt)},
		{"POST /v1/heartbeats/run", apitoken.Admin, all, c.handle(c.runHeartbeat)},
		{"GET /v1/heartbeats/runs", apitoken.Read, all, c.handle(c.heartbeatRuns)},
	}
}

// routes makes the table reachable. Nothing else registers a route.
func (a *api) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, row := range a.table() {
		mux.HandleFunc(row.pattern, a.permit(row))
	}
	mux.HandleFunc("/", a.noRoute(mux))
	return mux
}

// permit keeps callers from a route that their rights do not include.
func (a *api) permit(row route) http.HandlerFunc {
	if row.scope == "" || row.reach == 0 {
		panic("route " + row.pattern + " says not who may use it")
	}
	return func(w http.ResponseWriter, r *http.Request) {
		rights := callerOf(r.Context()).Rights
		switch {
		case !rights.Allow(row.scope):
			a.fail(w, r, lacksScope(row.scope, row.pattern, rights))
		case row.reach == all && rights.Restricted():
			e := refuse(fault.Scope, "create a token without --agent: daycare auth token create NAME --scope "+string(row.scope),
				"%s needs a token for all agents with the scope %s, and this one is for some agents only", row.pattern, row.scope)
			e.Scope = row.scope
			a.fail(w, r, e)
		default:
			row.serve(w, r)
		}
	}
}

// lacksScope is the error of a caller whose rights do not include a scope.
func lacksScope(need apitoken.Scope, what string, rights apitoken.Rights) *APIError {
	has := apitoken.Names(rights.Scopes)
	if has == "" {
		has = "none"
	}
	e := refuse(fault.Scope, "create a token with it: daycare auth token create NAME --scope "+string(need),
		"%s needs the scope %s, and the token has: %s", what, need, has)
	e.Scope = need
	return e
}
