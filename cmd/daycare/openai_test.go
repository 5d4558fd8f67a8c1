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

	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/freeport"
)

// openAIWorkspace has an endpoint of the OpenAI format at an address, and a token for it.
func openAIWorkspace(t *testing.T, script string) (workspace, address, token string) {
	t.Helper()
	workspace, address = t.TempDir(), freeport.Take(t)
	write(t, filepath.Join(workspace, home, "settings.yaml"), fmt.Sprintf(`
providers:
  - { id: play, type: scripted, options: { script: script.yaml } }
control: { listen: %q }
connectors:
  - { id: openai, type: openai }
`, address))
	write(t, filepath.Join(workspace, "script.yaml"), script)
	write(t, filepath.Join(workspace, home, "auth.json"), `{"control":"a secret of the owner"}`)
	root := filepath.Join(workspace, home)
	token, _, err := apitoken.Create(root, "sdk", apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}}, nil)
	if err != nil {
		t.Fatal(err)
	}

	return workspace, "http://" + address + "/v1", token
}

// completion is what a chat completion has in it.
type completion struct {
	ID      string
	Choices []struct {
		Message struct{ Content string }
	}
	Usage struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	}
}

// complete sends a chat completion, with an Idempotency-Key, until it is answered.
func complete(base, token, key, text string) (c completion, err error) {
	body, _ := json.Marshal(map[string]any{"model": "openai", "messages": []map[string]string{{"role": "user", "content": text}}})
	req, err := http.NewRequest(http.MethodPost, base+"/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		return c, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", resp.StatusCode, data)
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}

	return c, err
}

// A client that sends again with the same key after kill -9 gets the answer of the one turn.
func TestOpenAIRequestOutlivesKill(t *testing.T) {
	workspace, base, token := openAIWorkspace(t, `rules: [ { reply: [ { delay: 300ms, text: "heard {{.Text}}" } ] } ]`)
	d := &process{t: t, workspace: workspace}
	d.start()
	defer func() { d.kill() }()

	const requests = 3
	for n := range requests {
		key, text := fmt.Sprint("key", n), word(0, n)
		cut := make(chan error, 1)
		go func() {
			_, err := complete(base, token, key, text)
			cut <- err
		}()
		waitFor(t, "the message in the inbox, or already in history", func() bool {
			paths, _ := filepath.Glob(filepath.Join(workspace, home, "agents", "*", "*.jsonl"))
			for _, path := range paths {
				if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), text) {
					return true
				}
			}
			return false
		})
		d.kill()
		<-cut // the connection broke, or the answer was faster
		d.start()

		first, err := complete(base, token, key, text)
		if err != nil {
			t.Fatalf("%v (%s)", err, d.said.String())
		}
		again, err := complete(base, token, key, text)
		if err != nil || first.ID != again.ID || first.Choices[0].Message.Content != "heard "+text ||
			again.Choices[0].Message.Content != "heard "+text {
			t.Errorf("%+v, then %+v, %v", first, again, err)
		}
	}

	history := historyOf(t, filepath.Join(workspace, home))
	for n := range requests {
		if got := strings.Count(history, `"text":"heard `+word(0, n)+`"`); got != 1 {
			t.Errorf("%s was answered %d times, want once", word(0, n), got)
		}
	}
}

// A client that goes away in the middle ends nothing: the answer is in history.
func TestOpenAIClientThatVanishes(t *testing.T) {
	workspace, base, token := openAIWorkspace(t, `rules: [ { reply: [ { text: "first " }, { delay: 300ms, text: "and last" } ] } ]`)
	d := &process{t: t, workspace: workspace}
	d.start()
	defer d.kill()
	req, err := http.NewRequest(http.MethodPost, base+"/chat/completions",
		strings.NewReader(`{"model":"openai","stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	resp.Body.Close()

	waitFor(t, "the answer in history", func() bool {
		return strings.Contains(historyOf(t, filepath.Join(workspace, home)), "first and last")
	})
}

// Where an agent waits for an approval, its client reads of which, and where to answer it.
func TestOpenAIClientReadsOfAnApproval(t *testing.T) {
	workspace, base, token := openAIWorkspace(t, `
rules:
  - contains: create
    round: 1
    reply: [ { text: "I have to ask." }, { calls: [ { name: exec, arguments: { command: "touch made" } } ] } ]
  - reply: [ { text: "I wait." } ]
`)
	settings := filepath.Join(workspace, home, "settings.yaml")
	data, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	write(t, settings, string(data)+"permissions: { defaults: { exec: ask } }\n")
	d := &process{t: t, workspace: workspace}
	d.start()
	defer d.kill()
	c, err := complete(base, token, "k", "create it")
	if err != nil {
		t.Fatal(err)
	}
	client, err := control.Dial(filepath.Join(workspace, home))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	asks, err := client.Permissions(t.Context())
	if err != nil || len(asks) != 1 {
		t.Fatalf("%+v, %v; the client read %+v", asks, err, c)
	}
	want := "I wait.\n\n[daycare: the agent waits for an approval of " + asks[0].Tag + " (token " + asks[0].Token + ")."
	if got := c.Choices[0].Message.Content; !strings.HasPrefix(got, want) {
		t.Errorf("the client read %q, want %q", got, want)
	}
	if err := client.Decide(t.Context(), asks[0].Token, "once", ""); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the turn that the approval begins", func() bool {
		return strings.Count(historyOf(t, filepath.Join(workspace, home)), `"text":"I wait."`) == 2
	})
}

// TestOpenAISDKs has the SDKs openai and ai of npm, in DAYCARE_OPENAI_SDKS, a folder
// node_modules, talk to an agent and compares what they counted with history.
func TestOpenAISDKs(t *testing.T) {
	sdks := os.Getenv("DAYCARE_OPENAI_SDKS")
	if sdks == "" {
		t.Skip("NOT TESTED against the SDKs of the OpenAI format: they need Node.js and npm\n" +
			"  npm install --prefix /tmp/sdks openai ai @ai-sdk/openai-compatible\n" +
			"  DAYCARE_OPENAI_SDKS=/tmp/sdks/node_modules go test ./cmd/daycare -run TestOpenAISDKs")
	}
	workspace, base, token := openAIWorkspace(t, `
rules:
  - contains: picture
    reply: [ { text: "seen" }, { usage: { input: 5, output: 1 } } ]
  - reply:
      - { text: "heard " }
      - { delay: 50ms, text: "{{.Text}}" }
      - { usage: { input: 100, output: 20, cacheRead: 30, reasoning: 7 } }
`)
	d := &process{t: t, workspace: workspace}
	d.start()
	defer d.kill()
	script, err := os.ReadFile("testdata/openai/sdks.mjs")
	if err != nil {
		t.Fatal(err)
	}
	// Modules are looked for beside the script.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sdks.mjs"), string(script))
	if err := os.Symlink(sdks, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "sdks.mjs"))
	cmd.Env = append(os.Environ(), "BASE="+base, "TOKEN="+token)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}

	var counted map[string]struct{ Item, Text string }
	if err := json.Unmarshal(lastLine(out), &counted); err != nil {
		t.Fatal(err)
	}
	history := historyOf(t, filepath.Join(workspace, home))
	want := `"tokens":{"input":100,"output":20,"cacheRead":30,"cacheWrite":0,"reasoning":7}`
	if got := strings.Count(history, want); got != len(counted) || got == 0 {
		t.Errorf("%d turns of the SDKs, %d with these tokens in history", len(counted), got)
	}
}

func lastLine(out []byte) []byte {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return []byte(lines[len(lines)-1])
}
