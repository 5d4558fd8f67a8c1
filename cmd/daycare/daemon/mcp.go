package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"daycare/cmd/daycare/version"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/event"
	"daycare/engine/message"
	ws "daycare/engine/workspace"
	"daycare/tools/a2a"
	"daycare/tools/mcp"
	toolshell "daycare/tools/shell"
)

// MCPDir is the folder of .daycare that keeps what MCP servers said.
const MCPDir = "mcp"

// newMCP makes the pool of MCP servers, with those of the settings. Nothing is started.
func (r workbench) newMCP(ctx context.Context) *mcp.Pool {
	dir := filepath.Join(r.at.Data, MCPDir)
	under := func(write func(step, path string, data []byte) error, step string) func(string, []byte) error {
		return func(path string, data []byte) error {
			if err := r.vol.MkdirAll(dir); err != nil {
				return err
			}
			return write(step, path, data)
		}
	}
	o := mcp.Options{
		Dir: dir, Version: version.Number, Start: r.startMCP, Headers: r.mcpHeaders, Keep: r.keep, Read: r.readShared,
		Logins:  logins{r},
		Budget:  func() int { return r.settings.Current().MCP.ToolTokens },
		Looking: r.lock == nil,
	}
	if !o.Looking {
		o.WriteFile, o.WriteDraft = under(r.vol.WriteFile, "mcp"), under(r.vol.WriteDraft, "draft")
	}
	pool := mcp.NewPool(context.WithoutCancel(ctx), o)
	pool.Configure(r.mcpServers())
	return pool
}

// mcpServers are the servers of the settings. The stamp of one holds all that its next start
// follows from, so that a change of its settings, or of a secret that they name, ends it.
func (r workbench) mcpServers() (list []mcp.Server) {
	project := config.ReadProject(r.at.Data)
	r.readShared(project.Path, project.Found)
	c := r.settings.Current()
	for _, s := range c.MCP.Servers {
		stamp, _ := json.Marshal(s) // of texts and numbers, which cannot fail
		var secrets []string
		for _, values := range []map[string]string{s.Env, s.Headers} {
			for name, text := range values {
				value, _ := c.Expand(text)
				secrets = append(secrets, name+"="+value)
			}
		}
		if login, err := (logins{r}).Login(mcp.Server{ID: s.ID}); err == nil && !login.At.IsZero() && s.URL != "" {
			secrets = append(secrets, "login="+login.At.String())
		}
		slices.Sort(secrets)
		list = append(list, mcp.Server{ID: s.ID, Timeout: s.Timeout, URL: s.URL,
			Command: strings.TrimSpace(s.Command + " " + strings.Join(s.Args, " ")),
			Stamp:   string(stamp) + strings.Join(secrets, "\x00")})
	}

	return list
}

// mcpServer is what the settings say of a server now.
func (r workbench) mcpServer(id string) (*config.Config, config.MCPServer, error) {
	c := r.settings.Current()
	i := slices.IndexFunc(c.MCP.Servers, func(s config.MCPServer) bool { return s.ID == id })
	if i < 0 {
		return c, config.MCPServer{}, fmt.Errorf("the MCP server %s is not in the settings", id)
	}
	s := c.MCP.Servers[i]
	if s.Project && !config.ReadProject(r.at.Data).IsTrusted() {
		return c, s, fmt.Errorf("%s changed since it was trusted\nreview it: daycare mcp trust %s", config.ProjectName, config.ProjectName)
	}
	for _, text := range append([]string{s.Command, s.URL}, s.Args...) {
		if _, missing := c.Expand(text); s.Project && len(missing) > 0 {
			return c, s, fmt.Errorf("%s names ${%s}, and there is no variable or secret of that name\nset it with: daycare auth set %s",
				config.ProjectName, missing[0], missing[0])
		}
	}

	return c, s, nil
}

// startMCP starts the program of a server, held by the sandbox of commands.
func (r workbench) startMCP(s mcp.Server, errors io.Writer) (io.ReadWriteCloser, error) {
	c, conf, err := r.mcpServer(s.ID)
	if err != nil {
		return nil, err
	}
	env, err := expanded(c, conf.Env, "env")
	if err != nil {
		return nil, err
	}
	v := toolshell.Service{Name: "mcp-" + s.ID, Argv: append([]string{conf.Command}, conf.Args...), Env: env,
		Home: filepath.Join(CommandHomes(r.at.Data), "mcp-"+s.ID), Read: r.inWorkspace(conf.Sandbox.Read...),
		Write: r.inWorkspace(conf.Sandbox.Write...), Network: conf.Sandbox.Network, Open: conf.Sandbox.Off, Errors: errors}
	if conf.WorkingDir != "" {
		v.Dir = r.inWorkspace(conf.WorkingDir)[0]
	}

	return r.services.Start(v)
}

// inWorkspace are paths of the settings as absolute ones.
func (r *place) inWorkspace(paths ...string) (all []string) {
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.at.Dir, path)
		}
		all = append(all, filepath.Clean(path))
	}

	return all
}

// expanded are values of the settings as NAME=value, in order, with their secrets.
func expanded(c *config.Config, values map[string]string, key string) (list []string, err error) {
	for name, text := range values {
		value, missing := c.Expand(text)
		if len(missing) > 0 {
			return nil, fmt.Errorf("%s.%s names ${%s}, and there is no variable or secret of that name\nset it with: daycare auth set %s",
				key, name, missing[0], missing[0])
		}
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}

// mcpHeaders are what each request to a server carries.
func (r workbench) mcpHeaders(s mcp.Server) (http.Header, error) {
	c, conf, err := r.mcpServer(s.ID)
	if err != nil {
		return nil, err
	}

	return headersOf(c, conf.Headers)
}

// headersOf are headers of the settings with their secrets.
func headersOf(c *config.Config, values map[string]string) (http.Header, error) {
	list, err := expanded(c, values, "headers")
	headers := http.Header{}
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		headers.Set(name, value)
	}

	return headers, err
}

// remotesName is the file of .daycare with the tasks that remote agents work on.
const remotesName = "a2a.json"

// newRemotes makes the desk for agents of other programs. Nothing is started.
func (r workbench) newRemotes(c *config.Config) *a2a.Desk {
	path := filepath.Join(r.at.Data, remotesName)
	o := a2a.Options{Log: r.log,
		Post: func(ctx context.Context, in message.Incoming) (message.Receipt, error) {
			return r.system.Deliver(ctx, in)
		},
		Load: func() ([]byte, error) { return beneath.Whole(path) },
		Save: func(data []byte) error { return r.vol.WriteFile("a2a", path, data) },
		Headers: func(id string) (http.Header, error) {
			c := r.settings.Current()
			i := slices.IndexFunc(c.A2A.Remotes, func(s config.A2ARemote) bool { return s.ID == id })
			if i < 0 {
				return nil, fmt.Errorf("the remote agent %s is not in the settings", id)
			}
			return headersOf(c, c.A2A.Remotes[i].Headers)
		}}
	for _, s := range c.A2A.Remotes {
		o.Remotes = append(o.Remotes, a2a.Remote{ID: s.ID, URL: s.URL, About: s.About, Local: s.Local})
	}

	return a2a.New(o)
}

// mcpStates are the servers as the status has them.
func (r workbench) mcpStates() (list []event.Service) {
	for _, s := range r.mcp.States() {
		e := event.Service{ID: s.ID, Type: "program", State: s.State, LastError: s.Error, Detail: fmt.Sprintf("%d tools", s.Tools)}
		if s.URL != "" {
			e.Type = "http"
		}
		if s.Pending > 0 {
			e.Detail += fmt.Sprintf(", %d withheld: daycare mcp trust %s", s.Pending, s.ID)
		}
		list = append(list, e)
	}

	return list
}

// TryMCP starts a server of the settings as the daemon would, and returns the tools that it has
// and the end of its log. The server ends with it.
func TryMCP(ctx context.Context, at ws.Place, id string, warn func(format string, args ...any)) ([]mcp.Definition, string, error) {
	r, err := openFiles(ctx, at, warn)
	if err != nil {
		return nil, "", err
	}
	defer r.close()
	return r.mcp.Try(ctx, id)
}

// logins are users' logins at MCP servers, in auth.json: what is secret in secrets of their own,
// so that each is kept out of what is written and sent.
type logins struct{ workbench }

// loginIDs are the ids of the secrets of a login.
func loginIDs(server string) (login, access, refresh string) {
	return "mcp-" + server + ".login", "mcp-" + server + ".access", "mcp-" + server + ".refresh"
}

// Login is that of a server, as the file has it now.
func (r logins) Login(s mcp.Server) (l mcp.Login, err error) {
	id, access, refresh := loginIDs(s.ID)
	stored, err := config.StoredSecrets(r.at.Data, id, access, refresh)
	if err != nil || stored[0].IsZero() {
		return l, err
	}
	if err := json.Unmarshal([]byte(stored[0].Reveal()), &l); err != nil {
		return mcp.Login{}, fmt.Errorf("the secret %s of %s: %w", id, config.AuthName, err)
	}
	l.Access, l.Refresh = stored[1].Reveal(), stored[2].Reveal()
	return l, nil
}

// KeepLogin replaces it.
func (r logins) KeepLogin(s mcp.Server, l mcp.Login) error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("keep the login at %s: %w", s.ID, err)
	}
	id, access, refresh := loginIDs(s.ID)
	return config.ReplaceSecrets(r.at.Data, map[string]config.Secret{id: config.NewSecret(string(data)),
		access: config.NewSecret(l.Access), refresh: config.NewSecret(l.Refresh)})
}

// Client is what the settings say of the client.
func (r logins) Client(s mcp.Server) (mcp.Client, error) {
	c, conf, err := r.mcpServer(s.ID)
	if err != nil {
		return mcp.Client{}, err
	}
	list, err := expanded(c, map[string]string{"clientSecret": conf.OAuth.ClientSecret}, "oauth")
	if err != nil {
		return mcp.Client{}, err
	}

	return mcp.Client{ID: conf.OAuth.ClientID, Secret: list[0][len("clientSecret="):], Scopes: conf.OAuth.Scopes}, nil
}

// LoginMCP has a user log in at a server of the settings, and returns the tools that it has.
func LoginMCP(ctx context.Context, at ws.Place, id string, asker mcp.Asker,
	warn func(format string, args ...any)) ([]mcp.Definition, error) {
	r, err := openFiles(ctx, at, warn)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.mcp.Login(ctx, id, asker)
}
