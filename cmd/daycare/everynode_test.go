//go:build !race && natsserver

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/control"
)

// Where operations that name no agent in their path are done, by the machine of a cluster that is asked:
//   - here: they are about this machine
//   - shared: on each machine, as their files are on all
//   - all: the answer has what all machines have
//   - found: on the machine that has what is named
//   - owner: on the machine of the agent that is named
//
// One whose path names an agent is done on the machine of the agent.
var whereOperationsAreDone = map[string]string{
	"health": "here", "metrics": "here", "status": "here", "config": "here", "tools": "here", "subagents": "shared", "skills": "shared",
	"providers": "here", "commands": "shared", "expand": "shared", "models": "here", "hooks": "here", "testhooks": "here", "reload": "here",
	"backup": "here", "shutdown": "here", "openPage": "here", "login": "here", "session": "here", "logout": "here", "sessions": "here",
	"endSession": "here", "doctor": "here", "fix": "here", "validate": "here", "schema": "here", "logs": "here", "files": "here",
	"readShared": "here", "writeShared": "here", "testConnector": "here", "testProvider": "here", "createAgent": "here",
	"importAgent": "here", "pairings": "here", "pair": "here",
	"cost": "all", "budgets": "all", "listAgents": "all", "permissions": "all", "trash": "all", "events": "all",
	"trace": "found", "attachment": "found", "decide": "found", "restore": "found",
	"foreignModel": "owner", "chatCompletions": "owner", "createResponse": "owner", "postByDescriptor": "owner",
	"listTasks": "shared", "addTask": "shared", "showTask": "shared", "changeTask": "shared", "removeTask": "shared",
	"runTask": "shared", "taskRuns": "shared", "runs": "shared", "heartbeat": "shared", "addPrompt": "shared", "removePrompt": "shared",
	"runHeartbeat":  "shared",
	"heartbeatRuns": "shared",
}

// socketClient asks the daemon of a workspace.
func socketClient(t *testing.T, workspace string) func(method, path, body string) (status int, from, answer string) {
	dial := func() (net.Conn, error) { return net.Dial("unix", filepath.Join(workspace, home, control.SocketName)) }
	return func(method, path, body string) (int, string, string) {
		t.Helper()
		conn, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://daycare"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		rt := &http.Transport{Dial: func(string, string) (net.Conn, error) { return conn, nil }}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}

		return resp.StatusCode, resp.Header.Get(control.MachineHeader), string(data)
	}
}

// Each operation says where it is done in a cluster, and what names an agent in its path is done on the machine of the agent,
// whichever machine is asked.
func TestEveryOperationReachesItsMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two daemons and a server")
	}
	t.Parallel()
	c := newCrew(t, 2)
	c.run(0, "chat", "hello")
	waitFor(t, "the other machine to know the agent", func() bool { return strings.Contains(c.run(1, "agents", "ls"), "main") })
	page, err := c.texts(0, "main")
	if err != nil || !slices.Equal(page, []string{"hello"}) {
		t.Fatal(page, err)
	}

	ask := socketClient(t, c.all[1].workspace)
	last := []string{"stop", "reset", "kill", "removeAgent"}
	operations := control.Operations()
	slices.SortStableFunc(operations, func(a, b control.Operation) int { return slices.Index(last, a.Name) - slices.Index(last, b.Name) })
	for name := range whereOperationsAreDone {
		if !slices.ContainsFunc(operations, func(o control.Operation) bool { return o.Name == name }) {
			t.Errorf("there is no operation %s", name)
		}
	}
	for _, o := range operations {
		where, said := whereOperationsAreDone[o.Name]
		if !strings.HasPrefix(o.Path, "/v1/agents/{id}") {
			if !said {
				t.Errorf("%s does not say where it is done in a cluster", o.Name)
			}
			continue
		}
		if said {
			t.Errorf("%s names an agent, and is said to be done: %s", o.Name, where)
		}
		path := strings.NewReplacer("{id}", "main", "{item}", "none", "{name}", "state.json").Replace(o.Path)
		status, from, answer := ask(o.Method, path, "{}")
		if from != "m0" || status >= 500 || status == http.StatusMisdirectedRequest {
			t.Errorf("%s on the other machine: %d from %q: %.200s", o.Name, status, from, answer)
		}
	}
}

// What names no agent in its path, and is about one, is done on its machine, or has what all machines have.
func TestWhatIsAboutAnAgentElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two daemons and a server")
	}
	t.Parallel()
	c := newCrew(t, 2)
	c.run(0, "chat", "hello")
	waitFor(t, "the other machine to know the agent", func() bool { return strings.Contains(c.run(1, "agents", "ls"), "main") })
	item := strings.TrimSpace(c.run(0, "send", "main", "traced"))
	ask := socketClient(t, c.all[1].workspace)
	waitFor(t, "the story on the other machine", func() bool {
		status, _, answer := ask(http.MethodGet, "/v1/why/"+url.PathEscape(item), "")
		return status == http.StatusOK && strings.Contains(answer, "heard traced")
	})
	for want, args := range map[string][]string{
		"heard traced":         {"why", item},
		"current":              {"agents", "sessions", "main"},
		"machine    m0":        {"agents", "show", "main"},
		"exported main":        {"agents", "export", "main", "-o", filepath.Join(t.TempDir(), "main.tar")},
		"heard over the other": {"send", "main", "over the other", "--wait"},
	} {
		if out := c.run(1, args...); !strings.Contains(out, want) {
			t.Errorf("daycare %q on the other machine says:\n%s\nwant %q", args, out, want)
		}
	}
	out, err := exec.Command("daycare", "--no-input", "--workspace", c.all[1].workspace, "agents", "diff", "main").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is on machine m0 of the cluster") {
		t.Errorf("diff on the other machine: %v\n%s", err, out)
	}
}

// watched are the events that a machine tells from now on, each as one text, until the test ends. The one that has all
// these parts is waited for, and its id returned.
func watched(t *testing.T, workspace, query string) func(what string, has ...string) (id string) {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(workspace, home, control.SocketName))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://daycare/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DialContext: dial}).RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	lines := bufio.NewScanner(resp.Body)

	return func(what string, has ...string) string {
		t.Helper()
		for event := ""; lines.Scan(); {
			if event += lines.Text() + "\n"; lines.Text() != "" {
				continue
			}
			if !slices.ContainsFunc(has, func(part string) bool { return !strings.Contains(event, part) }) {
				id, _, _ := strings.Cut(strings.TrimPrefix(event, "id: "), "\n")
				return id
			}
			event = ""
		}
		t.Fatalf("the stream ended without %s: %v", what, lines.Err())
		return ""
	}
}

// Who watches on one machine sees what agents do on all, also after a machine was killed, and continues where it was.
func TestEventsOfAllMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two daemons and a server")
	}
	t.Parallel()
	c := newCrew(t, 2)
	c.run(0, "chat", "hello")
	waitFor(t, "the other machine to know the agent", func() bool { return strings.Contains(c.run(1, "agents", "ls"), "main") })
	all := watched(t, c.all[1].workspace, "")
	one := watched(t, c.all[1].workspace, "?agent=main&types=turn.finished")
	c.run(0, "send", "main", "over there", "--wait")
	id := all("the turn on the other machine", "id: ", "event: turn.finished", "heard over there")
	one("the turn of the agent", "id: ", "event: turn.finished", "heard over there")

	c.run(0, "send", "main", "missed", "--wait")
	later := "?types=turn.finished&after=" + id // which of the two comes first is not said
	watched(t, c.all[1].workspace, later)("that this machine does not know the id", "event: gap", id)
	watched(t, c.all[1].workspace, later)("the turn after it", "event: turn.finished", "heard missed")

	c.all[0].kill()
	all("that the machine is gone", "event: gap")
	waitFor(t, "the agent to be taken over", func() bool {
		return exec.Command("daycare", "--no-input", "--workspace", c.all[1].workspace, "send", "main", "here now", "--wait").Run() == nil
	})
	all("the turn on this machine", "event: turn.finished", "heard here now")
	one("its turn after the move", "event: turn.finished", "heard here now")

	c.all[0].start()
	all("that the machine is back", "event: gap")
	c.run(0, "agents", "new", "--name", "later")
	c.run(0, "send", "later", "made there")
	all("the turn of an agent of the machine that is back", "event: turn.finished", "heard made there")
}

// A client of the OpenAI format gets the pieces of an answer as the model writes them, and continues its conversation, whichever
// machine it asks.
func TestAnOpenAIClientOfAnAgentElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two daemons and a server")
	}
	t.Parallel()
	const script = `rules: [ { contains: slow, reply: [ { text: "heard " }, { delay: 2s, text: "{{.Text}}" } ] },
  { reply: [ { text: "heard {{.Text}}" } ] } ]`
	c := newCrewSaying(t, 2, script, "", "--join", startServer(t))
	for _, m := range c.all {
		file := filepath.Join(m.workspace, home, "settings.yaml")
		settings, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, string(settings)+"connectors: [ { id: programs, type: openai } ]\n")
	}
	ask := socketClient(t, c.all[1].workspace)
	waitFor(t, "the format on both machines", func() bool {
		first, _, _ := socketClient(t, c.all[0].workspace)(http.MethodGet, "/v1/models", "")
		status, _, _ := ask(http.MethodGet, "/v1/models/programs", "")
		return first == http.StatusOK && status == http.StatusOK
	})
	c.run(0, "agents", "new", "--name", "remote")
	c.run(0, "send", "remote", "hello", "--wait")
	waitFor(t, "the other machine to know the agent", func() bool { return strings.Contains(c.run(1, "agents", "ls"), "remote") })

	talk := func(more string) string {
		return `{"model":"remote",` + more + `"messages":[{"role":"user","content":"slow one"}`
	}
	status, from, answer := ask(http.MethodPost, "/v1/chat/completions", talk(`"stream":true,`)+"]}")
	n := strings.Count(answer, `"content":"`) - 1 // the first is empty
	if status != http.StatusOK || from != "m0" || n < 2 || !strings.Contains(answer, "[DONE]") {
		t.Errorf("a stream: %d from %q, %d pieces:\n%s", status, from, n, answer)
	}
	next := talk("") + `,{"role":"assistant","content":"heard slow one"},{"role":"user","content":"two"}]}`
	if status, from, answer = ask(http.MethodPost, "/v1/chat/completions", next); status != http.StatusOK || from != "m0" ||
		!strings.Contains(answer, `"heard two"`) {
		t.Errorf("the next message: %d from %q:\n%s", status, from, answer)
	}
	status, from, answer = ask(http.MethodPost, "/v1/responses", `{"model":"remote","input":"slow three","stream":true}`)
	if n := strings.Count(answer, `"type":"response.output_text.delta"`); status != http.StatusOK || from != "m0" || n < 2 {
		t.Errorf("a response: %d from %q, %d pieces:\n%s", status, from, n, answer)
	}
	status, from, answer = ask(http.MethodPost, "/v1/chat/completions", `{"model":"remote","messages":[]}`)
	if status != http.StatusBadRequest || !strings.Contains(answer, "invalid_request_error") {
		t.Errorf("a request without messages: %d from %q:\n%s", status, from, answer)
	}
	if got, err := c.texts(0, "remote"); err != nil || !slices.Equal(got, []string{"hello", "slow one", "two", "slow three"}) {
		t.Errorf("%v: the agent has read %q", err, got)
	}
}
