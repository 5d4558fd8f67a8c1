package mcp

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/fault"
)

// trustProject shows the .mcp.json of the workspace and, after its owner agreed, has daycare
// use exactly that content.
func trustProject(cmd *cobra.Command, c *term.App, yes bool) error {
	at, err := c.Place()
	if err != nil {
		return err
	}
	home := at.Data
	p := config.ReadProject(home)
	for _, f := range p.Found {
		if !strings.HasSuffix(f.ID, "-untrusted") && !strings.HasSuffix(f.ID, "-changed") {
			c.Warn("%s", f)
		}
	}
	switch {
	case p.Content == nil:
		return &term.Problem{Code: fault.ExitNotFound, Err: fmt.Errorf("there is no %s that can be used in %s", config.ProjectName, at.Dir),
			Do: "add a server to your settings instead: daycare mcp add"}
	case p.IsTrusted():
		c.Note("nothing changed: you trusted %s as it is", config.ProjectName)
		return nil
	case len(p.Servers) == 0:
		return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("%s has no server that can be used", config.ProjectName),
			Do: "see what is wrong with it: daycare doctor"}
	}
	for _, s := range p.Servers {
		reviewServer(c, s)
	}
	if !yes && !c.Yes("Start these servers when agents need them?") {
		return &term.Problem{Code: fault.ExitFailure, Err: errors.New("nothing was changed"), Do: "skip the question with --yes"}
	}

	vol := disk.NewVolume(home)
	if err := vol.WriteFile("mcp", filepath.Join(home, config.TrustedName), p.Content); err != nil {
		return fmt.Errorf("trust %s: %w", config.ProjectName, err)
	}
	when := "they are used after the next start"
	if client, err := c.Dial(cmd.Context(), at); err == nil {
		if _, err := client.Reload(cmd.Context()); err != nil {
			return fmt.Errorf("have the daemon read %s: %w", config.ProjectName, err)
		}
		when = "the daemon uses them now"
	}
	c.Note("trusted %d servers; %s. If the file changes, none of them is used until you trust it again", len(p.Servers), when)
	return nil
}

// reviewServer prints all that the file says of a server.
func reviewServer(c *term.App, s config.MCPServer) {
	line := func(key, text string) {
		if text != "" {
			c.Print("    %-9s %s\n", key, text)
		}
	}
	c.Print("%s\n", s.ID)
	texts := []string{s.Command, s.URL}
	line("command", s.Command)
	for _, arg := range s.Args {
		line("argument", arg)
		texts = append(texts, arg)
	}
	line("url", s.URL)
	for _, values := range []struct {
		key string
		of  map[string]string
	}{{"env", s.Env}, {"header", s.Headers}} {
		for _, name := range slices.Sorted(maps.Keys(values.of)) {
			line(values.key, name+"="+values.of[name])
			texts = append(texts, values.of[name])
		}
	}
	if names := config.References(strings.Join(texts, "\n")); len(names) > 0 {
		slices.Sort(names)
		line("gets", "the variables or secrets "+strings.Join(slices.Compact(names), ", "))
	}
}

// warnOfProject says on standard error why servers of .mcp.json are not in the list.
func warnOfProject(c *term.App) {
	at, err := c.Place()
	if err != nil {
		return
	}
	for _, f := range config.ReadProject(at.Data).Found {
		c.Warn("%s", f)
	}
}

// ofProject reports whether a server is of .mcp.json.
func ofProject(c *term.App, id string) bool {
	conf, err := c.Config()
	return err == nil && slices.ContainsFunc(conf.MCP.Servers, func(s config.MCPServer) bool { return s.ID == id && s.Project })
}
