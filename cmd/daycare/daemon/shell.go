package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"daycare/engine/config"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/fetch"
	"daycare/tools/files"
	toolshell "daycare/tools/shell"
	"daycare/tools/shell/sandbox"
)

// A workbench makes the tools of agents, and says what they reach.
type workbench struct{ *Daemon }

// shellOptions say how agents' commands are run.
func (r workbench) shellOptions() toolshell.Options {
	root, taskDir, live := r.at.Data, r.clocks.FilesOf, r.settings.Current
	agent := func(id, name string) string { return filepath.Join(root, "agents", id, name) }
	homes := CommandHomes(root)
	c, dial := live(), toolshell.Dial(fetch.Dial)
	if r.alone {
		dial = noDial
	}
	return toolshell.Options{
		Mode: shellMode(c), Live: func() toolshell.Mode { return liveMode(c, live()) }, Timeout: c.Tools.Exec.Timeout,
		Began: r.commandBegan, Refused: r.refused, Redact: &r.secrets, Dial: dial,
		SandboxOptions: toolshell.SandboxOptions{
			Sandbox: c.Tools.Exec.Sandbox, Helper: sandbox.Self(), Reserve: int64(c.Tools.Exec.ReserveMB) << 20,
			Folders: r.folders,
			// The home folders of all agents, so that no agent finds another's inside a folder
			// that it was granted: what it put there would run with the other's rights.
			Denied: []string{root, homes},
		},
		AgentFolders: toolshell.AgentFolders{
			Shown: func(id string) (read, write []string) {
				if id == hookHome {
					return []string{r.hookFolder()}, []string{filepath.Join(homes, id)}
				}
				write = []string{filepath.Join(homes, id)}
				if dir := taskDir(id); dir != "" {
					write = append(write, dir)
				}
				return append(conversationsOf(r.Daemon).paths(id), filepath.Join(root, "skills"), agent(id, "blobs")), write
			},
			Home:  func(id string) string { return filepath.Join(homes, id) },
			Spill: func(id string) string { return agent(id, "blobs") },
			Jobs:  func(id string) string { return agent(id, "jobs") },
		},
	}
}

// liveMode is the mode of the settings now. The sandbox stays what it was at the start.
func liveMode(start, now *config.Config) toolshell.Mode {
	c := *now
	c.Tools.Exec.Sandbox = start.Tools.Exec.Sandbox
	return shellMode(&c)
}

func shellMode(c *config.Config) toolshell.Mode {
	switch {
	case c.Permissions.Defaults.Exec == "deny":
		return toolshell.Deny
	case c.Tools.Exec.Sandbox == "off":
		return toolshell.Off
	case c.Permissions.Defaults.Exec == "ask":
		return toolshell.Ask
	}

	return toolshell.Sandbox
}

// CommandHomes returns the folder with the home folders of agents' commands, for the .daycare directory root. They
// contain caches, such as those of compilers, and can be removed at any time.
func CommandHomes(root string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(cache, "daycare", "home", hex.EncodeToString(sum[:6]))
}

// refused tells everybody who watches what the sandbox kept an agent from.
func (r workbench) refused(agent, what string) {
	r.events.Emit(event.Event{Type: event.SandboxRefused, Agent: agent, Body: event.Refused{Text: what}})
}

// sendFile is the tool that sends a file to the chat of an agent.
func (r workbench) sendFile() tools.Tool {
	return files.NewSend(r.fileOptions(),
		func(ctx context.Context, call tools.Call, text string, f message.File) error {
			return r.family.Say(ctx, call.Agent, "", call.Route, call.ID, text, f)
		})
}

// keep stores a picture that an agent read, or a file that it sends.
func (r workbench) keep(name, _ string, data []byte) (message.File, error) {
	return r.files.Put(name, bytes.NewReader(data))
}

// enclose keeps a copy of the nth file of a letter, which becomes the item with that
// id. The id of the copy follows from the two, so that a letter which is tried again
// has one.
func (r workbench) enclose(item string, n int, e inbox.Enclosure) (message.File, error) {
	if e.ID != "" {
		return r.files.Get(e.ID)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", item, n))
	return r.files.AdoptAs(hex.EncodeToString(sum[:12]), e.Name, e.Path)
}

// searchService is the service behind web_search; nil if none is set up.
func (r workbench) searchService(c *config.Config) *fetch.Service {
	s, err := fetch.FindService(c.Tools.Web.Search, func(name string) string { return c.Secret(name).Reveal() })
	if err != nil {
		r.log.Warn("web_search is left out", "err", err)
	}

	return s
}

// errAlone is what agents read that work without a network.
var errAlone = errors.New("there is no network here: this is a simulation")

// unreachable is a tool that asks as always and reaches nothing.
type unreachable struct {
	tools.Tool
	tools.Asks
}

// Run fails.
func (unreachable) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, errAlone
}

// cutOff takes the network from tools that need approval for it.
func cutOff(list []tools.Tool) []tools.Tool {
	out := make([]tools.Tool, len(list))
	for i, t := range list {
		out[i] = unreachable{t, t.(tools.Asks)}
	}

	return out
}

func noDial(context.Context, permission.Set, string) (net.Conn, error) { return nil, errAlone }
