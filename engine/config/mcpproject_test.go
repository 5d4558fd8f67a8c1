package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"daycare/engine/finding"
)

const projectText = `{"mcpServers": {
  "files": {"command": "${HOME_OF_IT:-npx}", "args": ["-y", "server", "${API_KEY}"], "env": {"Mode": "${MODE:-fast}"}},
  "hub": {"type": "http", "url": "https://mcp.example.com/${PATH_OF_IT:-mcp}", "headers": {"Authorization": "Bearer ${API_KEY}"}}
}}`

// project is a workspace with a .mcp.json, of which trusted was trusted; "": nothing was.
func project(t *testing.T, text, trusted string) (home string) {
	t.Helper()
	files := map[string]string{Name: "mcp: {servers: [{id: mine, command: x}]}\n"}
	if trusted != "" {
		files[TrustedName] = trusted
	}
	home = filepath.Join(t.TempDir(), ".daycare")
	if err := os.Rename(dir(t, files), home); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(home), ProjectName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

func ids(c *Config) (list []string) {
	for _, s := range c.MCP.Servers {
		list = append(list, s.ID)
	}
	return list
}

func TestServersOfAProjectAreUsedOnceItIsTrusted(t *testing.T) {
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"API_KEY": "key"}[name]
		return v, ok
	}
	for _, tt := range []struct{ trusted, ids, told string }{
		{"", "mine", "until you trust the file"},
		{projectText + " ", "mine", "changed since you trusted it"},
		{projectText, "mine files hub", ""},
	} {
		home := project(t, projectText, tt.trusted)
		c, _, err := Load(home, env)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(ids(c), " "); got != tt.ids {
			t.Errorf("trusted %.10q: servers %s, want %s", tt.trusted, got, tt.ids)
		}
		told := ""
		for _, f := range ReadProject(home).Found {
			told += f.Reason
		}
		if !strings.Contains(told, tt.told) || tt.told == "" && told != "" {
			t.Errorf("trusted %.10q: told %q, want %q", tt.trusted, told, tt.told)
		}
		if tt.told != "" {
			continue
		}
		files, hub := c.MCP.Servers[1], c.MCP.Servers[2]
		if files.Command != "npx" || strings.Join(files.Args, " ") != "-y server key" || files.WorkingDir != "." || !files.Project {
			t.Errorf("%+v", files)
		}
		if hub.URL != "https://mcp.example.com/mcp" || hub.Headers["Authorization"] != "Bearer ${API_KEY}" || hub.WorkingDir != "" {
			t.Errorf("%+v", hub)
		}
	}
}

func TestTheSettingsWinOverAProject(t *testing.T) {
	text := `{"mcpServers": {"mine": {"command": "other"}}}`
	c, _, err := Load(project(t, text, text), noEnv)
	if err != nil || len(c.MCP.Servers) != 1 || c.MCP.Servers[0].Command != "x" {
		t.Errorf("%+v, %v", c.MCP.Servers, err)
	}
}

// What someone wrote there never breaks the settings.
func TestWhatIsWrongWithAProject(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                  "mcp-project",
		`[]`:                 "mcp-project",
		`{"mcpServers": []}`: "mcp-project",
		`{"mcpServers": {"a/b": {"command": "x"}}}`:                    "its name is not",
		`{"mcpServers": {"a": {}}}`:                                    "needs a command or a url",
		`{"mcpServers": {"a": {"command": "x", "url": "http://h/"}}}`:  "not both",
		`{"mcpServers": {"a": {"type": "sse", "url": "http://h/"}}}`:   "sse, which is not supported",
		`{"mcpServers": {"a": {"type": "stdio", "url": "http://h/"}}}`: "its type does not fit",
		`{"mcpServers": {"a": {"command": 7}}}`:                        "mcp-project",
	} {
		home := project(t, text, text)
		if c, _, err := Load(home, noEnv); err != nil || len(c.MCP.Servers) != 1 {
			t.Errorf("%s: %v", text, err)
		}
		told := ""
		for _, f := range ReadProject(home).Found {
			told += f.ID + " " + f.Reason + "\n"
		}
		if !strings.Contains(told, want) {
			t.Errorf("%s: told %q, want %q", text, told, want)
		}
	}
}

// An agent can put anything in the place of the file.
func TestAHostileProjectIsNotRead(t *testing.T) {
	home := project(t, projectText, projectText)
	path := filepath.Join(filepath.Dir(home), ProjectName)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for name, put := range map[string]func() error{
		"a link":     func() error { return os.Symlink(elsewhere, path) },
		"a folder":   func() error { return os.Mkdir(path, 0o700) },
		"a pipe":     func() error { return syscall.Mkfifo(path, 0o600) },
		"a big file": func() error { return os.WriteFile(path, make([]byte, maxProject+1), 0o600) },
	} {
		if err := os.WriteFile(elsewhere, []byte(projectText), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := put(); err != nil {
			t.Fatal(name, err)
		}
		p := ReadProject(home)
		if p.IsTrusted() || len(p.Servers) > 0 || len(p.Found) != 1 || p.Found[0].Severity != finding.Warning {
			t.Errorf("%s: %+v", name, p.Found)
		}
	}
}

// A workspace without the file has nothing to trust, and nothing is wrong with it.
// What the owner trusted and cannot be read is said, and nothing is trusted; nor is an empty file
// that was never trusted.
func TestTrustThatCannotBeRead(t *testing.T) {
	home := project(t, "{}", "")
	if err := os.Mkdir(filepath.Join(home, TrustedName), 0o700); err != nil {
		t.Fatal(err)
	}
	p := ReadProject(home)
	if p.IsTrusted() || len(p.Found) != 1 || p.Found[0].ID != "mcp-project-trust-unreadable" || p.Found[0].Severity != finding.Error {
		t.Errorf("found %v", p.Found)
	}
	if p := ReadProject(project(t, "", "")); p.IsTrusted() || p.Content == nil {
		t.Errorf("an empty one: %+v", p)
	}
}

func TestAWorkspaceWithoutAProject(t *testing.T) {
	home := project(t, projectText, projectText)
	if err := os.Remove(filepath.Join(filepath.Dir(home), ProjectName)); err != nil {
		t.Fatal(err)
	}
	if p := ReadProject(home); len(p.Found) > 0 || p.Content != nil || len(p.Servers) > 0 || p.Trusted != nil {
		t.Errorf("%+v", p)
	}
}
