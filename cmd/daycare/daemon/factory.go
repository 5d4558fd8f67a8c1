package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"daycare/agents"
	"daycare/agents/prompt"
	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/changes"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/sensitive"
	ws "daycare/engine/workspace"
	"daycare/tools"
	"daycare/tools/cron"
	"daycare/tools/fetch"
	"daycare/tools/files"
	"daycare/tools/memory"
	toolshell "daycare/tools/shell"
	"daycare/tools/shell/guard"
	"daycare/tools/skills"
)

// newTools makes the tools that agents have, and the processes that those of them
// left running, which are to be closed.
func (r workbench) newTools(ctx context.Context, c *config.Config) (*tools.Set, *toolshell.Jobs, error) {
	f, s := r.fileOptions(), r.shellOptions()
	s.Guard = guard.New(sensitive.Here(), s.Denied...)
	f.Accept = s.Guard.Accept
	list := files.New(f)
	shell, jobs := toolshell.New(s)
	list = append(append(list, shell...), cron.New(r.clocks, clockRights{r.Daemon})...)
	web := fetch.New(fetch.Options{Keep: r.keep, Search: r.searchService(c)})
	if r.alone {
		web = cutOff(web)
	}
	list = append(list, web...)
	list = append(list, memory.New(memory.Options{Dir: filepath.Join(r.at.Data, "memory"), Now: time.Now})...)
	list = append(list, skills.New(r.skills.List)...)
	if len(c.A2A.Remotes) > 0 {
		r.remotes = r.newRemotes(c)
		list = append(list, r.remotes.Tool())
	}
	r.services = toolshell.NewServices(s)
	r.mcp = r.newMCP(ctx)
	set, err := tools.NewSet(list...)
	return set, jobs, err
}

// fileOptions say what the file tools reach.
func (r workbench) fileOptions() files.Options {
	return files.Options{Data: r.at.Data, Folders: r.folders, Keep: r.keep, TaskDir: r.clocks.FilesOf,
		Attached: conversationsOf(r.Daemon).has,
		Written: func(agent string, w changes.Written, before, after []byte) error {
			return changes.Undo(r.vol, filepath.Join(r.at.Data, "agents", agent)).Note(w, before, after)
		}}
}

// A factory makes agents: their identity, permissions, prompt and reports.
type factory struct{ *Daemon }

// settingsFor returns the active settings, as they are for one agent.
func (r factory) settingsFor(d address.Descriptor) agents.Settings {
	c := r.settings.Current()
	rounds := c.Agents.ToolRounds.Background
	if d.Type == address.User {
		rounds = c.Agents.ToolRounds.Foreground
	} else if def, ok := r.toolset.definition(d); ok {
		rounds = def.MaxIterations
	}
	return agents.Settings{
		Rounds: rounds, Parallel: c.Agents.ParallelTools, Queue: agents.Queue(c.Agents.Queue), Queues: queues(c),
		Idle: idleAfter, Stuck: stuckAfter, ExecDenied: c.Permissions.Defaults.Exec == "deny",
		Profile:      permission.Profile(c.Permissions.Profile),
		StopAtLimit:  c.Budget.OnLimit == "stop",
		ContextLimit: c.Agents.EmergencyContextLimit, Zone: zone(),
		Routes: agents.Routes{Own: r.choice(d.Type, record.Model{}), Summary: r.models.Load().Route("summary")},
	}
}

// queueOf is how the agents of a connector take what comes while they work.
func (r *conf) queueOf(connector string) string {
	c := r.settings.Current()
	return cmp.Or(string(queues(c)[connector]), c.Agents.Queue)
}

// queues are how messages of some connectors are taken.
func queues(c *config.Config) map[string]agents.Queue {
	set := map[string]agents.Queue{}
	for _, k := range c.Connectors {
		if k.Queue != "" {
			set[k.ID] = agents.Queue(k.Queue)
		}
	}

	return set
}

const (
	// idleAfter is how long an agent stays in memory without work.
	idleAfter = time.Minute
	// stuckAfter ends a turn without progress, of guarantee G17.
	stuckAfter = 10 * time.Minute
)

// define is what the system prompt of an agent is made of.
func (r factory) define(meta address.Meta, state record.State) prompt.Definition {
	texts, known := r.sharedTexts()
	d := meta.Descriptor
	workspace := state.Permissions.WorkingDir
	if workspace == "" {
		workspace = r.at.Dir
	}
	return r.known(meta, r.plansFirst(state.Permissions.Profile), prompt.Definition{
		Name: meta.Name, Handle: meta.Handle, Role: prompt.Role(d.Type), Parent: d.ParentAgentID,
		Workspace: workspace, OS: runtime.GOOS, Prompt: d.SystemPrompt, Files: texts, Skills: known,
	})
}

// newState is the state.json of a new agent: it may work in the workspace.
func (r factory) newState(d address.Descriptor) ([]byte, error) {
	workspace, err := r.workplace(d.WorkspaceDir)
	if err != nil {
		return nil, err
	}
	now := disk.StampOf(crash.Now())
	rights := permission.Default(workspace)
	defaults := r.settings.Current().Permissions.Defaults
	rights.Web, rights.Hosts, rights.Lan = defaults.Web, defaults.Hosts, defaults.Lan
	state, err := r.inherit(d, record.State{Permissions: rights, CreatedAt: now, UpdatedAt: now})
	if err != nil {
		return nil, err
	}
	if err := r.folders.Know(state.Permissions); err != nil {
		return nil, fmt.Errorf("pin folders of the agent: %w", err)
	}

	return record.EncodeState(r.at, state)
}

// workplace is the folder of a new agent that works in a part of the workspace; it is
// made if it is not there. dir is "" for all of it.
func (r factory) workplace(dir string) (string, error) {
	if dir == "" {
		return r.at.Dir, nil
	}
	wrong := func(reason string) (string, error) {
		return "", &control.Invalid{Field: "workspaceDir", Reason: fmt.Sprintf("%q %s", dir, reason),
			Hint: "name a folder in the workspace, such as ops"}
	}
	if !filepath.IsLocal(dir) {
		return wrong("is not in the workspace")
	}
	for _, name := range strings.Split(filepath.Clean(dir), string(filepath.Separator)) {
		if strings.EqualFold(name, ws.Home) {
			return wrong("is daycare's own folder")
		}
	}
	root, _, err := r.folders.Open(r.at.Dir)
	if err != nil {
		return "", fmt.Errorf("make folder of the agent: %w", err)
	}
	defer func() { root.Close() }()
	for name := range strings.SplitSeq(filepath.Clean(dir), string(filepath.Separator)) {
		err := disk.MkdirIn("tool.file", root, name, 0o755)
		folder := root
		if err == nil {
			folder, err = beneath.Enter(root, name, nil) // a link is no way, wherever it leads
		}
		if err != nil {
			return wrong("cannot be made: " + beneath.Reason(err).Error())
		}
		root.Close()
		root = folder
	}

	return filepath.Join(r.at.Dir, dir), nil
}

// zone is the IANA name of the machine's time zone. Like time.Local it is that of the start: another
// one of the machine takes effect with the next.
func zone() string {
	if name := os.Getenv("TZ"); name != "" {
		return strings.TrimPrefix(name, ":")
	}
	if name := time.Local.String(); name != "Local" {
		return name
	}

	return linkedZone()
}

var linkedZone = sync.OnceValue(func() string {
	if target, err := os.Readlink("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(target, "zoneinfo/"); ok {
			return name
		}
	}
	return "UTC"
})
