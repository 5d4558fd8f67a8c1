package control

import (
	"net/http"
	"reflect"

	"daycare/engine/apitoken"
	"daycare/engine/fault"
)

// A part is the rows that belong to one part of the backend.
type part struct {
	here bool // the backend has it
	rows []row
}

// parts are all rows, whatever the backend has.
func (a *api) parts() []part {
	c := clocks{a, a.Schedules}
	return []part{
		{true, a.daemonRows()},
		{a.SubAgents != nil, []row{on(a, subAgents, a.subAgents)}},
		{a.Offers != nil, []row{on(a, skills, a.skills), on(a, models, a.models)}},
		{a.Costs != nil, []row{on(a, cost, a.cost)}},
		{true, a.agentRows()},
		{true, a.messageRows()},
		{a.Folders != nil, a.folderRows()},
		{a.Grants != nil, []row{on(a, grants, a.grants), on(a, grant, a.grant), on(a, revoke, a.revoke), on(a, why, a.why)}},
		{a.Schedules != nil, c.rows()},
	}
}

// table is the list of all routes that the backend has something for.
func (a *api) table() (rows []row) {
	for _, p := range a.parts() {
		if p.here {
			rows = append(rows, p.rows...)
		}
	}
	return rows
}

// An Operation is a row of the table for those who describe the API.
type Operation struct {
	Route
	In, Out reflect.Type // In: see Params
}

// Operations lists all operations, in the order of docs/api.md.
func Operations() (list []Operation) {
	for _, p := range (&api{}).parts() {
		for _, row := range p.rows {
			list = append(list, Operation{row.Route, row.in, row.out})
		}
	}
	return list
}

func (a *api) daemonRows() []row {
	return []row{
		stream(a, health, a.healthz),
		stream(a, metric, a.metrics),
		on(a, status, a.status),
		on(a, settings, a.config),
		on(a, reload, a.reload),
		on(a, shutDown, a.shutdown),
		on(a, tools, a.tools),
	}
}

func (a *api) agentRows() []row {
	return []row{
		on(a, listAgents, a.listAgents),
		on(a, createAgent, a.createAgent),
		on(a, showAgent, a.showAgent),
		on(a, removeAgent, a.removeAgent),
		on(a, history, a.history),
		on(a, draft, a.draft),
		on(a, waiting, a.inbox),
		on(a, dropItem, a.drop),
		on(a, moveToFront, a.front),
		on(a, stop, a.stop),
		on(a, reset, a.reset),
		on(a, compact, a.compact),
		on(a, mark, a.mark),
		on(a, kill, a.kill),
	}
}

func (a *api) messageRows() []row {
	return []row{
		stream(a, postToAgent, a.postToAgent),
		stream(a, postByDescriptor, a.postByDescriptor),
		stream(a, events, a.events),
		on(a, asks, a.asks),
		on(a, decide, a.decide),
	}
}

func (a *api) folderRows() []row {
	return []row{
		on(a, rewind, a.rewind),
		on(a, fork, a.fork),
		on(a, switchModel, a.switchModel),
		stream(a, readFile, a.readFile),
		stream(a, writeFile, a.writeFile),
		on(a, trash, a.trash),
		on(a, restore, a.restore),
		stream(a, importAgent, a.importAgent),
	}
}

func (c clocks) rows() []row {
	return []row{
		on(c.api, listTasks, c.tasks),
		on(c.api, addTask, c.addTask),
		on(c.api, showTask, c.task),
		on(c.api, setTask, c.changeTask),
		on(c.api, removeTask, c.removeTask),
		on(c.api, runTask, c.runTask),
		on(c.api, taskRuns, c.taskRuns),
		on(c.api, heartbeat, c.heartbeat),
		on(c.api, addPrompt, c.addPrompt),
		on(c.api, removePrompt, c.removePrompt),
		on(c.api, runHeartbeat, c.runHeartbeat),
		on(c.api, heartbeatRuns, c.heartbeatRuns),
	}
}

// routes makes the table reachable. Nothing else registers a route.
func (a *api) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, row := range a.table() {
		mux.HandleFunc(row.Pattern(), a.permit(row))
	}
	mux.HandleFunc("/", a.noRoute(mux))
	return mux
}

// permit keeps callers from a route that their rights do not include.
func (a *api) permit(row row) http.HandlerFunc {
	if row.Scope == "" || row.Reach == 0 {
		panic("route " + row.Pattern() + " says not who may use it")
	}
	return func(w http.ResponseWriter, r *http.Request) {
		rights := callerOf(r.Context()).Rights
		switch {
		case !rights.Allow(row.Scope):
			a.fail(w, r, lacksScope(row.Scope, row.Pattern(), rights))
		case row.Reach == all && rights.Restricted():
			e := refuse(fault.Scope, "create a token without --agent: daycare auth token create NAME --scope "+string(row.Scope),
				"%s needs a token for all agents with the scope %s, and this one is for some agents only", row.Pattern(), row.Scope)
			e.Scope = row.Scope
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
