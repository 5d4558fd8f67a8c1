// Package daemon builds and runs one workspace: its files, the engine, the agents with
// their tools and permissions, models, connectors, clocks and the API.
//
// Open takes the lock of a workspace and builds a Daemon, Run runs it until it is
// stopped. Look reads the same files while someone else runs them, or nobody does. A
// Daemon is data in groups (see daemon.go); what is done with them is in types with one
// purpose each, that embed it:
//
//	factory    makes agents: settings, prompt, first state, family
//	workbench  makes their tools and says what these reach
//	authority  who owns, who may decide
//	gate       commands that decide whether a scheduled task begins
//	budgets    limits of what agents may spend
//	reloader   changed settings, models and connectors
//
// What the API is served from is beside them: backend, folders, grants, choices, costs,
// schedules; and what connectors are given: chats. No command line is known here.
package daemon
