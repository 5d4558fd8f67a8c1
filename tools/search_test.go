package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

// behind is a set with two tools that are told and some that are found.
func behind(t *testing.T) *tools.Set {
	t.Helper()
	about := func(name, description string) tools.Tool {
		s := spec(name)
		s.Description = description
		return fake{s}
	}
	list := []tools.Tool{about("read", "Read a file."), about("add_cron", "Have something done at a time."),
		about("cron_list", "List what is due."), about("edit", "Change a file."), about("agent_stop", "End an agent.")}
	for i := range 30 {
		list = append(list, about(fmt.Sprintf("mcp__files__thing_%d", i), fmt.Sprintf("Does the thing %d.", i)))
	}
	set, err := tools.NewSet(list...)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for i := range 30 {
		files = append(files, fmt.Sprintf("mcp__files__thing_%d", i))
	}
	set, err = set.Behind(tools.Family{Name: "scheduled tasks", Tools: []string{"add_cron", "cron_list", "missing"}},
		tools.Family{Name: "nothing", Tools: []string{"missing"}}, tools.Family{Name: "agents", Tools: []string{"agent_stop"}},
		tools.Family{Name: "MCP server files", Tools: files})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestWhatIsBehindASearchIsNotTold(t *testing.T) {
	set := behind(t)
	var told []string
	for s := range set.Told {
		told = append(told, s.Name)
	}
	if diff := cmp.Diff([]string{"read", "edit", tools.SearchTool, tools.CallTool}, told); diff != "" {
		t.Error(diff)
	}
	search, s, _ := set.Get(tools.SearchTool)
	if !strings.HasSuffix(s.Description, "There are tools for: scheduled tasks, agents, MCP server files") {
		t.Error(s.Description)
	}
	toolstest.Run(t, search, toolstest.Options{Access: permission.Default(t.TempDir()), Good: []string{`{"query":"x"}`, `{"query":""}`}})
	call, _, _ := set.Get(tools.CallTool)
	toolstest.Run(t, call, toolstest.Options{Access: permission.Default(t.TempDir()),
		Bad: []string{`{"tool":"none","arguments":{}}`, `{"tool":"read","arguments":{}}`}})

	// A model that calls one without having found it learns its schema from what it did wrong.
	err := set.Validate("add_cron", []byte(`{"path":1}`))
	if err == nil || !strings.Contains(err.Error(), `its arguments: {"type":"object"`) {
		t.Error(err)
	}
	if err := set.Validate("read", []byte(`{"path":1}`)); err == nil || strings.Contains(err.Error(), "its arguments") {
		t.Error(err)
	}
	if again, err := set.Behind(tools.Family{Name: "none", Tools: []string{"missing"}}); again != set || err != nil {
		t.Errorf("a set of which nothing is behind a search is another: %v", err)
	}
}

func TestSearchFindsToolsByWords(t *testing.T) {
	search, _, _ := behind(t).Get(tools.SearchTool)
	for query, want := range map[string]string{
		"schedule a daily task":   "add_cron\nHave something",
		"cron":                    "add_cron\nHave something",
		"list cron":               "cron_list\nList what",
		"stop an agent":           "agent_stop\n",
		"thing_17":                "mcp__files__thing_17\nDoes",
		"files":                   "22 more fit: mcp__files__thing_8, ",
		"":                        "scheduled tasks: add_cron, cron_list\nagents: agent_stop\nMCP server files: mcp__files__thing_0, ",
		"quantum physics":         "No tool fits. There are tools for: scheduled tasks, agents, MCP server files",
		"read":                    "No tool fits.", // it is told anyway
		`"schedule", (scheduled)`: `arguments: {"type":"object","properties":{"path"`,
	} {
		args, _ := json.Marshal(map[string]string{"query": query})
		res, err := search.Run(t.Context(), tools.Call{Arguments: args})
		if err != nil || !strings.Contains(res.Text, want) {
			t.Errorf("%q: %v\n%.300s", query, err, res.Text)
		}
		if want[0] >= 'a' && strings.Contains(want, "\n") && query != "" && !strings.HasPrefix(res.Text, want) {
			t.Errorf("%q: another tool is first\n%.300s", query, res.Text)
		}
	}
}

func TestWhatACallIsFor(t *testing.T) {
	set := behind(t)
	for args, want := range map[string]string{
		`{"tool":"cron_list","arguments":{"path":"x"}}`:       `cron_list {"path":"x"}`,
		`{"tool":"read","arguments":{"path":"x"}}`:            `read {"path":"x"}`, // not found, and called all the same
		`{"tool":"cron_list"}`:                                `cron_list {}`,
		`{"tool":"cron_list","arguments":null}`:               `cron_list {}`,
		`{"tool":"cron_list","arguments":"{\"path\":\"x\"}"}`: `cron_list {"path":"x"}`,
		`{"tool":"cron_list","arguments":"path"}`:             "",
		`{"tool":"cron_list","arguments":[1]}`:                "",
		`{"tool":"tool_call","arguments":{}}`:                 "",
		`{"tool":"none","arguments":{}}`:                      "",
		`{"tool":7}`:                                          "",
		`[]`:                                                  "",
	} {
		name, inner, ok := set.Called([]byte(args))
		if got := strings.TrimSpace(name + " " + string(inner)); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", args, got, ok)
		}
	}
}
