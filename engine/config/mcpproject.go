package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/lazyregexp"
	"daycare/engine/workspace"
)

const (
	// ProjectName is the file of a workspace that lists MCP servers for every program that users
	// use in it. Its format is that of Claude Code: code.claude.com/docs/en/mcp.
	ProjectName = ".mcp.json"
	// TrustedName is the file of .daycare that holds the content of it that an owner trusted.
	TrustedName = "trusted.mcp.json"
	// maxProject bounds both, in bytes.
	maxProject = 256 << 10
)

// A Project is the .mcp.json of a workspace. An agent may have written it.
type Project struct {
	Path             string
	Content, Trusted []byte // nil: the file does not exist
	Servers          []MCPServer
	Found            []finding.Finding // its problems, and that it needs review by the owner
}

var projectKind = form.Kind{ID: "mcp-project", Max: maxProject, Unknown: finding.Info,
	Remedy: "Correct the file, then: daycare mcp trust " + ProjectName}

// ReadProject reads the file of the workspace of a .daycare folder.
func ReadProject(home string) Project {
	dir := workspace.OfData(home).Dir
	p := Project{Path: filepath.Join(dir, ProjectName)}
	tell := func(how finding.Severity, id, reason, remedy string) {
		p.Found = append(p.Found, finding.Finding{ID: "mcp-project-" + id, Severity: how, File: p.Path, Reason: reason, Remedy: remedy})
	}
	var err error
	if p.Content, err = beneath.ReadFile(dir, ProjectName, maxProject); errors.Is(err, fs.ErrNotExist) {
		return p
	}
	if err != nil {
		p.Content = nil
		tell(finding.Warning, "unreadable", "it cannot be read: "+beneath.Reason(err).Error(),
			"It must be a plain file of at most 256 KiB.")
		return p
	}
	p.Trusted, _, err = beneath.Own(filepath.Join(home, TrustedName), maxProject)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		tell(finding.Error, "trust-unreadable", TrustedName+" cannot be read: "+beneath.Reason(err).Error(),
			"Check who owns the file and its mode.")
	}

	servers, found := parseProject(p.Path, p.Content)
	p.Servers, p.Found = servers, append(p.Found, found...)
	trust := "Review it: daycare mcp trust " + ProjectName
	switch {
	case p.IsTrusted() || len(servers) == 0:
	case p.Trusted == nil:
		tell(finding.Warning, "untrusted", fmt.Sprintf("its %d MCP servers are not used until you trust the file", len(servers)), trust)
	default:
		tell(finding.Warning, "changed", "it changed since you trusted it: none of its MCP servers is used", trust)
	}

	return p
}

// IsTrusted reports whether the content is, byte for byte, what the owner trusted.
func (p Project) IsTrusted() bool {
	return p.Content != nil && p.Trusted != nil && bytes.Equal(p.Content, p.Trusted)
}

// A projectServer is one as the file has it.
type projectServer struct {
	Type    string            `json:"type" allow:"|stdio|http|streamable-http|sse"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// parseProject reads the servers of the file, by name. One that is not right is left out.
func parseProject(path string, content []byte) (list []MCPServer, found []finding.Finding) {
	f := projectKind.JSON(path, content)
	var file struct {
		Servers map[string]projectServer `json:"mcpServers"`
	}
	f.Read(&file, form.Any)
	for _, id := range slices.Sorted(maps.Keys(file.Servers)) {
		s := file.Servers[id]
		at := form.Join("mcpServers", id)
		bad := func(reason string) {
			f.Tell(finding.Warning, "server", at, fmt.Sprintf("the MCP server %.60q is not used: %s", id, reason), "")
		}
		switch {
		case !form.Is("id", id):
			bad("its name is not " + form.Of("id"))
		case s.Type == "sse":
			bad("its type is sse, which is not supported; most services have streamable HTTP at another address")
		case (s.Command == "") == (s.URL == ""):
			bad("it needs a command or a url, but not both")
		case s.URL != "" && s.Type == "stdio" || s.Command != "" && strings.HasSuffix(s.Type, "http"):
			bad("its type does not fit")
		default:
			list = append(list, MCPServer{ID: id, Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers,
				Timeout: defaultMCPTimeout, Project: true})
		}
	}

	return list, f.Found
}

// CheckProject returns what is wrong with the content of a .mcp.json; path is for the findings.
func CheckProject(path string, content []byte) ([]finding.Finding, error) {
	_, found := parseProject(path, content)
	return found, nil
}

// addProject adds the servers of a trusted .mcp.json to those of the settings, which win over
// one of the same id. They start in the workspace, as that format has it.
func (c *Config) addProject(home string) {
	p := ReadProject(home)
	if !p.IsTrusted() {
		return
	}
	for _, s := range p.Servers {
		if slices.ContainsFunc(c.MCP.Servers, func(other MCPServer) bool { return other.ID == s.ID }) {
			continue
		}
		if s.Command != "" {
			s.WorkingDir = "."
		}
		s.Command, s.URL = c.fill(s.Command), c.fill(s.URL)
		s.Args = slices.Clone(s.Args)
		for i := range s.Args {
			s.Args[i] = c.fill(s.Args[i])
		}
		c.MCP.Servers = append(c.MCP.Servers, s)
	}
}

// fill is Expand that leaves what there is nothing for.
func (c *Config) fill(text string) string {
	if full, missing := c.Expand(text); len(missing) == 0 {
		return full
	}
	return text
}

// References returns the names in ${NAME} and ${NAME:-default} in a text, in order.
func References(text string) (names []string) {
	for _, ref := range reference.FindAllStringSubmatch(text, -1) {
		names = append(names, ref[1])
	}
	return names
}

// reference is ${NAME} or ${NAME:-default}: an environment variable or a secret.
var reference = lazyregexp.New(`\$\{([A-Za-z0-9._-]+?)(?::-[^}]*)?\}`)
