// Package mcp is the commands about MCP servers: which there are, their tools, their logs.
package mcp
