package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"daycare/engine/permission"
	"daycare/tools"
)

// maxWait is how long one poll may wait for output.
const maxWait = 10 * time.Minute

// Process is the tool process: what can be done with background processes.
type Process struct{ jobs *Jobs }

var processSpec = tools.Spec{Name: "process", Replay: tools.Once,
	Description: "Control background processes of exec. poll: output since cursor or the last poll; waitMs: wait for new output.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"action":{"type":"string","enum":["list","status","poll","input","signal","kill"]},
"id":{"type":"string"},
"cursor":{"type":"integer","minimum":0},
"waitMs":{"type":"integer","minimum":0,"maximum":600000},
"input":{"type":"string"},
"close":{"type":"boolean","description":"close its standard input"},
"signal":{"type":"string","enum":["INT","TERM","HUP","USR1","USR2","KILL"]}},
"required":["action"],"additionalProperties":false}`)}

// Spec describes the tool.
func (*Process) Spec() tools.Spec { return processSpec }

type processArguments struct {
	Action string `json:"action"`
	ID     string `json:"id"`
	Cursor *int64 `json:"cursor"`
	WaitMs int64  `json:"waitMs"`
	Input  string `json:"input"`
	Close  bool   `json:"close"`
	Signal string `json:"signal"`
}

// Needs returns the approval that input needs: what a command reads decides what it does, so the user who had to
// allow the command is asked again.
func (t *Process) Needs(call tools.Call) (*permission.Request, error) {
	var a processArguments
	if err := json.Unmarshal(call.Arguments, &a); err != nil || t.jobs.folder == nil || a.Action != "input" || a.Input == "" {
		return nil, nil // Run says what is wrong
	}
	live, info, err := t.jobs.find(call.Agent, a.ID)
	if err != nil || live == nil || live.rule == nil {
		return nil, nil
	}

	text := fmt.Sprintf("%s\n[process] %s, running since %s", unmarked(info.Command), info.ID, info.StartedAt.Format(time.RFC3339Nano))
	if a.Close {
		text += ", its input ends"
	}
	return &permission.Request{Tag: live.rule.Tag(), Reason: "give a running command input", AskAlways: true, Workdir: info.Workdir,
		Detail: permission.Detail{Command: text + "\n[standard input]\n" + unmarked(a.Input)}}, nil
}

// Run does it.
func (t *Process) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	var a processArguments
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return tools.Errorf("process: the arguments do not fit: %v", err), nil
	}
	if t.jobs.folder == nil {
		return tools.Errorf("process: there are no background processes here"), nil
	}
	if a.Action == "list" {
		return tools.Result{Text: t.list(call.Agent)}, nil
	}

	live, info, err := t.jobs.find(call.Agent, a.ID)
	if err != nil {
		return tools.Errorf("process: %v", err), nil
	}
	res, err := t.act(ctx, call, a, live, info)
	res.Source = network(info.Domains)

	return res, err
}

// act does it to a process that is known.
func (t *Process) act(ctx context.Context, call tools.Call, a processArguments, live *job, info jobInfo) (tools.Result, error) {
	if live == nil {
		return t.ended(call.Agent, a, info), nil
	}
	switch a.Action {
	case "status":
		return tools.Result{Text: "Process " + a.ID + " " + live.state() + "\n" + live.recent(1000)}, nil
	case "poll":
		return live.poll(ctx, a), nil
	case "input":
		return live.input(a), nil
	case "signal":
		return live.signal(a.Signal), nil
	case "kill":
		live.run.terminate()
		<-live.run.done
		return tools.Result{Text: "Process " + a.ID + " " + live.state()}, nil
	}

	return tools.Errorf("process: there is no action %q", a.Action), nil
}

// list is a line for each process, newest last.
func (t *Process) list(agent string) string {
	var lines []string
	infos := saved(t.jobs.folder(agent))
	for _, info := range infos {
		state := info.state()
		if live, _, err := t.jobs.find(agent, info.ID); err == nil && live != nil {
			state = live.state()
		}
		lines = append(lines, fmt.Sprintf("%s  %s: %s", info.ID, oneLine(info.Command), state))
	}

	if len(lines) == 0 {
		return "[there are none]"
	}

	return strings.Join(lines, "\n")
}

// ended answers for a process that runs no more: its output stays readable.
func (t *Process) ended(agent string, a processArguments, info jobInfo) tools.Result {
	if a.Action != "status" && a.Action != "poll" {
		return tools.Errorf("process %s %s", info.ID, info.state())
	}
	f, err := os.Open(jobPath(t.jobs.folder(agent), info.ID, ".log"))
	if err != nil {
		return tools.Result{Text: fmt.Sprintf("Process %s %s\n[its output is gone]", info.ID, info.state())}
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return tools.Errorf("process: read output: %v", err)
	}

	from := info.First + max(0, st.Size()-maxPolled)
	if a.Cursor != nil {
		from = *a.Cursor
	}
	text, next, skipped := readLog(f, info.First, st.Size(), from)

	return tools.Result{Text: polled(text, next, skipped, "Process "+info.ID+" "+info.state())}
}

// poll returns what was printed since the cursor, or since the last poll.
func (j *job) poll(ctx context.Context, a processArguments) tools.Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	from := j.read
	if a.Cursor != nil {
		from = *a.Cursor
	}

	wait := time.NewTimer(min(time.Duration(a.WaitMs)*time.Millisecond, maxWait))
	defer wait.Stop()
	for {
		text, next, skipped := j.log.read(from)
		if text == "" {
			select {
			case <-j.log.grown:
				continue
			case <-j.run.done:
				text, next, skipped = j.log.read(from)
			case <-wait.C:
			case <-ctx.Done():
				return tools.Result{Text: "Cancelled", Status: tools.Canceled}
			}
		}

		j.read = next
		return tools.Result{Text: polled(text, next, skipped, "Process "+j.info.ID+" "+j.state())}
	}
}

func polled(text string, next, skipped int64, state string) string {
	if skipped > 0 {
		text = fmt.Sprintf("[%d older bytes are gone]\n%s", skipped, text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}

	return fmt.Sprintf("%s[%s; cursor %d]", text, state, next)
}

func (j *job) input(a processArguments) tools.Result {
	if j.run.stdin == nil {
		return tools.Errorf("process %s accepts no input: it got all of it at its start", j.info.ID)
	}
	if a.Input != "" {
		sent := make(chan error, 1)
		go func() { // ends with the process at the latest, which closes the pipe
			_, err := j.run.stdin.Write([]byte(a.Input))
			sent <- err
		}()

		select {
		case err := <-sent:
			if err != nil {
				return tools.Errorf("process %s does not take it: %v", j.info.ID, err)
			}
		case <-time.After(5 * time.Second):
			return tools.Errorf("process %s does not read its input; it may get it later", j.info.ID)
		}
	}
	if a.Close {
		j.run.stdin.Close()
	}

	return tools.Result{Text: "Sent."}
}

var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "KILL": syscall.SIGKILL}

func (j *job) signal(name string) tools.Result {
	sig, ok := signals[name]
	switch {
	case !ok:
		return tools.Errorf("process: signal %q is not one of INT, TERM, HUP, USR1, USR2, KILL", name)
	case sig == syscall.SIGKILL:
		j.run.kill()
		return tools.Result{Text: "Killed."}
	}

	if err := syscall.Kill(-j.run.pid, sig); err != nil {
		return tools.Errorf("process %s: %v", j.info.ID, err)
	}

	return tools.Result{Text: "Sent."}
}

// state says whether it runs, or how it ended.
func (j *job) state() string {
	select {
	case <-j.run.done:
		info := j.info
		now := time.Now()
		info.EndedAt, info.Code, info.Signal = &now, j.run.end.code, j.run.end.signal
		return info.state()
	default:
		return fmt.Sprintf("has been running for %v", time.Since(j.info.StartedAt).Round(time.Second))
	}
}

func (i jobInfo) state() string {
	switch {
	case i.EndedAt == nil:
		return "ended when daycare was stopped"
	case i.TimedOut:
		return "was stopped: it ran for too long"
	case i.Signal != "":
		return "was ended by signal: " + i.Signal
	default:
		return fmt.Sprintf("ended with exit code %d", i.Code)
	}
}

// recent is the end of its output.
func (j *job) recent(n int64) string { return j.log.last(n) }

// detach ends the foreground's view of its output and returns it.
func (j *job) detach() (text string, whole *tools.Whole) {
	text, whole = j.log.detach()
	j.log.mu.Lock()
	j.read = j.log.first + j.log.size
	j.log.mu.Unlock()
	return text, whole
}

func oneLine(command string) string {
	line := strings.Join(strings.Fields(command), " ")
	if utf8.RuneCountInString(line) > 80 {
		line = string([]rune(line)[:79]) + "…"
	}

	return line
}

// clean makes output text that can be in a record.
func clean(p []byte) string { return strings.ToValidUTF8(string(p), "\uFFFD") }
