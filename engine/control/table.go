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
func parts(a *api, b Backend) []part {
	words := talks{b.Agents, b.Folders}
	mail := posts{a, words, b.Files, b.Events, make(chan struct{}, largeSlots)}
	other := translated{a, mail, b.Permissions, b.Translator}
	return []part{
		{true, systemRows(a, system{a, b.Daemon})},
		{b.SubAgents != nil, []row{on(a, subAgents, listSubAgents(b.SubAgents))}},
		{b.Hooks != nil, []row{on(a, hooks, hookRoutes{b.Hooks}.list), on(a, testHooks, hookRoutes{b.Hooks}.test)}},
		{b.Backups != nil, []row{stream(a, backup, sendBackup(a, b.Backups))}},
		{b.Catalog != nil, offerRows(a, catalogRoutes{b.Catalog, other})},
		{b.Costs != nil, []row{on(a, cost, sumCost(b.Costs)), on(a, budgets, listBudgets(b.Costs))}},
		{b.Inspector != nil, inspectRows(a, inspections{a, b.Inspector})},
		{b.Browsers != nil, browserRows(a, browserRoutes{a, b.Browsers})},
		{true, agentRows(a, agentRoutes{a, b.Agents, b.HTML}, words)},
		{true, messageRows(a, mail)},
		{b.Translator != nil, translatedRows(a, other)},
		{true, []row{stream(a, events, watchers{a, b.Events}.watch)}},
		{true, approvalRows(a, approvals{b.Permissions})},
		{b.Folders != nil, folderRows(a, folderRoutes{a, b.Folders}, words)},
		{b.Grants != nil, grantRows(a, grantRoutes{b.Grants})},
		{b.Pairings != nil, pairRows(a, pairRoutes{b.Pairings})},
		{b.Schedules != nil, scheduleRows(a, clocks{b.Schedules})},
	}
}

// table is the list of all routes that the backend has something for.
func table(a *api, b Backend) (rows []row) {
	for _, p := range parts(a, b) {
		if p.here {
			rows = append(rows, p.rows...)
		}
	}

	return rows
}

// An Operation is a row of the table, for generating descriptions of the API.
type Operation struct {
	Route
	In, Out reflect.Type // In: see Params
}

// Operations lists all operations, in the order of docs/api.md.
func Operations() (list []Operation) {
	for _, p := range parts(&api{}, Backend{}) {
		for _, row := range p.rows {
			list = append(list, Operation{row.Route, row.in, row.out})
		}
	}

	return list
}

// serve makes the table reachable. Nothing else registers a route.
func (a *api) serve(rows []row) *http.ServeMux {
	mux := http.NewServeMux()
	for _, row := range rows {
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
		case row.Traits&anyone == 0 && !rights.Allow(row.Scope):
			a.fail(w, r, lacksScope(row.Scope, row.Pattern(), rights))
		case row.Reach == all && rights.Restricted():
			e := refuse(fault.Scope, "create a token without --agent: daycare auth token create NAME --scope "+string(row.Scope),
				"%s needs a token for all agents with the scope %s, but this one is limited to some agents", row.Pattern(), row.Scope)
			e.Scope = row.Scope
			a.fail(w, r, e)
		case row.Method == http.MethodGet && row.Streams():
			end, err := a.open.begin(callerOf(r.Context()))
			if err != nil {
				a.fail(w, r, err)
				return
			}
			defer end()
			row.serve(w, r)
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
		"%s needs the scope %s, but the token has: %s", what, need, has)
	e.Scope = need
	return e
}
