package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
	"daycare/engine/fault"
)

func TestMain(m *testing.M) {
	if os.Getenv("LAB_BATCH") != "" { // a test kills it
		c := &term.App{Streams: term.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, Offline: daemon.Look, InProcess: daemon.Inside}
		os.Exit(runBatch(c, os.Args[1:]...))
	}
	os.Exit(m.Run())
}

// A desk is a workspace with tests, and what a user types there.
type desk struct {
	t     *testing.T
	root  string
	typed string // what its user types
}

func newDesk(t *testing.T, settings string) desk {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	d := desk{t: t, root: t.TempDir()}
	d.file(".daycare/settings.yaml", settings)
	return d
}

func (d desk) file(rel, content string) {
	d.t.Helper()
	path := filepath.Join(d.root, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) test(args ...string) (code int, out string) {
	d.t.Helper()
	var printed bytes.Buffer
	code = d.run(d.app(&printed), args...)

	return code, printed.String()
}

func (d desk) app(out io.Writer) *term.App {
	return &term.App{Streams: term.Streams{In: strings.NewReader(""), Out: out, Err: out}, Offline: daemon.Look, InProcess: daemon.Inside}
}

func (d desk) run(c *term.App, args ...string) int {
	root := func(c *term.App) *cobra.Command {
		root := &cobra.Command{Use: "daycare"}
		c.Attach(root)
		root.AddCommand(Test(c))
		return root
	}
	return c.Run(context.Background(), root, append([]string{"-C", d.root, "test"}, args...))
}

func (d desk) want(code int, args []string, texts ...string) string {
	d.t.Helper()
	got, out := d.test(args...)
	if got != code {
		d.t.Errorf("test %v ends with %d, want %d:\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			d.t.Errorf("test %v: %q is missing in:\n%s", args, text, out)
		}
	}

	return out
}

const offline = "providers: [ { id: offline, type: scripted } ]\n"

const prices = `name: finds the price
files:
  prices.txt: "tea 3.20\n"
messages: [ "what is in prices.txt?" ]
expect:
  - contains: tea 3.20
  - called: { tool: read, with: { path: /^prices/ } }
  - neverCalled: exec
  - costUnder: 0.05
  - roundsUnder: 4
`

func TestPassesAndFails(t *testing.T) {
	d := newDesk(t, offline)
	d.want(fault.ExitNotFound, nil, "there are no tests")
	d.file(".daycare/tests/prices.test.yaml", prices)
	d.want(fault.ExitOK, nil, "ok      finds the price", "1 run, 1 passed")
	d.want(fault.ExitNotFound, []string{"--run", "sleeps"}, "no test name matches")
	d.want(fault.ExitUsage, []string{"--live", "--record"}, "cannot be combined")

	d.file(".daycare/tests/wrong.test.yaml", strings.Replace(prices, "contains: tea 3.20", "contains: tea 4.20", 1))
	out := d.want(fault.ExitFailure, nil, "FAILED", "-tea 4.20", "+1\ttea 3.20", "2 runs, 1 passed, 1 failed")
	if strings.Contains(out, "ERROR") {
		t.Error(out)
	}

	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "daycare-test-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("workspaces were left behind: %v %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(d.root, ".daycare", "agents")); err == nil {
		t.Error("a test made an agent in the workspace")
	}
}

func TestAMistakeInATestRunsNothing(t *testing.T) {
	d := newDesk(t, offline)
	d.file(".daycare/tests/prices.test.yaml", prices)
	d.file(".daycare/tests/slip.test.yaml", "messages: [ hello ]\nexpect:\n  - contians: hello\n")
	out := d.want(fault.ExitUsage, nil, "slip.test.yaml:3:5: expect[0].contians is unknown", "did you mean \"contains\"?")
	if strings.Contains(out, "finds the price") {
		t.Error("a test ran beside one that is wrong:\n" + out)
	}
}

// A test that goes on and on is ended by its rounds, or by its time.
func TestLoopsEnd(t *testing.T) {
	d := newDesk(t, offline)
	const loop = "script: { rules: [ { reply: [ %s { calls: [ { name: write,\n" +
		"  arguments: { path: 'n{{.Round}}.txt', content: x } } ] } ] } ] }\nmessages: [ go ]\nexpect: [ { %s } ]\n%s\n"
	d.file(".daycare/tests/rounds.test.yaml", fmt.Sprintf(loop, "", "ends: limit", "rounds: 3"))
	d.want(fault.ExitOK, nil, "3 calls")
	d.file(".daycare/tests/rounds.test.yaml", fmt.Sprintf(loop, "", "contains: done", "rounds: 3"))
	d.want(fault.ExitFailure, nil, `it ended with "limit"`, `write {"content":"x","path":"n3.txt"} ok`)

	began := time.Now()
	d.file(".daycare/tests/rounds.test.yaml", fmt.Sprintf(loop, "{ delay: 300ms }, ", "contains: done", "rounds: 1000\ntimeout: 2s"))
	d.want(fault.ExitFailure, nil, "the test ends within 2s", "it is still working after ")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// A transcript is what a command has printed so far.
type transcript struct {
	mu   sync.Mutex
	text string
	more chan struct{}
}

func (p *transcript) Write(data []byte) (int, error) {
	p.mu.Lock()
	p.text += string(data)
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}

	return len(data), nil
}

// until waits for a text, and forgets what came before it.
func (p *transcript) until(t *testing.T, text string) {
	t.Helper()
	for late := time.After(time.Minute); ; {
		p.mu.Lock()
		_, rest, found := strings.Cut(p.text, text)
		all := p.text
		if found {
			p.text = rest
		}
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-p.more:
		case <-late:
			t.Fatalf("%q did not come:\n%s", text, all)
		}
	}
}

// Tests run again after a change, a mistake in one ends nothing, and Ctrl-C takes away what was
// begun.
func TestWatch(t *testing.T) {
	d := newDesk(t, offline)
	d.file(".daycare/tests/prices.test.yaml", prices)
	out := &transcript{more: make(chan struct{}, 1)}
	c, code := d.app(out), make(chan int)
	go func() { code <- d.run(c, "--watch") }()
	out.until(t, "1 run, 1 passed")
	out.until(t, "waiting for a change")
	d.file(".daycare/tests/prices.test.yaml", strings.Replace(prices, "contains: tea 3.20", "contains: tea 4.20", 1))
	out.until(t, "1 run, 0 passed, 1 failed")
	d.file(".daycare/tests/prices.test.yaml", "messages: 7\n")
	out.until(t, "prices.test.yaml:1:11: messages: found 7")
	d.file(".daycare/tests/prices.test.yaml",
		"script: { rules: [ { reply: [ { fault: { hang: true } } ] } ] }\nmessages: [ a ]\nexpect: [ { contains: a } ]\n")
	begun := filepath.Join(os.Getenv("TMPDIR"), "daycare-test-*", ".daycare", "agents", "*", "history.jsonl")
	for found := []string(nil); len(found) == 0; time.Sleep(10 * time.Millisecond) {
		found, _ = filepath.Glob(begun) // its pattern is a good one
	}
	c.Interrupts() <- os.Interrupt
	if got := <-code; got != fault.ExitInterrupted {
		t.Errorf("it ends with %d", got)
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "daycare-test-*")); err != nil || len(left) > 0 {
		t.Errorf("workspaces were left behind: %v %v", left, err)
	}
}

// What an agent asks is answered as the test says, and nobody waits.
func TestApprovalsAreAnswered(t *testing.T) {
	d := newDesk(t, offline+"permissions: { defaults: { exec: ask } }\n")
	const asks = "script: { rules: [ { round: 1, turn: 1,\n" +
		"  reply: [ { calls: [ { name: exec, arguments: { command: 'echo hi > hi.txt' } } ] } ] },\n" +
		"  { after: permission, round: 1, reply: [ { text: 'decided: {{.Text}}' } ] }, { reply: [ { text: waiting } ] } ] }\n" +
		"messages: [ go ]\n"
	d.file(".daycare/tests/deny.test.yaml", asks+
		"expect: [ { asks: '@exec' }, { contains: Denied }, { file: { path: hi.txt, absent: true } } ]\n")
	d.want(fault.ExitOK, nil)
	d.file(".daycare/tests/allow.test.yaml", asks+"answers: allow\nexpect: [ { asks: '@exec' }, { contains: Allowed once } ]\n")
	d.want(fault.ExitOK, nil, "2 passed")
}

// A vendor answers in the format of Chat Completions and counts its requests.
func vendor(t *testing.T, answer func(n int64, body string) string) (url string, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, answer(asked.Add(1), string(body)))
	}))
	t.Cleanup(server.Close)

	return server.URL, asked
}

// says is a stream that says a text; calls is one that calls a tool.
func says(text string) string {
	return chunk(fmt.Sprintf(`{"content":%q}`, text), "null") + chunk("{}", `"stop"`) + "data: [DONE]\n\n"
}

func calls(name, arguments string) string {
	return chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_9","type":"function","function":{"name":%q,"arguments":%q}}]}`,
		name, arguments), "null") + chunk("{}", `"tool_calls"`) + "data: [DONE]\n\n"
}

func chunk(delta, finish string) string {
	return fmt.Sprintf(`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m1","choices":[{"index":0,"delta":%s,`+
		`"finish_reason":%s}],"usage":{"prompt_tokens":100,"completion_tokens":10}}`+"\n\n", delta, finish)
}

// reads is a model that reads the file that it is asked for.
func reads(_ int64, body string) string {
	if strings.Contains(body, "tea ") && strings.Contains(body, `"role":"tool"`) {
		return says("Tea is tea 3.20.")
	}
	return calls("read", `{"path":"prices.txt"}`)
}

func remote(url, model string) string {
	return fmt.Sprintf("providers: [ { id: v, type: openai, baseURL: %q, model: %s, apiKeyEnv: LAB_KEY } ]\n"+
		"models: [ { id: %s, price: { input: 10, output: 100 } } ]\n", url, model, model)
}

func TestCassettes(t *testing.T) {
	t.Setenv("LAB_KEY", "sk-canary-of-the-lab")
	url, asked := vendor(t, reads)
	d := newDesk(t, remote(url, "m1"))
	d.file(".daycare/tests/prices.test.yaml", prices)
	tape := filepath.Join(d.root, ".daycare/tests/cassettes/prices.v.m1.jsonl")

	// Nothing is asked that costs money, unless it is said.
	d.want(fault.ExitFailure, nil, "ERROR", "there is no cassette for v/m1", "daycare test --record")
	if n := asked.Load(); n != 0 {
		t.Fatalf("%d requests were made", n)
	}
	d.want(fault.ExitOK, []string{"--live", "--times", "2"}, "#2", "(live)", "2 passed")
	if n := asked.Swap(0); n != 4 {
		t.Fatalf("%d requests were made, want 4", n)
	}

	// Recorded once, it is played without a request and without a key, and as often as wanted.
	d.want(fault.ExitOK, []string{"--record"}, "(recorded)")
	data, err := os.ReadFile(tape)
	if err != nil || asked.Swap(0) != 2 {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("canary")) || bytes.Contains(data, []byte("daycare-test-")) {
		t.Errorf("the cassette has the key, or the place of its run:\n%s", data)
	}
	os.Unsetenv("LAB_KEY")
	d.want(fault.ExitOK, []string{"--times", "3"}, "(replayed)", "3 passed", "$0.0000 spent")
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were made while a cassette was played", n)
	}

	// What changed is said: the message, the prompt, the file that is read, the model, the format.
	d.file(".daycare/tests/prices.test.yaml", strings.Replace(prices, "what is in prices.txt?", "what does tea cost?", 1))
	d.want(fault.ExitFailure, nil, "the requests on the cassette", "message 1 (user)",
		"-text: <time/><message>what is in prices.txt?</message>", "+text: <time/><message>what does tea cost?</message>")
	d.file(".daycare/tests/prices.test.yaml", strings.Replace(prices, "tea 3.20\\n", "tea 3.20, with milk\\n", 1))
	d.want(fault.ExitFailure, nil, "call 2", "message 3 (results)", "with milk")
	d.file(".daycare/tests/prices.test.yaml", prices)
	d.file(".daycare/SOUL.md", "Be brief.\n")
	d.want(fault.ExitFailure, nil, "the system prompt:", "+Be brief.", "record it again: daycare test --record")
	d.file(".daycare/SOUL.md", "")
	d.file(".daycare/settings.yaml", remote(url, "m2"))
	d.want(fault.ExitFailure, nil, "there is no cassette for v/m2", "there are prices.v.m1.jsonl")
	d.file(".daycare/settings.yaml", strings.Replace(remote(url, "m1"), "type: openai", "type: anthropic", 1))
	d.want(fault.ExitFailure, nil, "is of another model", `wire format: recorded "openai", now "anthropic"`)
	d.file(".daycare/settings.yaml", remote(url, "m1"))
	d.want(fault.ExitOK, nil)

	// A service that fails leaves the cassette as it is.
	d.file(".daycare/settings.yaml", remote("http://127.0.0.1:1", "m1"))
	d.want(fault.ExitFailure, []string{"--record"}, `it ended with "error"`)
	if now, err := os.ReadFile(tape); err != nil || !bytes.Equal(now, data) {
		t.Errorf("the cassette was replaced after a failure: %v", err)
	}

	d.file(".daycare/tests/cassettes/prices.v.m1.jsonl", strings.Replace(string(data), `{"message":"m2"`, `{"massage":"m2"`, 1))
	d.want(fault.ExitFailure, nil, "prices.v.m1.jsonl:", "expected a member system, tools, message or call")
}

func TestMatrixAndReports(t *testing.T) {
	url, _ := vendor(t, func(n int64, _ string) string { return says([]string{"yes", "no"}[n%2]) })
	d := newDesk(t, remote(url, "m1"))
	d.file(".daycare/tests/sure.test.yaml", "name: is sure\nmessages: [ 'yes or no?' ]\nexpect: [ { contains: 'no' } ]\n")
	path := filepath.Join(d.root, "report.xml")
	d.want(fault.ExitFailure, []string{"--live", "--models", "v/m1,v/m2", "--times", "4", "--parallel", "1", "--junit", path},
		"8 runs, 4 passed, 4 failed, 2 tests are flaky", "passed 2 of 4 times")

	var junit junitReport
	data, err := os.ReadFile(path)
	if err == nil {
		err = xml.Unmarshal(data, &junit)
	}
	if err != nil || junit.Tests != 8 || junit.Failures != 4 || len(junit.Suites) != 1 || junit.Suites[0].Cases[1].Failure == nil {
		t.Errorf("%v\n%s", err, data)
	}

	code, out := d.test("--live", "--json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code > 1 || r.Runs != 1 || r.Spent == 0 || r.Spent != r.Results[0].Cost {
		t.Errorf("%d %v\n%s", code, err, out)
	}
}

// The agent of a test has the prompt and the model that it has in the workspace.
func TestAnAgentIsTestedAsItIs(t *testing.T) {
	url, _ := vendor(t, func(_ int64, body string) string {
		return says(fmt.Sprint("pirate ", strings.Contains(body, "You are a pirate"), " soul ", strings.Contains(body, "Never flatter"),
			" warm ", strings.Contains(body, `"temperature":0.9`), " skill ", strings.Contains(body, "How to sail")))
	})
	d := newDesk(t, remote(url, "m1"))
	d.file(".daycare/SOUL.md", "Never flatter.\n")
	d.file(".daycare/skills/sail/SKILL.md", "---\nname: sail\ndescription: How to sail.\n---\nHoist.\n")
	id := strings.Repeat("a", 23) + "1"
	d.file(".daycare/agents/"+id+"/descriptor.json", `{"type":"permanent","id":"`+id+`","name":"Ops","systemPrompt":"You are a pirate."}`)
	d.file(".daycare/agents/"+id+"/state.json", `{"provider":{"id":"","model":"m1","temperature":0.9}}`)
	d.file(".daycare/tests/ops.test.yaml",
		"agent: Ops\nmessages: [ ahoy ]\nexpect: [ { contains: pirate true soul true warm true skill true } ]\n")
	d.want(fault.ExitOK, []string{"--live"}, "1 passed")
	d.file(".daycare/agents/"+id+"/here.test.yaml", "messages: [ ahoy ]\nexpect: [ { contains: pirate true } ]\n")
	d.want(fault.ExitOK, []string{"--live"}, "2 passed")
	d.file(".daycare/tests/ops.test.yaml", "agent: Nobody\nmessages: [ ahoy ]\nexpect: [ { contains: a } ]\n")
	d.want(fault.ExitNotFound, []string{"--live"}, `agent "Nobody"`)
}

func TestJudge(t *testing.T) {
	url, _ := vendor(t, func(_ int64, body string) string {
		if strings.Contains(body, "You grade the answer") {
			return says(`Here: {"score": 0.4, "why": "It is rude & short."}`)
		}
		return says("No.")
	})
	d := newDesk(t, remote(url, "m1"))
	const judged = "messages: [ 'may I come in?' ]\nexpect: [ { judge: { rubric: Polite., threshold: %v } } ]\n"
	d.file(".daycare/tests/polite.test.yaml", fmt.Sprintf(judged, 0.5))
	d.want(fault.ExitFailure, []string{"--live"}, "a model gives the answer 0.50 or more", "0.40: It is rude & short.", "| No.")
	d.file(".daycare/tests/polite.test.yaml", fmt.Sprintf(judged, 0.3))
	d.want(fault.ExitOK, []string{"--record"})
	d.want(fault.ExitOK, nil, "(replayed)")
}
