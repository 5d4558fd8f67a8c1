// Package mcp lets agents call the tools of servers of the Model Context Protocol.
//
// A server is a program (spoken to over its standard input and output) or a service
// (streamable HTTP). It is started at the first call and ends after ten idle minutes.
//
// What a server says of its tools goes into the prompts of agents, and is text of a stranger.
// So the tools of a server are pinned: the first list that it gave is in .daycare/mcp/ID.json
// with hashes, and agents have the tools of that file. One that the server adds is withheld until
// its owner trusts the new list, and so are calls of one that it describes differently. That a tool says it
// only reads gives no right: every call needs @mcp:SERVER/TOOL.
//
// The files of the package: pool.go has the servers, server.go the life of one, catalogue.go
// its pinned tools, tool.go a call, result.go its result, question.go what servers ask users.
package mcp
