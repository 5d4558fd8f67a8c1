package daemon

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"daycare/engine/control"
	"daycare/engine/control/openapi"
)

// described is the OpenAPI document, as far as answers need it.
type described struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Ref     string `json:"$ref"`
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct {
		Schemas map[string]map[string]any
	}
	resolved map[string]*jsonschema.Resolved // by the text of the schema: it takes longer than all else
}

// validate holds the answer of a route against the document.
func (d described) validate(t *testing.T, method, path string, status int, answer []byte) {
	t.Helper()
	r, ok := d.Paths[path][strings.ToLower(method)].Responses[strconv.Itoa(status)]
	schema := r.Content["application/json"].Schema
	if ok && schema == nil && len(r.Content) > 0 {
		return // text or an archive, whose form is not described
	}
	if status >= http.StatusBadRequest {
		ok, schema = true, json.RawMessage(`{"$ref":"#/$defs/ErrorBody"}`)
	}
	if !ok || schema == nil {
		t.Errorf("%s %s: the document has no answer with status %d in JSON: %s", method, path, status, answer)
		return
	}
	var v any
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, answer)
	}
	if err := d.resolve(t, schema).Validate(v); err != nil {
		t.Errorf("%s %s: %d %s is not what the document says: %v", method, path, status, answer, err)
	}
}

// resolve makes a schema of the document ready to validate, in which what is not described is wrong.
func (d described) resolve(t *testing.T, schema json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	if known := d.resolved[string(schema)]; known != nil {
		return known
	}
	for _, component := range d.Components.Schemas {
		if component["properties"] != nil {
			component["additionalProperties"] = false // what is not described shall be found
		}
	}
	whole, err := json.Marshal(map[string]any{"allOf": []json.RawMessage{schema}, "$defs": d.Components.Schemas})
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(whole), "#/components/schemas/", "#/$defs/")), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	d.resolved[string(schema)] = resolved

	return resolved
}

// A question is a request, the route that it is of, and the status of its answer.
type question struct {
	status              int
	method, path, route string
	body                string
}

const agent = "/v1/agents/{id}"

// questions are asked one after the other, once there is an agent Ann.
var questions = []question{
	{200, "GET", "/v1/status", "/v1/status", ""},
	{200, "GET", "/v1/config", "/v1/config", ""},
	{200, "GET", "/v1/tools", "/v1/tools", ""},
	{200, "GET", "/v1/providers", "/v1/providers", ""},
	{200, "GET", "/v1/commands", "/v1/commands", ""},
	{404, "POST", "/v1/commands/none", "/v1/commands/{name}", `{"arguments":"a"}`},
	{200, "GET", "/v1/backup", "/v1/backup", ""},
	{200, "GET", "/v1/subagents", "/v1/subagents", ""},
	{200, "GET", "/v1/skills", "/v1/skills", ""},
	{200, "GET", "/v1/hooks", "/v1/hooks", ""},
	{200, "POST", "/v1/hooks/test", "/v1/hooks/test", `{"event":"before_tool","tool":"exec"}`},
	{422, "POST", "/v1/hooks/test", "/v1/hooks/test", `{"event":"never"}`},
	{200, "GET", "/v1/models", "/v1/models", ""},
	{200, "GET", "/v1/cost", "/v1/cost", ""},
	{200, "GET", "/v1/cost?by=day,model", "/v1/cost", ""},
	{200, "GET", "/v1/budgets", "/v1/budgets", ""},
	{200, "GET", "/v1/session", "/v1/session", ""},
	{422, "DELETE", "/v1/session", "/v1/session", ""},
	{200, "GET", "/v1/sessions", "/v1/sessions", ""},
	{404, "DELETE", "/v1/sessions/web-none", "/v1/sessions/{session}", ""},
	{200, "POST", "/v1/web", "/v1/web", ""},
	{403, "POST", "/v1/session", "/v1/session", `{"token":"x"}`}, // not on the socket
	// What the commands know is given to the daemon by the program that starts it.
	{404, "GET", "/v1/why/x", "/v1/why/{ref}", ""},
	{404, "GET", "/v1/doctor", "/v1/doctor", ""},
	{404, "POST", "/v1/doctor/fix", "/v1/doctor/fix", ""},
	{404, "POST", "/v1/validate", "/v1/validate", "{}"},
	{404, "GET", "/v1/schema/task", "/v1/schema/{name}", ""},
	{404, "GET", "/v1/logs", "/v1/logs", ""},
	{404, "GET", "/v1/files", "/v1/files", ""},
	{404, "POST", "/v1/connectors/x/test", "/v1/connectors/{name}/test", ""},
	{404, "POST", "/v1/providers/x/test", "/v1/providers/{name}/test", ""},
	{404, "GET", "/v1/files/SOUL.md", "/v1/files/{name}", ""},
	{404, "PUT", "/v1/files/SOUL.md", "/v1/files/{name}", "x"},
	{404, "GET", "/v1/attachments/none", "/v1/attachments/{file}", ""},
	{200, "GET", "/v1/agents/Ann/export", agent + "/export", ""},
	{404, "GET", "/v1/agents/Ann/context", agent + "/context", ""},
	{200, "GET", "/v1/agents", "/v1/agents", ""},
	{200, "GET", "/v1/trash", "/v1/trash", ""},
	{200, "GET", "/v1/permissions", "/v1/permissions", ""},
	{200, "GET", "/v1/cron", "/v1/cron", ""},
	{200, "GET", "/v1/heartbeats", "/v1/heartbeats", ""},
	{200, "GET", "/v1/runs", "/v1/runs", ""},
	{200, "GET", "/v1/heartbeats/runs", "/v1/heartbeats/runs", ""},
	{200, "GET", "/v1/agents/Ann", agent, ""},
	{200, "GET", "/v1/agents/Ann/history", agent + "/history", ""},
	{200, "GET", "/v1/agents/Ann/draft", agent + "/draft", ""},
	{200, "GET", "/v1/agents/Ann/inbox", agent + "/inbox", ""},
	{200, "GET", "/v1/agents/Ann/grants", agent + "/grants", ""},
	{200, "GET", "/v1/agents/Ann/why?what=ls", agent + "/why", ""},
	{202, "POST", "/v1/agents/Ann/mark", agent + "/mark", `{"name":"here"}`},
	{201, "POST", "/v1/agents/Ann/fork", agent + "/fork", `{"name":"Ben"}`},
	{200, "POST", "/v1/agents/Ben/stop", agent + "/stop", ""},
	{200, "POST", "/v1/agents/Ann/model", agent + "/model", `{"model":"default"}`},
	{200, "POST", "/v1/agents/Ann/grants", agent + "/grants", `{"permission":"@web"}`},
	{200, "GET", "/v1/agents/Ann/grants", agent + "/grants", ""},
	{200, "DELETE", "/v1/agents/Ann/grants?permission=@web", agent + "/grants", ""},
	{200, "GET", "/v1/agents/Ann/files/state.json", agent + "/files/{name}", ""},
	{400, "PUT", "/v1/agents/Ann/files/state.json", agent + "/files/{name}", "{}"}, // without If-Match
	{200, "GET", "/v1/agents/Ann/undo?rewind=true", agent + "/undo", ""},
	{202, "POST", "/v1/agents/Ann/rewind", agent + "/rewind", "{}"},
	{200, "GET", "/v1/agents/Ann/undo", agent + "/undo", ""},
	{200, "POST", "/v1/agents/Ann/undo", agent + "/undo", "{}"},
	{202, "POST", "/v1/agents/Ann/compact", agent + "/compact", ""},
	{202, "POST", "/v1/agents/Ann/reset", agent + "/reset", ""},
	{201, "POST", "/v1/cron", "/v1/cron", `{"name":"look","prompt":"look","when":"every day at 9"}`},
	{200, "GET", "/v1/cron/look", "/v1/cron/{slug}", ""},
	{200, "GET", "/v1/cron", "/v1/cron", ""},
	{200, "PUT", "/v1/cron/look", "/v1/cron/{slug}", `{"enabled":false}`},
	{200, "GET", "/v1/cron/look/runs", "/v1/cron/{slug}/runs", ""},
	{200, "DELETE", "/v1/cron/look", "/v1/cron/{slug}", ""},
	{201, "POST", "/v1/cron", "/v1/cron", `{"name":"once","prompt":"look","when":"every day at 9"}`},
	{202, "POST", "/v1/cron/once/run", "/v1/cron/{slug}/run", ""},
	{201, "POST", "/v1/heartbeats", "/v1/heartbeats", `{"title":"mail","prompt":"look at the mail"}`},
	{202, "POST", "/v1/heartbeats/run", "/v1/heartbeats/run", ""},
	{200, "GET", "/v1/heartbeats", "/v1/heartbeats", ""},
	{200, "DELETE", "/v1/heartbeats/mail", "/v1/heartbeats/{slug}", ""},
	{200, "DELETE", "/v1/agents/Ben?force=1", agent, ""},
	{200, "GET", "/v1/trash", "/v1/trash", ""},
	{200, "POST", "/v1/trash/Ben/restore", "/v1/trash/{name}/restore", ""},
	{200, "POST", "/v1/reload", "/v1/reload", ""},
	{404, "GET", "/v1/agents/nobody", agent, ""},
	{422, "POST", "/v1/agents", "/v1/agents", `{"type":"cron"}`},
	{400, "GET", "/v1/agents/Ann/history?limit=0", agent + "/history", ""},
	{200, "GET", "/v1/pairings", "/v1/pairings", ""},
	{404, "POST", "/v1/pairings/AAAA2222", "/v1/pairings/{code}", `{"decision":"approve"}`},
	{422, "POST", "/v1/pairings/AAAA2222", "/v1/pairings/{code}", `{"decision":"maybe"}`},
	{404, "POST", "/v1/permissions/none", "/v1/permissions/{token}", `{"decision":"once"}`},
	{404, "DELETE", "/v1/agents/Ann/inbox/none", agent + "/inbox/{item}", ""},
	{404, "POST", "/v1/agents/Ann/inbox/none/front", agent + "/inbox/{item}/front", ""},
	{404, "GET", "/v1/agents/Ann/items/none", agent + "/items/{item}", ""},
	{404, "GET", "/v1/agents/Ann/items/none/events", agent + "/items/{item}/events", ""},
	{202, "POST", "/v1/messages", "/v1/messages", `{"text":"hello","connector":"c","channelId":"d","userId":"u"}`},
	{200, "GET", "/v1/models/Ann", "/v1/models/{model}", ""},
	{200, "POST", "/v1/chat/completions", "/v1/chat/completions", `{"model":"Ann","messages":[{"role":"user","content":"hello"}]}`},
	{200, "POST", "/v1/responses", "/v1/responses", `{"model":"openai","input":"hello"}`},
	{422, "POST", "/v1/import", "/v1/import", "no tar"},
	{400, "GET", "/v1/events?types=none", "/v1/events", ""},
	{200, "GET", "/healthz", "/healthz", ""},
	{200, "GET", "/metrics", "/metrics", ""},
	{200, "POST", "/v1/agents/Ann/kill", agent + "/kill", ""},
	{202, "POST", "/v1/shutdown", "/v1/shutdown", ""}, // the last
}

// TestAnswersAreAsTheOpenAPIDocumentSays asks a daemon that runs for one answer after the other and
// holds each against the document, also the errors.
func TestAnswersAreAsTheOpenAPIDocumentSays(t *testing.T) {
	data, err := openapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	d := described{resolved: map[string]*jsonschema.Resolved{}}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), "steps:\n- when: {any: true}\n  reply: {text: done}\n")
	write(t, filepath.Join(dir, ".daycare", "settings.yaml"),
		"providers:\n- {id: s, type: scripted, path: rules.yaml}\nheartbeat: {every: 1h}\nconnectors:\n"+
			"- {id: openai, type: openai}\n")
	h := started(t, dir).handler
	asked := map[string]bool{}
	ask := func(q question) {
		d.ask(t, h, q)
		asked[q.method+" "+q.route] = true
	}
	ask(question{201, "POST", "/v1/agents", "/v1/agents", `{"name":"Ann"}`})
	ask(question{202, "POST", "/v1/agents/Ann/messages", agent + "/messages", `{"text":"hello"}`})
	client := control.NewClient(control.Local(h))
	waitFor(t, "the answer", func() bool {
		a, err := client.Agent(t.Context(), "Ann")
		return err == nil && a.State == "idle" && a.LastAt != nil
	})
	for _, q := range questions {
		ask(q)
	}
	for _, o := range control.Operations() {
		if !asked[o.Pattern()] {
			t.Errorf("%s was not asked", o.Pattern())
		}
	}
	t.Logf("%d routes were asked", len(asked))
}

// ask makes a request and holds the answer against the document.
func (d described) ask(t *testing.T, h http.Handler, q question) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), q.method, "http://daycare"+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: control.Local(h)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != q.status {
		t.Errorf("%s %s: %d %s, %v; want %d", q.method, q.path, resp.StatusCode, answer, err, q.status)
		return
	}
	d.validate(t, q.method, q.route, q.status, answer)
}
