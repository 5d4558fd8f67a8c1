package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/freeport"
)

// published is a workspace that publishes its agent Ada, with a daemon and a token for a client.
type published struct {
	*process
	base, token string
}

// publish starts one. notify are addresses that notifications may go to.
func publish(t *testing.T, script, more string, notify ...string) *published {
	t.Helper()
	d := &process{t: t, workspace: t.TempDir()}
	address := freeport.Take(t)
	list, _ := json.Marshal(append([]string{}, notify...)) // of strings
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), fmt.Sprintf(`
providers:
  - { id: play, type: scripted, options: { script: script.yaml } }
control: { listen: %q }
connectors:
  - id: a2a
    type: a2a
    agents: [ { agent: Ada, description: Hears what is said } ]
    notify: %s
%s`, address, list, more))
	write(t, filepath.Join(d.workspace, "script.yaml"), script)
	write(t, filepath.Join(d.workspace, home, "auth.json"), `{"control":"a secret of the owner"}`)
	rights := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}}
	token, _, err := apitoken.Create(filepath.Join(d.workspace, home), "peer", rights, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.start()
	t.Cleanup(d.kill)
	if out, err := exec.Command("daycare", "--workspace", d.workspace, "agents", "new", "--name", "Ada").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	return &published{d, "http://" + address, token}
}

// a2aTask is a task as JSON-RPC has it.
type a2aTask struct {
	ID     string
	Status struct {
		State   string
		Message struct{ Parts []struct{ Text string } }
	}
	Artifacts []struct{ Parts []struct{ Text string } }
}

func (t a2aTask) answer() (text string) {
	for _, a := range t.Artifacts {
		for _, p := range a.Parts {
			text += p.Text
		}
	}
	return text
}

// rpc is one request by JSON-RPC.
func (p *published) rpc(token, method, params string) (task a2aTask, err error) {
	req, err := http.NewRequest(http.MethodPost, p.base+"/a2a/Ada", strings.NewReader(
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)))
	if err != nil {
		return task, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("A2A-Version", "1.0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return task, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	var out struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil || out.Error != nil {
		return task, fmt.Errorf("%d %s: %w", resp.StatusCode, data, err)
	}
	var wrapped struct{ Task *a2aTask }
	if err := json.Unmarshal(out.Result, &wrapped); err == nil && wrapped.Task != nil {
		return *wrapped.Task, nil
	}

	return task, json.Unmarshal(out.Result, &task)
}

func (p *published) send(id, text, configuration string) (a2aTask, error) {
	return p.rpc(p.token, "SendMessage", fmt.Sprintf(
		`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]},"configuration":{%s}}`, id, text, configuration))
}

func (p *published) get(id string) (a2aTask, error) {
	return p.rpc(p.token, "GetTask", fmt.Sprintf(`{"id":%q}`, id))
}

// A task whose daemon is killed at work has its answer afterwards, under the same id and from one
// turn, and its client is notified.
func TestA2ATaskOutlivesKill(t *testing.T) {
	var mu sync.Mutex
	told := map[string]a2aTask{} // by Idempotency-Key
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ Task a2aTask }
		_ = json.NewDecoder(r.Body).Decode(&body)
		mu.Lock()
		defer mu.Unlock()
		told[r.Header.Get("Idempotency-Key")] = body.Task
	}))
	defer receiver.Close()
	p := publish(t, `rules: [ { reply: [ { delay: 300ms, text: "heard {{.Text}}" } ] } ]`, "", receiver.Listener.Addr().String())

	const tasks = 3
	for n := range tasks {
		id, text := fmt.Sprint("message", n), word(0, n)
		push := fmt.Sprintf(`"returnImmediately":true,"taskPushNotificationConfig":{"url":%q}`, receiver.URL)
		task, err := p.send(id, text, push)
		if err != nil {
			t.Fatal(err)
		}
		p.kill()
		p.start()

		again, err := p.send(id, text, "") // waits for the end
		if err != nil {
			t.Fatalf("%v (%s)", err, p.said.String())
		}
		got, err := p.get(task.ID)
		if err != nil || again.ID != task.ID || got.Status.State != "TASK_STATE_COMPLETED" || got.answer() != "heard "+text {
			t.Errorf("task %+v, then %+v, %v", again, got, err)
		}
		waitFor(t, "the notification", func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, n := range told {
				if n.ID == task.ID && n.answer() == "heard "+text && n.Status.State == "TASK_STATE_COMPLETED" {
					return true
				}
			}
			return false
		})
	}

	history := historyOf(t, filepath.Join(p.workspace, home))
	for n := range tasks {
		if got := strings.Count(history, `"text":"heard `+word(0, n)+`"`); got != 1 {
			t.Errorf("%s was answered %d times, want once", word(0, n), got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != tasks {
		t.Errorf("%d notifications by key, want %d", len(told), tasks)
	}
}

// A client that goes away in the middle of a stream ends nothing: it finds the answer later, by the id
// of its message, whatever it writes with that id then.
func TestA2AClientThatVanishes(t *testing.T) {
	p := publish(t, `rules: [ { reply: [ { text: "first " }, { delay: 300ms, text: "and last" } ] } ]`, "")
	req, err := http.NewRequest(http.MethodPost, p.base+"/a2a/Ada", strings.NewReader(`{"jsonrpc":"2.0","id":1,
		"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", resp.StatusCode, line, err)
	}
	resp.Body.Close()

	task, err := p.send("m", "something else", "")
	if err != nil || task.Status.State != "TASK_STATE_COMPLETED" || task.answer() != "first and last" {
		t.Errorf("%+v, %v", task, err)
	}
	if history := historyOf(t, filepath.Join(p.workspace, home)); strings.Count(history, `"text":"first and last"`) != 1 ||
		strings.Contains(history, "something else") {
		t.Errorf("%s", history)
	}
}

// A task that waits for an approval says so, and is completed by the turn that goes on after it.
// Another client does not know of it.
func TestA2ATaskGoesOnAfterAnApproval(t *testing.T) {
	p := publish(t, `
rules:
  - contains: create
    round: 1
    reply: [ { text: "I have to ask." }, { calls: [ { name: exec, arguments: { command: "touch made" } } ] } ]
  - contains: permission
    reply: [ { text: "Done." } ]
  - reply: [ { text: "I wait." } ]
`, "permissions: { defaults: { exec: ask } }\n")
	task, err := p.send("m", "create it", "")
	if err != nil || task.Status.State != "TASK_STATE_AUTH_REQUIRED" || !strings.Contains(task.Status.Message.Parts[0].Text, "approval") {
		t.Fatalf("%+v, %v", task, err)
	}
	client, err := control.Dial(filepath.Join(p.workspace, home))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	asks, err := client.Permissions(t.Context())
	if err != nil || len(asks) != 1 {
		t.Fatalf("%+v, %v", asks, err)
	}
	if err := client.Decide(t.Context(), asks[0].Token, "once", ""); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the turn that the approval begins", func() bool {
		task, err = p.get(task.ID)
		return err == nil && task.Status.State == "TASK_STATE_COMPLETED"
	})
	if task.answer() == "" {
		t.Errorf("%+v", task)
	}

	if task, err := p.rpc("a secret of the owner", "GetTask", fmt.Sprintf(`{"id":%q}`, task.ID)); err == nil {
		t.Errorf("another client reads %+v", task)
	}
}

// TestA2AClient has the client of npm's @a2a-js/sdk, in DAYCARE_A2A_SDK, a folder node_modules,
// use every operation over both bindings.
func TestA2AClient(t *testing.T) {
	notify := freeport.Take(t)
	p := publish(t, `
rules:
  - contains: slow
    reply: [ { text: "wait " }, { delay: 60s, text: "for it" } ]
  - reply: [ { text: "heard " }, { delay: 50ms, text: "{{.Text}}" } ]
`, "", notify)
	runA2A(t, "client.mjs", "BASE="+p.base, "TOKEN="+p.token, "NOTIFY="+notify)
}

// a2aSDK is the folder node_modules of the SDK of npm.
func a2aSDK(t *testing.T) string {
	t.Helper()
	sdk := os.Getenv("DAYCARE_A2A_SDK")
	if sdk == "" {
		t.Skip("NOT TESTED against the TypeScript SDK of A2A: it needs Node.js and npm\n" +
			"  npm install --prefix /tmp/a2a @a2a-js/sdk express\n" +
			"  DAYCARE_A2A_SDK=/tmp/a2a/node_modules go test ./cmd/daycare -run TestA2A")
	}
	return sdk
}

// runA2A runs a script of testdata/a2a to its end.
func runA2A(t *testing.T, name string, env ...string) {
	t.Helper()
	cmd := a2aScript(t, name, env...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// a2aScript is a script of testdata/a2a. Modules are looked for beside it.
func a2aScript(t *testing.T, name string, env ...string) *exec.Cmd {
	t.Helper()
	sdk := a2aSDK(t)
	script, err := os.ReadFile(filepath.Join("testdata", "a2a", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, name), string(script))
	if err := os.Symlink(sdk, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, name))
	cmd.Env = append(os.Environ(), env...)

	return cmd
}

// TestA2ARemoteAgent has an agent give tasks to a server of npm's @a2a-js/sdk, over both bindings: one
// that is done at once, and one that outlives the daemon.
func TestA2ARemoteAgent(t *testing.T) {
	for _, binding := range []string{"JSONRPC", "HTTP+JSON"} {
		t.Run(binding, func(t *testing.T) {
			address, done := freeport.Take(t), filepath.Join(t.TempDir(), "done")
			server := a2aScript(t, "server.mjs", "ADDRESS="+address, "BINDING="+binding, "DONE="+done, "TOKEN=theirs")
			started, err := server.StdoutPipe()
			if err == nil {
				err = server.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
			if line, err := bufio.NewReader(started).ReadString('\n'); err != nil {
				t.Fatal(line, err)
			}

			d := &process{t: t, workspace: t.TempDir(), env: []string{"WEATHER=theirs"}}
			write(t, filepath.Join(d.workspace, home, "settings.yaml"), fmt.Sprintf(`
providers: [ { id: play, type: scripted, options: { script: script.yaml } } ]
a2a:
  remotes:
    - { id: weather, url: "http://%s/agent", about: Forecasts, headers: { Authorization: "Bearer ${WEATHER}" }, local: true }
`, address))
			write(t, filepath.Join(d.workspace, "script.yaml"), `
rules:
  - contains: "the task is done"
    reply: [ { text: "told: {{.Text}}" } ]
  - contains: tomorrow
    round: 1
    reply: [ { calls: [ { name: ask_remote_agent, arguments: { agent: weather, text: "{{.Text}}" } } ] } ]
  - reply: [ { text: "I know: {{.Text}}" } ]
`)
			d.start()
			defer func() { d.kill() }()
			run := func(args ...string) string {
				t.Helper()
				out, err := exec.Command("daycare", append([]string{"--workspace", d.workspace}, args...)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return string(out)
			}
			run("agents", "new", "--name", "Ada")
			run("permissions", "grant", "Ada", "@a2a:127.0.0.1")
			root := filepath.Join(d.workspace, home)

			run("send", "Ada", "tomorrow", "--wait")
			if history := historyOf(t, root); !strings.Contains(history, "it rains on tomorrow") ||
				!strings.Contains(history, `"source":"an A2A agent at 127.0.0.1"`) {
				t.Fatalf("no answer in history: %s", history)
			}

			run("send", "Ada", "slow tomorrow", "--wait")
			kept, err := os.ReadFile(filepath.Join(root, "a2a.json"))
			if err != nil || !strings.Contains(string(kept), `"remote": "weather"`) {
				t.Fatalf("%s, %v", kept, err)
			}
			d.kill()
			write(t, done, "")
			d.start()
			waitFor(t, "the message that the task is done", func() bool {
				return strings.Contains(historyOf(t, root), "it rains on slow tomorrow")
			})
			waitFor(t, "the turn that it begins", func() bool {
				kept, err := os.ReadFile(filepath.Join(root, "a2a.json"))
				return err == nil && !strings.Contains(string(kept), "weather") && strings.Contains(historyOf(t, root), `"text":"told: `)
			})
			if history := historyOf(t, root); strings.Count(history, `"origin":"system"`) != 1 || strings.Contains(history, "theirs") {
				t.Errorf("%s", history)
			}
		})
	}
}
