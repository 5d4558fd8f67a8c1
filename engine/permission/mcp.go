package permission

import (
	"fmt"
	"strings"

	"daycare/engine/lazyregexp"
)

// Mcp is the permission to call one tool of an MCP server, or with Tool "" all its tools. What the
// server claims about a tool, such as that it only reads, grants nothing.
type Mcp struct{ Server, Tool string }

func (Mcp) access() {}

// Tag is @mcp:server/tool, or @mcp:server for all tools.
func (a Mcp) Tag() string { return mcpKind + ":" + a.name() }

// name is the right as a Set keeps it: server/tool, or server.
func (a Mcp) name() string {
	if a.Tool == "" {
		return a.Server
	}
	return a.Server + "/" + a.Tool
}

const mcpKind = "@mcp"

// SourceOf is the source that is recorded for a turn when a tool of an MCP server answered.
func (a Mcp) SourceOf() string { return "the MCP server " + a.Server }

// mcpServer is the id of a server; what follows the slash is the server's own name of a tool.
var mcpServer = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// maxMcpTool bounds the name of a tool, in bytes.
const maxMcpTool = 128

func parseMcp(value string) (Access, error) {
	server, tool, named := strings.Cut(value, "/")
	if !mcpServer.MatchString(server) || named && tool == "" || len(tool) > maxMcpTool {
		return nil, fmt.Errorf("%w: %q is not a tool of an MCP server; allowed: @mcp:server/tool, or @mcp:server for all its tools",
			ErrTag, value)
	}

	return Mcp{Server: server, Tool: tool}, nil
}

// coversMcp reports whether an entry of Set.MCP covers a right.
func coversMcp(entry string, a Mcp) bool { return entry == a.Server || entry == a.name() }
