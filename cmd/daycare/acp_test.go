package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/control"
)

// editorScript is the model of the sessions that the tests hold.
var editorScript = `rules:
  - { contains: hello, reply: [ { thinking: "A greeting." }, { text: "Hello, and welcome.", chunk: 6, every: 400ms } ] }
  - { tool_result: read, reply: [ { calls: [ { name: edit, arguments: { path: a.txt, old: one, new: two } } ] } ] }
  - { tool_result: "*", reply: [ { text: "It is done." } ] }
  - { contains: edit the file, reply: [ { calls: [ { name: read, arguments: { path: a.txt } } ] } ] }
  - { after: permission, contains: "Allowed once", reply: [ { calls: [ { name: exec, arguments: { command: "echo x > ran; echo ` +
	`printed" } } ] } ] }
  - { after: permission, reply: [ { text: "So be it." } ] }
  - { contains: run it, round: 1, reply: [ { calls: [ { name: exec, arguments: { command: "echo x > ran; echo printed" } } ] } ] }
  - { contains: take long, reply: [ { text: "` + longText + `", chunk: 4, every: 50ms } ] }
  - { contains: survive, reply: [ { text: "I survived it all, every word.", chunk: 3, every: 100ms } ] }
  - { reply: [ { text: "heard {{.Text}}" } ] }
`

var longText = strings.Repeat("and so on ", 400)

func newEditorHouse(t *testing.T) string {
	t.Helper()
	workspace, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(workspace, "script.yaml"), editorScript)
	write(t, filepath.Join(workspace, "a.txt"), "one\n")
	write(t, filepath.Join(workspace, home, "commands", "review.md"), "Review $1")
	write(t, filepath.Join(workspace, home, "settings.yaml"),
		"providers: [ { id: s, type: scripted, options: { script: script.yaml } } ]\n")
	t.Cleanup(func() { stopLeftover(workspace) })

	return workspace
}

// TestTypeScriptClientOfACP has a client that is not this project's code hold a session:
// @agentclientprotocol/sdk of npm, in DAYCARE_ACP_SDK, the folder of the package.
func TestTypeScriptClientOfACP(t *testing.T) {
	sdk := os.Getenv("DAYCARE_ACP_SDK")
	if sdk == "" {
		t.Skip("NOT TESTED with the TypeScript client of the Agent Client Protocol: it needs Node.js and npm\n" +
			"  npm install --prefix /tmp/acp @agentclientprotocol/sdk@2.4.0\n" +
			"  DAYCARE_ACP_SDK=/tmp/acp/node_modules/@agentclientprotocol/sdk go test ./cmd/daycare -run TestTypeScriptClientOfACP")
	}
	t.Parallel()
	workspace := newEditorHouse(t)
	program, err := exec.LookPath("daycare")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", filepath.Join("testdata", "acp", "editor.mjs"), sdk, workspace, program).CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "\ndone\n") {
		log, _ := os.ReadFile(filepath.Join(workspace, home, "logs", "daycare.log")) // if there is one
		t.Fatalf("the client: %v; the daemon:\n%s", err, log)
	}
}

// An acpEditor is a process of daycare acp, and what it said so far.
type acpEditor struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer

	mu      sync.Mutex
	answers map[string]string // by id
	said    strings.Builder   // chunks of answers
	users   []string          // messages of the user
}

func newACPEditor(t *testing.T, workspace string) *acpEditor {
	t.Helper()
	e := &acpEditor{t: t, cmd: exec.Command("daycare", "--workspace", workspace, "acp"), answers: map[string]string{}}
	in, err := e.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.in, e.cmd.Stderr = in, os.Stderr
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { defer close(read); e.read(out) }()
	t.Cleanup(func() { in.Close(); e.kill(); <-read })
	e.call("hello", "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)

	return e
}

func (e *acpEditor) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

func (e *acpEditor) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			ID     string
			Method string
			Params struct {
				Update struct {
					SessionUpdate string
					Content       json.RawMessage
				}
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil && m.Method == "" {
			e.t.Errorf("%s: %v", lines.Text(), err)
			continue
		}
		e.mu.Lock()
		if m.Method == "" {
			e.answers[m.ID] = lines.Text()
		}
		var content struct{ Text string }
		_ = json.Unmarshal(m.Params.Update.Content, &content)
		switch m.Params.Update.SessionUpdate {
		case "agent_message_chunk":
			e.said.WriteString(content.Text)
		case "user_message_chunk":
			e.users = append(e.users, content.Text)
		}
		e.mu.Unlock()
	}
}

func (e *acpEditor) send(id, method, params string) {
	e.t.Helper()
	if _, err := fmt.Fprintf(e.in, `{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
		e.t.Fatal(err)
	}
}

// answer waits for the response to a request.
func (e *acpEditor) answer(id string) (line string) {
	e.t.Helper()
	waitFor(e.t, "the response to "+id, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		line = e.answers[id]
		return line != ""
	})
	return line
}

func (e *acpEditor) call(id, method, params string) string {
	e.t.Helper()
	e.send(id, method, params)
	return e.answer(id)
}

func (e *acpEditor) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.said.String()
}

// Prompts whose daemon, and then whose editor is killed while they are answered: each is in history
// once, and is answered in full where the editor reads it.
func TestPromptsOfEditorsSurviveKills(t *testing.T) {
	t.Parallel()
	workspace := newEditorHouse(t)
	const answer = "I survived it all, every word."
	e := newACPEditor(t, workspace)
	made := e.call("new", "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, workspace))
	var session struct{ Result struct{ SessionID string } }
	if err := json.Unmarshal([]byte(made), &session); err != nil || session.Result.SessionID == "" {
		t.Fatalf("%s %v", made, err)
	}
	id := session.Result.SessionID
	prompt := func(key, text string) string {
		return fmt.Sprintf(`{"sessionId":%q,"messageId":%q,"prompt":[{"type":"text","text":%q}]}`, id, key, text)
	}

	e.send("p1", "session/prompt", prompt("k1", "survive alpha"))
	waitFor(t, "the beginning of the answer", func() bool { return e.text() != "" })
	killDaemonOf(t, workspace)
	if got := e.answer("p1"); !strings.Contains(got, "end_turn") || !strings.HasSuffix(e.text(), answer) {
		t.Fatalf("after a kill of the daemon: %s, %q", got, e.text())
	}

	before := len(e.text())
	e.send("p2", "session/prompt", prompt("k2", "survive beta"))
	waitFor(t, "the beginning of the answer", func() bool { return len(e.text()) > before })
	e.kill()
	e = newACPEditor(t, workspace)
	loaded := e.call("load", "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, workspace))
	waitFor(t, "the rest of the answer after "+loaded, func() bool { return strings.Count(e.text(), answer) == 2 })
	if got := e.call("p3", "session/prompt", prompt("k2", "survive beta")); !strings.Contains(got, "end_turn") {
		t.Errorf("the same message again: %s", got)
	}
	e.mu.Lock()
	users := strings.Join(e.users, "|")
	e.mu.Unlock()
	history := read(t, &process{t: t, workspace: workspace}, "history.jsonl")
	for _, word := range []string{"survive alpha", "survive beta"} {
		if n := strings.Count(users, word); n != 1 {
			t.Errorf("%q is %d times in the replay %q", word, n, users)
		}
		if n := strings.Count(history, `"text":"`+word); n != 1 {
			t.Errorf("%q is %d times in history", word, n)
		}
	}
}

// killDaemonOf kills the daemon of a workspace.
func killDaemonOf(t *testing.T, workspace string) {
	t.Helper()
	client, err := control.Dial(filepath.Join(workspace, home))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	status, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := os.FindProcess(status.PID)
	if err == nil {
		err = daemon.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}
