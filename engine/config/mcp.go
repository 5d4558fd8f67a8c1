package config

import (
	"fmt"
	"strings"
	"time"

	"daycare/engine/finding"
)

// MCP configures servers of the Model Context Protocol, whose tools agents can call, and what
// daycare serves itself.
type MCP struct {
	Servers []MCPServer `json:"servers"`
	// ToolTokens is how many tokens the tools of servers may add to each prompt of a chat; if
	// they are larger, agents search for tools instead, as agents in the background always do.
	ToolTokens int `json:"toolTokens" min:"0"`
	// Serve is what daycare offers to MCP clients.
	Serve MCPServe `json:"serve"`
}

// An MCPServe says what clients of the Model Context Protocol can access, by `daycare mcp serve`
// and at /mcp of the API.
type MCPServe struct {
	Agents []string `json:"agents"` // handle, name or id; empty: nothing is served
	Memory bool     `json:"memory"` // the notes in .daycare/memory can be read
}

// An MCPServer is a program that daycare starts (command), or a service at an address (url).
type MCPServer struct {
	ID         string            `json:"id" check:"id,required"`
	Command    string            `json:"command"`
	Args       []string          `json:"args"`
	Env        map[string]string `json:"env"`
	WorkingDir string            `json:"workingDir"` // relative to the workspace; "": a folder of its own
	Sandbox    MCPSandbox        `json:"sandbox"`
	URL        string            `json:"url" check:"url"`
	Headers    map[string]string `json:"headers"`
	OAuth      MCPOAuth          `json:"oauth"`
	Timeout    time.Duration     `json:"timeout" min:"1s" max:"1h"` // of one call
	Project    bool              `json:"-"`                         // it comes from .mcp.json of the workspace
}

// MCPOAuth is how daycare identifies itself when users log in at a service. Empty: it registers
// itself at each login.
type MCPOAuth struct {
	ClientID     string   `json:"clientId"`     // as registered, or the https address of a client metadata document
	ClientSecret string   `json:"clientSecret"` // ${NAME}
	Scopes       []string `json:"scopes"`       // in addition to those that the service names
}

// defaultMCPTimeout is how long a call may take.
const defaultMCPTimeout = 2 * time.Minute

// An MCPSandbox is what the program of a server can access in addition to its own folder.
type MCPSandbox struct {
	Off     bool     `json:"off"`     // it can do everything that the user can do
	Read    []string `json:"read"`    // files and folders, relative to the workspace
	Write   []string `json:"write"`   // likewise
	Network []string `json:"network"` // hosts, as allowedDomains of exec
}

// checkMCP finds what is wrong between the settings of MCP servers.
func (r *reader) checkMCP(c *Config) {
	for i, agent := range c.MCP.Serve.Agents {
		if strings.TrimSpace(agent) == "" {
			at := entry("mcp.serve.agents", i)
			r.Tell(finding.Error, "bad-value", at, at+" is empty", "write the handle, the name or the id of an agent, or remove the line")
		}
	}
	uniqueIDs(r, "mcp.servers", c.MCP.Servers, func(s MCPServer) string { return s.ID })
	for i, s := range c.MCP.Servers {
		at := func(key string) string { return entry("mcp.servers", i, key) }
		bad := func(key, reason, remedy string) {
			r.Tell(finding.Error, "bad-value", at(key), at(key)+": "+reason, remedy)
		}
		switch {
		case s.Command == "" && s.URL == "":
			r.Tell(finding.Error, "missing", entry("mcp.servers", i), entry("mcp.servers", i)+" has no command and no url",
				"name the program to start (command) or the address of the service (url)")
		case s.Command != "" && s.URL != "":
			bad("url", "a server has a command or a url, not both", "remove one of them")
		case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.WorkingDir != ""):
			bad("url", "args, env and workingDir need a command", "remove them, or the url")
		case s.Command != "" && len(s.Headers) > 0:
			bad("headers", "headers need a url", "give the program its secrets by env")
		case s.Command != "" && (s.OAuth.ClientID != "" || len(s.OAuth.Scopes) > 0):
			bad("oauth", "oauth needs a url", "give the program its secrets by env")
		case s.OAuth.ClientSecret != "" && s.OAuth.ClientID == "":
			bad("oauth", "a clientSecret needs a clientId", "add the clientId, or remove the secret")
		}
		for name := range s.Env {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				bad("env", fmt.Sprintf("%q is not the name of a variable", name), "")
			}
		}
	}
}

// Expand replaces each ${NAME} by the environment variable of that name, or else by the secret with
// that id, and ${NAME:-default} by the default if there is neither. missing are the names without a
// value.
func (c *Config) Expand(text string) (_ string, missing []string) {
	expanded := reference.ReplaceAllStringFunc(text, func(ref string) string {
		name, fallback, has := strings.Cut(ref[2:len(ref)-1], ":-")
		secret := c.SecretNamed(name)
		if !secret.IsZero() {
			return secret.Reveal()
		}
		if !has {
			missing = append(missing, name)
		}
		return fallback
	})
	return expanded, missing
}

// references are the secrets that the settings of MCP servers name.
func (c *Config) references(s MCPServer) (all []Secret) {
	for _, values := range []map[string]string{s.Env, s.Headers, {"": s.OAuth.ClientSecret}} {
		for _, text := range values {
			for _, name := range References(text) {
				all = append(all, c.SecretNamed(name))
			}
		}
	}

	return all
}
