package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/freeport"
)

// An mcpClient is a client of `daycare mcp serve` that writes the protocol by hand.
type mcpClient struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	last int
}

// servedWorkspace is a workspace that offers its agent 0/ to MCP clients, with a daemon.
func servedWorkspace(t *testing.T, script, settings string) *process {
	t.Helper()
	t.Setenv("DAYCARE_SECRET_CONTROL", "what-only-this-test-knows")
	d := &process{t: t, workspace: t.TempDir()}
	write(t, filepath.Join(d.workspace, "script.yaml"), script)
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), `providers: [ { id: s, type: scripted, options: { script: script.yaml } } ]
mcp: { serve: { agents: ["0/"] } }
`+settings)
	d.start()
	t.Cleanup(d.kill)
	if out, err := exec.Command("daycare", "--workspace", d.workspace, "agents", "new", "--name", "Ada").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	return d
}

func (d *process) mcpServe() *mcpClient {
	d.t.Helper()
	c := &mcpClient{t: d.t, cmd: exec.Command("daycare", "--workspace", d.workspace, "mcp", "serve")}
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewScanner(out)
	c.out.Buffer(nil, 1<<20)
	if err := c.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	c.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"by hand","version":"1"}}`)
	c.answer()
	fmt.Fprintln(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)

	return c
}

func (c *mcpClient) ask(method, params string) {
	c.last++
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.last, method, params)
}

func (c *mcpClient) say(text, id string) {
	c.ask("tools/call", fmt.Sprintf(`{"name":"send_message","arguments":{"agent":"0/","text":%q,"id":%q}}`, text, id))
}

// answer is the result of the newest request.
func (c *mcpClient) answer() (result struct {
	StructuredContent struct {
		State, Answer, Note string
		Duplicate           bool
	}
}) {
	c.t.Helper()
	for c.out.Scan() {
		var m struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal(c.out.Bytes(), &m); err != nil {
			c.t.Fatalf("standard output has what is no message: %q", c.out.Text())
		}
		if m.ID == c.last {
			if err := json.Unmarshal(m.Result, &result); err != nil {
				c.t.Fatalf("no result: %s", c.out.Text())
			}
			return result
		}
	}
	c.t.Fatalf("no answer to request %d: %v", c.last, c.out.Err())

	return result
}

// TestMCPClientAndKills: a client waits for an answer while the daemon dies, and while its own
// server dies. Each message is answered once.
func TestMCPClientAndKills(t *testing.T) {
	d := servedWorkspace(t, `rules: [ { reply: [ { delay: 1s, text: "heard {{.Text}}" } ] } ]`, "")
	said := func(word string) int {
		files, _ := filepath.Glob(filepath.Join(d.workspace, home, "agents", "*", "history.jsonl"))
		n := 0
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			n += strings.Count(string(data), word)
		}
		return n
	}

	c := d.mcpServe()
	c.say("kiwi", "k1")
	waitFor(t, "the message", func() bool { return said(`"text":"kiwi"`) == 1 })
	d.kill()
	if got := c.answer().StructuredContent; got.State != "working" || !strings.Contains(got.Note, "The message is safe") {
		t.Errorf("when the daemon died: %+v", got)
	}
	c.say("kiwi", "k2")
	if got := c.answer().StructuredContent; got.State == "answered" {
		t.Errorf("without a daemon: %+v", got)
	}
	d.start()
	c.say("kiwi", "k1")
	if got := c.answer().StructuredContent; got.State != "answered" || got.Answer != "heard kiwi" || !got.Duplicate {
		t.Errorf("after the restart: %+v", got)
	}
	if n := said(`"text":"kiwi"`); n != 1 {
		t.Errorf("the message is in history %d times", n)
	}

	c.say("plum", "p1")
	waitFor(t, "the message", func() bool { return said(`"text":"plum"`) == 1 })
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the answer in history", func() bool { return said("heard plum") == 1 })
	c = d.mcpServe()
	c.say("plum", "p1")
	if got := c.answer().StructuredContent; got.Answer != "heard plum" {
		t.Errorf("to the next client: %+v", got)
	}
}

// TestTypeScriptClientOfMCP has the official client talk to both doors. Its node_modules is in
// DAYCARE_MCP_CONFORMANCE.
func TestTypeScriptClientOfMCP(t *testing.T) {
	modules := os.Getenv("DAYCARE_MCP_CONFORMANCE")
	if modules == "" {
		t.Skip("NOT TESTED with the official TypeScript client of MCP: it needs Node.js and npm\n" +
			"  npm install --prefix /tmp/conformance @modelcontextprotocol/sdk@1.32.2 node@22\n" +
			"  DAYCARE_MCP_CONFORMANCE=/tmp/conformance/node_modules go test ./cmd/daycare -run TestTypeScriptClientOfMCP")
	}
	addr := freeport.Take(t)
	// The model takes its time, so that the client can cancel while the agent works.
	d := servedWorkspace(t, `rules: [ { reply: [ { delay: 500ms, text: "heard {{.Text}}" } ] } ]`,
		fmt.Sprintf("control: { listen: \"%s\" }\n", addr))
	token, err := exec.Command("daycare", "--workspace", d.workspace, "auth", "token", "create", "ide", "--scope", "chat").Output()
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/mcpclient/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	talk := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(modules, ".bin", "node"), append([]string{script}, args...)...)
		cmd.Env = append(os.Environ(), "NODE_MODULES="+modules)
		cmd.Stderr = os.Stderr
		cmd.Stdin = strings.NewReader(`["list_agents",{}]
["send_message",{"agent":"0/","text":"hi","id":"a1"},"the agent reads it"]
["send_message",{"agent":"0/","text":"hi","id":"a1"}]
["read_history",{"agent":"Ada"}]
["list_approvals",{}]
["resources"]
["send_message",{"agent":"9/","text":"hi"}]
`)
		out, err := cmd.Output()
		if err != nil {
			t.Logf("%v", err)
		}
		return string(out)
	}

	url := fmt.Sprintf("http://%s/mcp", addr)
	for name, out := range map[string]string{"stdio": talk("stdio", d.workspace),
		"http": talk("http", url, strings.TrimSpace(string(token)))} {
		for _, want := range []string{`"list_agents","list_approvals","read_history","send_message"`, `"progress":"accepted"`, `enough`,
			`"answer":"heard hi"`, `"sender":"typescript (MCP client)"`, `"untrusted":true`, `"approvals":[]`, `SYSTEM.md`,
			`is offered here`} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, out)
			}
		}
	}
	if out := talk("http", url, "wrong"); !strings.Contains(out, "unauthorized") || strings.Contains(out, "tools") {
		t.Errorf("with a wrong token: %s", out)
	}
}

// TestMCPDoorRefuses: who has no right to be at /mcp, and what is not a request.
func TestMCPDoorRefuses(t *testing.T) {
	addr := freeport.Take(t)
	d := servedWorkspace(t, `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`, fmt.Sprintf("control: { listen: %q }\n", addr))
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"c","version":"1"}}}`
	post := func(body io.Reader, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/mcp", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer what-only-this-test-knows")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		if host := r.Header.Get("Host"); host != "" {
			r.Host = host
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}

	if resp := post(strings.NewReader(hello)); resp.StatusCode != http.StatusOK || resp.Header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("a good request: %s", resp.Status)
	}
	for want, headers := range map[int][]string{
		http.StatusUnauthorized:         {"Authorization", "Bearer wrong"},
		http.StatusForbidden:            {"Origin", "http://evil.example"},
		http.StatusUnsupportedMediaType: {"Content-Type", "text/plain"},
		http.StatusNotFound:             {"Mcp-Session-Id", "another"},
	} {
		if resp := post(strings.NewReader(hello), headers...); resp.StatusCode != want {
			t.Errorf("%q: %s, want %d", headers, resp.Status, want)
		}
	}
	if resp := post(strings.NewReader(hello), "Host", "evil.example"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a name that points here: %s", resp.Status)
	}
	if resp := post(io.LimitReader(endlessly{}, 100<<20), "Expect", "100-continue"); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("100 MB: %s", resp.Status)
	}

	out, err := exec.Command("daycare", "--workspace", d.workspace, "config", "set", "mcp.serve.agents", "[]").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	waitFor(t, "the door to close", func() bool { return post(strings.NewReader(hello)).StatusCode == http.StatusNotFound })
}

type endlessly struct{}

func (endlessly) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
