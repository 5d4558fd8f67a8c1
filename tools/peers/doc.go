// Package peers is what agents do to each other: write, start, look at, stop.
//
// All of its tools are idempotent, so that a call that a crash cut is made again:
// what a call posts has the dedupe key call:<agent>/<call>, and the id of an agent
// that it starts follows from the call. Whom an agent may see and reach, and how
// many it may start, is decided by what implements Agents (engine.Family).
//
// To add a tool: a method that returns it, its name in New, and toolstest.Run in
// the test. Which kinds of agents have it says cmd/daycare/daemon/toolset.go.
package peers
