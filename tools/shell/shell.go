package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"daycare/engine/lazyregexp"
	"daycare/engine/permission"
	"daycare/engine/redact"
	"daycare/engine/sensitive"
	"daycare/tools"
	"daycare/tools/shell/guard"
	"daycare/tools/shell/sandbox"
)

// A Mode says what limits the commands of a model.
type Mode string

const (
	Sandbox Mode = "sandbox" // commands run in a sandbox without asking; without a sandbox they need approval
	Ask     Mode = "ask"     // each command needs approval, unless a rule covers it
	Deny    Mode = "deny"    // commands are not run
	Off     Mode = "off"     // the owner has switched the sandbox off: commands run without asking
)

const (
	// DefaultTimeout applies to calls without timeoutMs, MaxTimeout to all.
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = 30 * time.Minute
)

// Options say how commands are run.
type Options struct {
	SandboxOptions
	AgentFolders
	Mode Mode // "" is Ask
	// Live returns the current mode and is called for each call; nil: Mode, always.
	Live func() Mode
	// Timeout is for calls that name none; 0 is DefaultTimeout.
	Timeout time.Duration
	// Keep are names of environment variables that commands get in addition to the usual
	// ones.
	Keep []string
	// Began is called when a command of an agent starts; sandboxed says whether it runs in a
	// sandbox. It returns what is called when nothing of the command is left. nil: not called.
	Began func(agent string, sandboxed bool) (ended func())
	// Refused is called with what the sandbox kept an agent's command from, where daycare
	// notices. nil: not called.
	Refused func(agent, what string)
	// Redact removes secrets from everything that a command prints, before it is shown or
	// stored. nil: no secrets are known.
	Redact *redact.Redactor
	// Dial makes the connections of commands that may reach a domain. nil: no
	// command has a network.
	Dial Dial

	grace time.Duration // between SIGTERM and SIGKILL; shorter in tests
}

// SandboxOptions say what commands are kept from.
type SandboxOptions struct {
	// Sandbox is the requested sandbox: auto, bwrap, landlock or seatbelt; "": none.
	Sandbox string
	// Helper is the path of the daycare binary, or of another that imports package sandbox; "":
	// there is no sandbox and no supervisor.
	Helper string
	// Folders are the granted folders as they were when they were granted; nil: as they
	// are now.
	Folders *permission.Folders
	// Denied are absolute paths that no command can reach: .daycare. What package
	// sensitive names is added.
	Denied []string
	// Guard checks what commands leave behind; nil: a new one for these tools.
	Guard *guard.Guard
	// Reserve is how many bytes stay free on the disks that a command writes to: it is
	// ended before it uses them. 0: it can fill the disks.
	Reserve int64
}

// AgentFolders are the folders of an agent that its commands use, by the id of the agent.
type AgentFolders struct {
	// Spill is the folder that receives the full text of long output; "" or nil: none.
	Spill func(agent string) string
	// Shown are the folders in .daycare that an agent's commands can read, and
	// those that they can write too. nil: none.
	Shown func(agent string) (read, write []string)
	// Home is the private home folder of an agent's commands, created when needed.
	// nil: one for all, in the folder of temporary files.
	Home func(agent string) string
	// Jobs is the folder that keeps an agent's background processes. nil: there
	// are none.
	Jobs func(agent string) string
}

// New makes the tools exec and process, and the background processes that they
// share, which the caller must Close.
func New(o Options) ([]tools.Tool, *Jobs) {
	o = o.complete()
	shell := "/bin/sh"
	if path, err := exec.LookPath("bash"); err == nil {
		shell = path
	}
	jobs := newJobs(o.Jobs)
	return []tools.Tool{&Exec{options: o, shell: shell, confine: &confinement{options: o}, jobs: jobs}, &Process{jobs}}, jobs
}

// complete returns the options with defaults for what is not set.
func (o Options) complete() Options {
	o.Mode, o.Timeout, o.grace = cmp.Or(o.Mode, Ask), cmp.Or(max(o.Timeout, 0), DefaultTimeout), cmp.Or(o.grace, grace)
	if o.Folders == nil {
		o.Folders = permission.NewFolders("")
	}
	if o.Guard == nil {
		o.Guard = guard.New(sensitive.Here(), o.Denied...)
	}

	return o
}

// Exec is the tool exec.
type Exec struct {
	options Options
	shell   string
	confine *confinement
	jobs    *Jobs
	asked   tools.Asked[string] // folders beyond the agent's own, without symbolic links
}

var spec = tools.Spec{Name: "exec", Replay: tools.Once,
	Description: "Run a shell command. Processes that it starts end with it. With background, or after a minute, it " +
		"continues; see process.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"command":{"type":"string"},
"workdir":{"type":"string"},
"timeoutMs":{"type":"integer","minimum":1,"maximum":1800000,"description":"default 30000"},
"env":{"type":"object","additionalProperties":{"type":"string"}},
"stdin":{"type":"string"},
"background":{"type":"boolean"},
"allowedDomains":{"type":"array","items":{"type":"string"},
	"description":"hosts it can reach over HTTP(S); none: no network. host:port in the owner's network"}},
"required":["command"],"additionalProperties":false}`)}

// Spec describes the tool.
func (*Exec) Spec() tools.Spec { return spec }

// Run runs the command. The runtime has asked for approval before.
func (e *Exec) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	if e.mode(call.Access) == Deny {
		return tools.Result{Text: "exec is switched off by the owner (permissions.defaults.exec: deny)", Status: tools.Denied}, nil
	}
	a, err := decode(call)
	if err != nil {
		return tools.Errorf("%v", err), nil
	}
	dir, open, err := e.start(call, a.Workdir)
	if errors.Is(err, errNoFolder) {
		return tools.Errorf("exec: %v", err), nil
	}
	if err != nil {
		return tools.Result{Text: err.Error(), Status: tools.Denied}, nil
	}
	runner, err := e.confine.find()
	if err != nil {
		return tools.Result{Text: "exec: the sandbox of the settings does not work here, so nothing is run: " +
			err.Error(), Status: tools.Denied}, nil
	}
	p, err := e.process(call, a, dir, open, runner)
	if err != nil {
		return tools.Errorf("exec: %v", err), nil
	}
	var res tools.Result
	if a.Background {
		res = e.inBackground(ctx, call, p, a.timeout(MaxBackground))
	} else {
		res = e.inForeground(ctx, call, p, a.timeout(e.options.Timeout))
	}
	res.Source = network(a.Domains)
	return res, nil
}

// process returns the command of a call, ready to start. open is what it can see and change.
func (e *Exec) process(call tools.Call, a arguments, dir string, open permission.Set, runner *sandbox.Runner) (process, error) {
	what := resolve(a.Command, dir, call.Access)
	p := process{
		commandLine: commandLine{shell: e.shell, command: a.Command, stdin: a.Stdin, mark: call.ID},
		isolation:   isolation{runner: runner, view: sandbox.View{Dir: dir}},
		approval:    approval{rule: e.rule(call.Access, a, runner, what), covered: e.covered(call, a, runner, what)},
		secrets:     e.options.Redact, grace: e.options.grace,
		began: e.began(call.Agent, runner), refused: e.refused(call.Agent)}
	env := e.options.environment()
	if runner.Level != sandbox.None {
		var err error
		if p.view, p.watch, err = e.confine.view(call.Agent, open, dir); err != nil {
			return p, err
		}
		if p.proxy, err = e.network(a.Domains, call.Access, runner); err != nil {
			p.watch.End()
			return p, err
		}
		p.view.Proxy, p.domains = p.proxy.path(), a.Domains
		env = p.confined(env)
	}
	p.room = newRoom(e.options.Reserve, append(slices.Clone(p.view.Write), dir, cmp.Or(p.view.Home, os.TempDir()))...)
	p.env = append(env, a.environment()...)
	for name := range a.Env { // what the call says wins over what was there before
		p.env = slices.DeleteFunc(p.env, func(kv string) bool {
			return strings.HasPrefix(kv, name+"=") && kv != name+"="+a.Env[name]
		})
	}

	return p, nil
}

// network names the hosts that a command could read from, as a source of the turn; "" for none.
func network(domains []string) string {
	if len(domains) == 0 {
		return ""
	}
	return "the network by a command: " + strings.Join(domains, ", ")
}

// began returns the function that reports the start of a command of an agent.
func (e *Exec) began(agent string, runner *sandbox.Runner) func() (ended func()) {
	return func() func() {
		if e.options.Began == nil {
			return func() {}
		}
		return e.options.Began(agent, runner.Level != sandbox.None)
	}
}

// refused returns the function that reports what the sandbox kept a command of an agent from.
func (e *Exec) refused(agent string) func(string) {
	return func(what string) {
		if e.options.Refused != nil {
			e.options.Refused(agent, what)
		}
	}
}

// network returns the proxy through which a command reaches its domains; nil for none.
func (e *Exec) network(domains []string, set permission.Set, runner *sandbox.Runner) (*proxy, error) {
	switch {
	case len(domains) == 0:
		return nil, nil
	case e.options.Dial == nil:
		return nil, errors.New("commands have no network here")
	case !runner.Proxied():
		return nil, fmt.Errorf("allowedDomains needs namespaces, which this system keeps from daycare, or bubblewrap; " +
			"commands have no network here. Use web_fetch")
	}

	return newProxy(domains, set, e.options.Dial)
}

// inForeground runs the command and waits for its end, but not longer than
// yieldAfter: then it continues in the background.
func (e *Exec) inForeground(ctx context.Context, call tools.Call, p process, timeout time.Duration) tools.Result {
	spill := ""
	if e.options.Spill != nil {
		spill = e.options.Spill(call.Agent)
	}
	out := newCapture(spill, call.Progress)
	if timeout > yieldAfter && e.jobs.folder != nil {
		return e.yielding(ctx, call, p, timeout, out)
	}
	end, err := p.run(ctx, timeout, out)
	if err != nil {
		out.discard()
		return tools.Errorf("exec: %v", err)
	}
	out.finish()
	return p.explained(result(ctx, end, timeout, out))
}

// heldBack matches what programs print when the sandbox keeps something from them.
var heldBack = lazyregexp.New(`(?i)from proxy|permission denied|operation not permitted|read-only file system|` +
	`network is unreachable|could not resolve|name resolution|no such host`)

// explained adds the likely reason to a result that failed. With Landlock alone, a part of a
// command may fail that users expect to work, while the rest continues.
func (i isolation) explained(res tools.Result) tools.Result {
	went := res.Status == tools.Failed || res.Status == "" && !i.runner.HasView()
	if i.runner.Level != sandbox.None && went && heldBack.MatchString(res.Text) {
		limits := "only the granted folders, no network; allowedDomains gives one"
		switch {
		case !i.runner.HasView():
			limits = "only the granted folders, no new entries in a folder that holds .daycare or .git (make a " +
				"subfolder with the tool write and work there), no chmod, no network; bubblewrap would allow these"
		case len(i.domains) > 0:
			limits = "only the granted folders, of the network only " + strings.Join(i.domains, ", ")
		}
		res.Text += "\n[commands run in a sandbox: " + limits + "]"
	}
	if i.runner.Level != sandbox.None && gitKept.MatchString(res.Text) {
		res.Text += "\n[the configuration and hooks of a repository can only be read here; one that exists needs no git init. " +
			"To change them, ask with request_permission for @write: of the path]"
	}
	if noneLeft.MatchString(res.Text) && !strings.Contains(res.Text, "processes at once") {
		res.Text += fmt.Sprintf("\n[a command may have %d processes and %d threads at once]", sandbox.MaxProcesses, sandbox.MaxThreads)
	}

	return res
}

// gitKept matches what git prints if it cannot write its configuration, as git init does in
// an existing repository.
var gitKept = lazyregexp.New(`could not (?:write|lock) config file`)

// noneLeft matches what programs print when they cannot start more processes.
var noneLeft = lazyregexp.New(`(?i)(?:fork|clone|pthread_create|thread)[^\n]*resource temporarily unavailable|can(?:no|')t fork`)

// result describes how a command ended.
func result(ctx context.Context, end ending, timeout time.Duration, out *capture) tools.Result {
	text, whole := out.text()
	note := ""
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	res := tools.Result{Whole: whole}
	switch {
	case ctx.Err() != nil:
		res.Status, note = tools.Canceled, "[Cancelled]"
	case end.timedOut:
		res.Status, note = tools.TimedOut, fmt.Sprintf("[stopped: it ran longer than %v; set timeoutMs for more]", timeout)
	case end.signal != "":
		res.Status, note = tools.Failed, "[ended by signal: "+end.signal+"]"
	case end.code != 0:
		res.Status, note = tools.Failed, fmt.Sprintf("[exit code %d]", end.code)
	case text == "":
		note = "[no output, exit code 0]"
	default:
		note = "[exit code 0]"
	}
	res.Text = text + note
	return res
}
