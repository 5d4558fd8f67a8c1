// Package shell runs commands for agents: exec.
//
// A command runs in a process group of its own, with a scrubbed environment, and
// ends when its time is up, its turn is stopped, or its shell ends: what it left
// running in the background is ended too (guarantee G15). There is no sandbox
// yet, so each call asks a person first, unless the owner has switched that off.
package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
)

// A Mode says what stands between a model and the shell.
type Mode string

const (
	Ask  Mode = "ask"  // a person is asked for each command
	Deny Mode = "deny" // commands are not run
	Off  Mode = "off"  // the owner has switched the sandbox off: commands just run
)

const (
	// DefaultTimeout bounds a command that does not say, MaxTimeout any.
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = 30 * time.Minute
)

// Options say how commands are run.
type Options struct {
	Mode Mode // "" is Ask
	// Timeout is for calls that name none; 0 is DefaultTimeout.
	Timeout time.Duration
	// Keep are names of environment variables that commands get beside the usual
	// ones.
	Keep []string
	// Spill is the folder that takes the full text of long output, "" or nil:
	// none.
	Spill func(agent string) string
	// Denied are absolute folders that no command may start in: .daycare.
	Denied []string
}

// New makes the tools: exec.
func New(o Options) []tools.Tool {
	if o.Mode == "" {
		o.Mode = Ask
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	shell := "/bin/sh"
	if path, err := exec.LookPath("bash"); err == nil {
		shell = path
	}
	return []tools.Tool{&Exec{o, shell}}
}

// Exec is the tool exec.
type Exec struct {
	options Options
	shell   string
}

var spec = tools.Spec{Name: "exec", Replay: tools.Once,
	Description: "Run a shell command and get its output and exit code. Background processes end with it.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"command":{"type":"string"},
"workdir":{"type":"string"},
"timeoutMs":{"type":"integer","minimum":1,"maximum":1800000,"description":"default 30000"},
"env":{"type":"object","additionalProperties":{"type":"string"}},
"stdin":{"type":"string"}},
"required":["command"],"additionalProperties":false}`)}

// Spec describes the tool.
func (*Exec) Spec() tools.Spec { return spec }

type arguments struct {
	Command   string            `json:"command"`
	Workdir   string            `json:"workdir"`
	TimeoutMs float64           `json:"timeoutMs"`
	Env       map[string]string `json:"env"`
	Stdin     string            `json:"stdin"`
}

func decode(call tools.Call) (arguments, error) {
	var a arguments
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return a, fmt.Errorf("exec: the arguments do not fit: %w", err)
	}
	if strings.TrimSpace(a.Command) == "" {
		return a, fmt.Errorf("exec: command is empty")
	}
	if strings.ContainsRune(a.Command, 0) {
		return a, fmt.Errorf("exec: command holds a zero byte")
	}
	for name, value := range a.Env {
		if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			return a, fmt.Errorf("exec: env %q is not a usable variable", name)
		}
	}
	return a, nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Needs is the approval that the call needs. Prefixes granted in
// permission.Set.Exec do not count here: without a sandbox the words of a command
// say nothing of what it does, so every call asks.
func (e *Exec) Needs(call tools.Call) (*permission.Request, error) {
	if e.options.Mode != Ask {
		return nil, nil
	}
	a, err := decode(call)
	if err != nil {
		return nil, err
	}
	dir, err := e.workdir(call.Access, a.Workdir)
	if err != nil {
		return nil, err
	}
	return &permission.Request{
		Tag:       permission.Exec{Prefix: firstWords(a.Command)}.Tag(),
		Reason:    "run a command",
		Detail:    permission.Detail{Command: a.rendered()},
		Workdir:   dir,
		AskAlways: true,
	}, nil
}

// rendered is all that decides what the call does, as a person is shown it and
// as the approval is bound to it.
func (a arguments) rendered() string {
	var b strings.Builder
	for _, kv := range a.environment() {
		name, value, _ := strings.Cut(kv, "=")
		b.WriteString(name + "=" + quote(value) + " ")
	}
	b.WriteString(a.Command)
	if a.Stdin != "" {
		b.WriteString("\n[standard input]\n" + a.Stdin)
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./+@:-]+$`)

// firstWords are the words of a command that name what it does: the program and
// its sub-command ("git push"). A command that begins otherwise is taken whole.
func firstWords(command string) string {
	var kept []string
	for _, word := range strings.Fields(command) {
		if len(kept) == 2 || !plainWord.MatchString(word) || len(kept) == 1 && !subCommand.MatchString(word) {
			break
		}
		kept = append(kept, word)
	}
	if len(kept) > 0 {
		return strings.Join(kept, " ")
	}
	whole := strings.Join(strings.Fields(strings.Map(printable, command)), " ")
	if len(whole) > 200 {
		whole = strings.ToValidUTF8(whole[:200], "")
	}
	return whole
}

var subCommand = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == '\uFFFD' {
		return ' '
	}
	return r
}

// Run runs the command. The runtime has asked for approval before.
func (e *Exec) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	if e.options.Mode == Deny {
		return tools.Result{Text: "exec is switched off by the owner (permissions.defaults.exec: deny)", Status: tools.Denied}, nil
	}
	a, err := decode(call)
	if err != nil {
		return tools.Errorf("%v", err), nil
	}
	dir, err := e.workdir(call.Access, a.Workdir)
	if err != nil {
		return tools.Result{Text: err.Error(), Status: tools.Denied}, nil
	}
	timeout := e.options.Timeout
	if a.TimeoutMs > 0 {
		timeout = time.Duration(min(a.TimeoutMs, float64(MaxTimeout.Milliseconds()))) * time.Millisecond
	}
	spill := ""
	if e.options.Spill != nil {
		spill = e.options.Spill(call.Agent)
	}
	out := newCapture(spill, call.Progress)
	job := process{shell: e.shell, command: a.Command, dir: dir, env: e.environment(a), stdin: a.Stdin, mark: call.ID}
	end, err := job.run(ctx, timeout, out)
	if err != nil {
		out.discard()
		return tools.Errorf("exec: %v", err), nil
	}
	return result(ctx, end, timeout, out), nil
}

// result puts the end of a command into words.
func result(ctx context.Context, end ending, timeout time.Duration, out *capture) tools.Result {
	text, note := out.text(), ""
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	res := tools.Result{}
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
