package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A hooked is a workspace with one hook, whose program waits until the test lets it go.
type hooked struct {
	*process
	log string // what the program was given, a line for each run
}

// gated is a program that notes its pid and its input, waits for a file, and then does its work.
const gated = `#!/bin/sh
input=$(cat)
printf '%%s\n' "$input" >> '%[1]s/log'
echo $$ > '%[1]s/pid'
until test -e '%[1]s/go'; do sleep 0.02; done
%[2]s
`

// newHooked makes a workspace whose model follows a script, with a hook at an event. work is
// what its program does.
func newHooked(t *testing.T, script, event, matcher, work, settings string) *hooked {
	t.Helper()
	h := &hooked{process: &process{t: t, workspace: t.TempDir()}}
	dir := filepath.Join(h.workspace, home, "hooks")
	h.log = filepath.Join(dir, "log")
	write(t, filepath.Join(dir, "program.sh"), fmt.Sprintf(gated, dir, work))
	write(t, filepath.Join(h.workspace, "script.yaml"), script)
	write(t, filepath.Join(h.workspace, home, "settings.yaml"),
		fmt.Sprintf(`providers: [ { id: s, type: scripted, options: { script: script.yaml } } ]
hooks: { %s: [ { matcher: "%s", command: "sh .daycare/hooks/program.sh", sandbox: false } ] }
%s`, event, matcher, settings))
	h.start()
	h.run("agents", "new", "--name", "Ada")
	return h
}

func (h *hooked) run(args ...string) string {
	h.t.Helper()
	out, err := exec.Command("daycare", append([]string{"--no-input", "--workspace", h.workspace}, args...)...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("daycare %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// runs are the inputs of the program so far.
func (h *hooked) runs() []string {
	h.t.Helper()
	data, err := os.ReadFile(h.log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix("\n"+string(data), "\n"), "\n")[1:]
}

// killInHook kills the daemon while the hook runs, sees that nothing of the hook is left, and
// starts the daemon again with the hook let go.
func (h *hooked) killInHook() {
	h.t.Helper()
	pid := 0
	waitFor(h.t, "the hook: "+h.said.String(), func() bool {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(h.log), "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil && pid > 0
	})
	h.kill()
	waitFor(h.t, "the end of the hook's program", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	if n := len(h.runs()); n != 1 {
		h.t.Fatalf("the hook ran %d times before the kill, want once", n)
	}
	write(h.t, filepath.Join(filepath.Dir(h.log), "go"), "")
	h.start()
}

// answer waits for an answer in history.
func (h *hooked) answer(text string) string {
	h.t.Helper()
	waitFor(h.t, fmt.Sprintf("%q in\n%s\n%s", text, read(h.t, h.process, "history.jsonl"), h.said.String()), func() bool {
		return strings.Contains(read(h.t, h.process, "history.jsonl"), text)
	})
	return read(h.t, h.process, "history.jsonl")
}

// A policy that denies `git push`, killed while it looks at the call: the call has not begun,
// the policy looks again, and the command never runs.
func TestAPolicyHookSurvivesAKill(t *testing.T) {
	t.Parallel()
	h := newHooked(t, `rules:
  - { round: 1, reply: [ { calls: [ { name: exec, arguments: { command: "touch pushed; git push" } } ] } ] }
  - { reply: [ { text: "told: {{.Result}}" } ] }
`, "before_tool", "exec|process", `case $input in *"git push"*) echo "people push" >&2; exit 2;; esac`, "")
	defer h.kill()
	item := strings.TrimSpace(h.run("send", "Ada", "publish it"))
	h.killInHook()
	history := h.answer("denied by a hook of the owner: people push")
	if _, err := os.Stat(filepath.Join(h.workspace, "pushed")); err == nil || strings.Contains(history, "tool_started") {
		t.Errorf("the command was begun: %v\n%s", err, history)
	}
	if runs := h.runs(); len(runs) != 2 || !strings.Contains(runs[0], `"tool_name":"exec"`) ||
		!strings.Contains(runs[0], `"hook_event_name":"PreToolUse"`) {
		t.Errorf("the hook ran with %q", runs)
	}
	if why := h.run("why", item); !strings.Contains(why, "before_tool hook for exec: sh .daycare/hooks/program.sh denied: people push") {
		t.Errorf("why does not say what the hook decided: %s", why)
	}
	if why := h.run("permissions", "why", "Ada", "git push"); !strings.Contains(why, "program.sh") {
		t.Errorf("permissions why does not name the hook: %s", why)
	}
}

// A hook that runs while the settings change ends as it began; the next call has the new ones.
func TestAHookRunsOnWhileTheSettingsChange(t *testing.T) {
	t.Parallel()
	h := newHooked(t, `rules:
  - { round: 1, reply: [ { calls: [ { name: exec, arguments: { command: "mkdir -p below && touch below/made" } } ] } ] }
  - { reply: [ { text: "told: {{.Result}}" } ] }
`, "before_tool", "exec", "echo the old rule >&2; exit 2", "")
	defer h.kill()
	h.run("send", "Ada", "make it")
	waitFor(t, "the hook", func() bool { return len(h.runs()) == 1 })
	write(t, filepath.Join(h.workspace, home, "settings.yaml"),
		"providers: [ { id: s, type: scripted, options: { script: script.yaml } } ]\n")
	h.run("reload")
	write(t, filepath.Join(filepath.Dir(h.log), "go"), "")
	h.answer("denied by a hook of the owner: the old rule")
	h.run("send", "Ada", "make it now")
	waitFor(t, "the command: "+read(t, h.process, "history.jsonl"), func() bool {
		_, err := os.Stat(filepath.Join(h.workspace, "below", "made"))
		return err == nil
	})
	if n := len(h.runs()); n != 1 {
		t.Errorf("the hook ran %d times, once of them after it was removed", n)
	}
}

// A formatter after an edit, killed while it formats: the file is written and formatted, and
// the model reads both.
func TestAFormatterHookSurvivesAKill(t *testing.T) {
	t.Parallel()
	h := newHooked(t, `rules:
  - { round: 1, reply: [ { calls: [ { name: write, arguments: { path: below/main.txt, content: "a   b" } } ] } ] }
  - { reply: [ { text: "told: {{.Result}}" } ] }
`, "after_tool", "write|edit|apply_patch", `tr -s ' ' < below/main.txt > below/new && mv below/new below/main.txt && echo `+
		`'{"additionalContext":"formatted"}'`, "")
	defer h.kill()
	write(t, filepath.Join(h.workspace, "below", "README"), "")
	h.run("send", "Ada", "write it")
	h.killInHook()
	history := h.answer("[hook after_tool] formatted")
	if data, err := os.ReadFile(filepath.Join(h.workspace, "below", "main.txt")); err != nil || string(data) != "a b" {
		t.Errorf("the file holds %q, %v\n%s", data, err, history)
	}
	if n := len(h.runs()); n != 2 || strings.Count(history, `"type":"tool_result"`) != 1 {
		t.Errorf("the hook ran %d times, %d results\n%s", n, strings.Count(history, `"type":"tool_result"`), history)
	}
}

// A notifier of approvals, killed while it notifies: it runs again for the same request.
func TestANotifierHookSurvivesAKill(t *testing.T) {
	t.Parallel()
	h := newHooked(t, `rules:
  - { round: 1, reply: [ { calls: [ { name: exec, arguments: { command: "touch made" } } ] } ] }
  - { reply: [ { text: "I wait" } ] }
`, "approval", "", "", "permissions: { defaults: { exec: ask } }\n")
	defer h.kill()
	h.run("send", "Ada", "make it")
	h.killInHook()
	history := h.answer("I wait")
	runs := h.runs()
	if len(runs) != 2 || !strings.Contains(runs[0], "touch made") || !strings.Contains(runs[1], "touch made") {
		t.Fatalf("the hook ran with %q", runs)
	}
	token := strings.SplitN(strings.SplitN(runs[0], `"approval_token":"`, 2)[1], `"`, 2)[0]
	if !strings.Contains(runs[1], token) || strings.Count(history, `"event":"asked"`) != 1 ||
		!strings.Contains(h.run("permissions", "ls"), token) {
		t.Errorf("the request %s was not the same, or not recorded once\n%q\n%s", token, runs, history)
	}
}
