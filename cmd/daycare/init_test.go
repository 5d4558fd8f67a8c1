package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"daycare/cmd/daycare/plugins"
	"daycare/engine/config"
	"daycare/engine/fault"
)

// modelServer is a server of this machine that speaks the OpenAI format, as llama.cpp
// or vLLM do: it lists its models, streams answers, calls the tool read when a file is
// asked for, and refuses a wrong key as OpenAI words it. It returns its base URL.
func modelServer(t *testing.T, key string) string {
	t.Helper()
	allowed := func(w http.ResponseWriter, r *http.Request) bool {
		if key == "" || r.Header.Get("Authorization") == "Bearer "+key {
			return true
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","param":null,`+
			`"code":"invalid_api_key"}}`)
		return false
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if allowed(w, r) {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"qwen3","object":"model","created":1686935002,"owned_by":"library"},`+
				`{"id":"gpt-oss","object":"model"}]}`)
		}
	})

	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		if !allowed(w, r) {
			return
		}
		var req struct {
			Model    string
			Messages []struct {
				Role    string
				Content any
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}

		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(delta, finish string) {
			fmt.Fprintf(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":%q,\"choices\":[{\"index\":0,"+
				"\"delta\":%s,\"finish_reason\":%s}]}\n\n", req.Model, delta, finish)
		}
		last := req.Messages[len(req.Messages)-1]
		asked := fmt.Sprint(last.Content)
		switch {
		case last.Role == "tool":
			chunk(`{"content":"notes.txt has one line: "}`, "null")
			chunk(`{"content":"buy milk."}`, "null")
			chunk(`{}`, `"stop"`)
		case strings.Contains(asked, "notes.txt"):
			chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read",`+
				`"arguments":"{\"path\":\"notes.txt\"}"}}]}`, "null")
			chunk(`{}`, `"tool_calls"`)
		case strings.Contains(asked, "one word: ready"):
			chunk(`{"content":"ready"}`, `"stop"`)
		default:
			chunk(`{"content":"Hello! I can read and change the files of this folder."}`, "null")
			chunk(`{}`, `"stop"`)
		}

		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":9,\"total_tokens\":109}}\n\ndata: "+
			"[DONE]\n\n")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// A terminal is a program that runs on a pseudo-terminal.
type terminalRun struct {
	t    *testing.T
	tty  *os.File
	said loudspeaker
	cmd  *exec.Cmd
	read chan struct{}
}

func onTerminal(t *testing.T, dir string, args ...string) *terminalRun {
	t.Helper()
	r := &terminalRun{t: t, cmd: exec.Command("daycare", args...), read: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env = dir, append(os.Environ(), "NO_COLOR=1", "TERM=xterm")
	tty, err := pty.StartWithSize(r.cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Skipf("SKIPPED: no pseudo-terminal can be had: %v", err)
	}

	r.tty = tty
	go func() {
		defer close(r.read)
		_, _ = io.Copy(&r.said, tty) // it ends with an error when the program does
	}()
	t.Cleanup(func() { r.cmd.Process.Kill(); tty.Close(); <-r.read })
	return r
}

// types waits for a prompt, seen once more than before, and types an answer.
func (r *terminalRun) types(prompt, answer string) {
	r.t.Helper()
	waitFor(r.t, "the prompt "+prompt+" in "+r.said.String(), func() bool { return strings.HasSuffix(r.said.String(), prompt) })
	before := len(r.said.String())
	time.Sleep(20 * time.Millisecond) // a terminal flushes what was typed before it was asked for without echo
	if _, err := r.tty.WriteString(answer + "\n"); err != nil {
		r.t.Fatal(err)
	}
	waitFor(r.t, "what comes after "+prompt, func() bool { return len(r.said.String()) > before })
}

// ends waits for the end and returns the exit code and all that was on the screen.
func (r *terminalRun) ends() (code int, screen string) {
	r.t.Helper()
	done := make(chan struct{})
	go func() { _ = r.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		r.t.Fatalf("it does not end: %s", r.said.String())
	}
	<-r.read

	return r.cmd.ProcessState.ExitCode(), strings.ReplaceAll(r.said.String(), "\r\n", "\n")
}

func settingsOf(t *testing.T, dir string) *config.Config {
	t.Helper()
	conf, found, err := config.Load(filepath.Join(dir, home), os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil || len(found) > 0 {
		t.Fatalf("the settings that init wrote: %v %v", found, err)
	}
	return conf
}

// A user who is asked says where answers come from; a wrong number, a wrong address
// and a wrong key are told, and what works is written down. A second time nothing is asked.
func TestInitAsks(t *testing.T) {
	url, dir := modelServer(t, "sk-right"), t.TempDir()
	r := onTerminal(t, dir, "init")
	r.types("Number [7]: ", "9")
	r.types("Number [7]: ", "6")
	r.types("Server address [http://127.0.0.1:8080/v1]: ", "127.0.0.1")
	r.types("Server address [http://127.0.0.1:8080/v1]: ", url)
	r.types("(not shown; Enter for none): ", "sk-wrong")
	r.types("Model: ", "qwen3")
	r.types("Save it anyway? [y/N] ", "n")
	r.types("Number [7]: ", "6")
	r.types("Server address [http://127.0.0.1:8080/v1]: ", url)
	r.types("(not shown; Enter for none): ", "sk-right")
	r.types("Model [qwen3]: ", "")
	code, screen := r.ends()
	if code != fault.ExitOK {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}

	for _, want := range []string{`"9" is not a number from 1 to 7`, "starts with http:// or https://", "401", "Incorrect API key",
		"available: qwen3, gpt-oss", `it answered "ready"`, "wrote    provider server, model qwen3",
		"saved    its key in .daycare/auth.json", "Next: daycare chat hello"} {
		if !strings.Contains(screen, want) {
			t.Errorf("on the screen is no %q:\n%s", want, screen)
		}
	}

	if strings.Contains(screen, "sk-") {
		t.Errorf("the key was shown:\n%s", screen)
	}
	p := settingsOf(t, dir).Providers
	if len(p) != 1 || p[0].ID != "server" || p[0].BaseURL != url || p[0].Model != "qwen3" || p[0].APIKey.Reveal() != "sk-right" {
		t.Errorf("set up is %+v", p)
	}
	if ok, said := say(dir, "hello"); !ok || !strings.Contains(said, "Hello! I can read") {
		t.Errorf("the first answer: %s", said)
	}

	before, err := os.ReadFile(filepath.Join(dir, home, config.Name))
	if err != nil {
		t.Fatal(err)
	}
	code, screen = onTerminal(t, dir, "init").ends()
	if code != fault.ExitOK || !strings.Contains(screen, "kept     provider server, model qwen3") {
		t.Errorf("a second time, exit code %d:\n%s", code, screen)
	}
	if after, err := os.ReadFile(filepath.Join(dir, home, config.Name)); err != nil || string(after) != string(before) {
		t.Errorf("a second time the settings were changed: %v", err)
	}
}

// Enter alone sets nothing up, so that a key that is set later is found later.
func TestInitOffline(t *testing.T) {
	dir := t.TempDir()
	r := onTerminal(t, dir, "init")
	r.types("Number [7]: ", "")
	if code, screen := r.ends(); code != fault.ExitOK || len(settingsOf(t, dir).Providers) != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

// Ctrl-C while a key is asked for ends the program and leaves a terminal that shows
// what is typed.
func TestInitInterrupted(t *testing.T) {
	r := onTerminal(t, t.TempDir(), "init")
	r.types("Number [7]: ", "1")
	waitFor(t, "the question for the key", func() bool { return strings.HasSuffix(r.said.String(), "auth.json): ") })
	time.Sleep(50 * time.Millisecond)
	if _, err := r.tty.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if code, screen := r.ends(); code != fault.ExitInterrupted || !strings.HasSuffix(screen, "\n") {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

// All of it works by flags, and what does not work is not written.
func TestInitFlags(t *testing.T) {
	t.Parallel()
	url, dir := modelServer(t, "sk-right"), t.TempDir()
	run := func(stdin string, args ...string) (int, string) {
		var out strings.Builder
		code := execute(append([]string{"--workspace", dir, "init"}, args...), strings.NewReader(stdin), &out, &out)
		return code, out.String()
	}
	for _, test := range []struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		{"", []string{"--provider", "nobody"}, fault.ExitUsage, "is unknown; allowed: anthropic, openai"},
		{"", []string{"--provider", "server"}, fault.ExitUsage, "needs --base-url"},
		{"", []string{"--model", "qwen3"}, fault.ExitUsage, "--model needs --provider"},
		{"", []string{"--provider", "anthropic"}, fault.ExitFailure, "the key for anthropic is missing\nset ANTHROPIC_API_KEY"},
		{"", []string{"--provider", "anthropic", "--model", "claude-sonet-5", "--no-check"},
			fault.ExitFailure, "similar names: claude-sonnet-5"},
		{"sk-wrong", []string{"--provider", "server", "--base-url", url, "--model", "qwen3", "--key-stdin"},
			fault.ExitFailure, "Incorrect API key"},
		{"sk-right", []string{"--provider", "server", "--base-url", url, "--key-stdin", "--json"}, fault.ExitOK,
			`"provider":"server","model":"qwen3","check":{"id":"server","model":"qwen3","ok":true`},
		{"", []string{"--provider", "server", "--base-url", url}, fault.ExitOK, "kept     provider server"},
		{"", []string{"--provider", "gemini"}, fault.ExitFailure, "the settings already have providers"},
	} {
		if code, said := run(test.stdin, test.args...); code != test.code || !strings.Contains(said, test.want) {
			t.Errorf("init %v: exit code %d, want %d with %q:\n%s", test.args, code, test.code, test.want, said)
		}
		if n := len(settingsOf(t, dir).Providers); (n > 0) != (strings.Contains(strings.Join(test.args, " "),
			"--provider gemini") || test.code == fault.ExitOK) {
			t.Errorf("after init %v there are %d providers", test.args, n)
		}
	}
}
