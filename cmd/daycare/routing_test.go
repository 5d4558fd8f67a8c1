package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/fault"
)

// A counter is a model service that answers everything with a summary, and notes which model
// was asked for.
type counter struct {
	mu    sync.Mutex
	asked []string
}

func newCounter(t *testing.T) (c *counter, url string) {
	t.Helper()
	c = &counter{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Model string }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		c.asked = append(c.asked, req.Model)
		c.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		text, _ := json.Marshal("## Goal\nnone\n## Constraints\nnone\n## Progress\nnone\n## Decisions\nnone\n## Open work\nnone\n")
		fmt.Fprintf(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":%q,\"choices\":[{\"index\":0,"+
			"\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\n", req.Model, text)
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10,"+
			"\"total_tokens\":1010}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)

	return c, server.URL + "/v1"
}

// models are those that were asked for so far, in order.
func (c *counter) models() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// Summaries, the heartbeat and sub-agents call the models that the settings route them to, a
// conversation its own. What each cost is shown by purpose and by model, and agents show the
// model that answers for them.
func TestRoutingGivesKindsOfCallsModelsOfTheirOwn(t *testing.T) {
	t.Parallel()
	big, bigURL := newCounter(t)
	small, smallURL := newCounter(t)
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, home, config.Name), fmt.Sprintf(`
providers:
  - { id: big, type: openai, baseURL: %q, model: big-model }
  - { id: small, type: openai, baseURL: %q, model: small-model }
models:
  - { id: big-model, price: { input: 10, output: 10 } }
  - { id: small-model, price: { input: 1, output: 1 } }
  - { id: tiny-model, price: { input: 0.1, output: 0.1 } }
routing: { summary: small, heartbeat: small/tiny-model, subagent: small-model }
agents: { emergencyContextLimit: 20000 }
log: { level: error }
`, bigURL, smallURL))
	root := startRuntime(t, workspace)
	client, err := control.Dial(root)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ann, err := client.Create(ctx, control.NewAgent{Name: "Ann"})
	if err != nil {
		t.Fatal(err)
	}
	asked := func(c *counter, model string, n int) {
		t.Helper()
		waitFor(t, fmt.Sprintf("%d calls of %s", n, model), func() bool {
			all := c.models()
			return len(all) == n && all[n-1] == model
		})
	}
	for i := range 3 {
		if _, err := client.Send(ctx, ann.ID, control.Message{Text: strings.Repeat("word ", 1000)}); err != nil {
			t.Fatal(err)
		}
		asked(big, "big-model", i+1)
	}
	if _, err := client.Compact(ctx, ann.ID); err != nil {
		t.Fatal(err)
	}
	asked(small, "small-model", 1)
	if _, err := client.Schedule().AddPrompt(ctx, control.PromptChange{Title: "mail", Prompt: "look at the mail"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Schedule().RunHeartbeat(ctx); err != nil {
		t.Fatal(err)
	}
	asked(small, "tiny-model", 2)
	if _, err := client.Create(ctx, control.NewAgent{Type: "subagent", Parent: ann.ID, Name: "helper", Prompt: "help"}); err != nil {
		t.Fatal(err)
	}
	asked(small, "small-model", 3)

	run := func(args ...string) string {
		var out strings.Builder
		if code := execute(append([]string{"--workspace", workspace}, args...), strings.NewReader(""), &out, &out); code != fault.ExitOK {
			t.Errorf("%v: exit code %d: %s", args, code, out.String())
		}
		return out.String()
	}
	var bill control.Bill
	waitFor(t, "the bill", func() bool {
		return json.Unmarshal([]byte(run("cost", "--by", "purpose", "--json")), &bill) == nil && len(bill.Rows) >= 4 &&
			bill.Total.Calls >= 6
	})
	cost := map[string]float64{}
	for _, row := range bill.Rows {
		cost[row.Key] = row.Cost / float64(row.Calls)
	}
	for purpose, want := range map[string]float64{"conversation": 0.0101, "summary": 0.00101, "heartbeat": 0.000101, "subagent": 0.00101} {
		if got := cost[purpose]; got < want*0.99 || got > want*1.01 {
			t.Errorf("a call for %s cost $%.6f, want $%.6f: %+v", purpose, got, want, cost)
		}
	}
	if said := run("cost", "--by", "model"); !strings.Contains(said, "tiny-model") || !strings.Contains(said, "big-model") {
		t.Errorf("by model: %s", said)
	}
	agents, err := client.Agents(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range agents {
		want := map[string]string{"user": "big-model", "heartbeat": "tiny-model", "subagent": "small-model"}[a.Type]
		if a.Model != want {
			t.Errorf("agent %s of type %s shows the model %q, want %q", a.Handle, a.Type, a.Model, want)
		}
	}
}

// A route that leads nowhere is an error with its place, and what may have been meant; a
// running daemon keeps the last good settings.
func TestARouteThatLeadsNowhereIsReported(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	path := filepath.Join(workspace, home, config.Name)
	settings := func(routing string) string {
		return "providers:\n  - { id: claude, type: anthropic }\nrouting:\n  summary: " + routing + "\nlog: { level: error }\n"
	}
	run := func(args ...string) (int, string) {
		var out strings.Builder
		code := execute(append([]string{"--workspace", workspace}, args...), strings.NewReader(""), &out, &out)
		return code, out.String()
	}
	for routing, want := range map[string][]string{
		"cluade":                  {"settings.yaml:4:12", "routing.summary", `did you mean "claude"?`},
		"claude/claude-hiku-4-5":  {"settings.yaml:4:12", "routing.summary", "claude-haiku-4-5"},
		"somebody/claude-haiku-4": {"settings.yaml:4:12", "no provider has that id or model"},
	} {
		write(t, path, settings(routing))
		code, said := run("start")
		for _, part := range want {
			if code == fault.ExitOK || !strings.Contains(said, part) {
				t.Errorf("%s: start ended with %d and no %q: %s", routing, code, part, said)
			}
		}
	}

	write(t, path, settings("claude/claude-hiku-4-5"))
	if _, said := run("doctor"); !strings.Contains(said, "settings.yaml:4") || !strings.Contains(said, "routing.summary") {
		t.Errorf("doctor: %s", said)
	}
	write(t, path, settings("claude"))
	startRuntime(t, workspace)
	write(t, path, settings("claude/claude-hiku-4-5"))
	if code, said := run("reload"); code == fault.ExitOK || !strings.Contains(said, "settings.yaml:4:12") {
		t.Errorf("reload: exit code %d: %s", code, said)
	}
	if code, said := run("config", "set", "routing.heartbeat", "cluade"); code == fault.ExitOK || !strings.Contains(said, "did you mean") {
		t.Errorf("config set: exit code %d: %s", code, said)
	}
}
