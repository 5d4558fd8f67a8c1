// Package mcp lets clients of the Model Context Protocol talk to agents: Claude Code, Claude
// Desktop, editors, programs. They call the tools send_message, list_agents, read_history and
// list_approvals, and read files of agents as resources.
//
// It is a client of the control API (engine/control), with the rights of whoever connected, so it
// can do nothing that the API would refuse. A client reaches only the agents that the settings
// name (mcp.serve.agents): another agent does not exist for it.
//
//	door.go       the server, who calls, which agents there are
//	http.go       /mcp of the API: sessions, limits, shutting down
//	last.go       requests that are under way when a client has said its last word
//	send.go       send_message: durable, once, with progress
//	read.go       list_agents, read_history, list_approvals
//	resources.go  files
//
// A client of MCP is a model, and what it writes may be what a web page told it. So its messages
// are marked as a stranger's, whoever's token it has, and it cannot answer approvals.
package mcp
