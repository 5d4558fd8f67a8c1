// Package mcptest is MCP servers that tests call: useful ones and bad ones, made with the official
// SDK. Serve makes a process one.
package mcptest
