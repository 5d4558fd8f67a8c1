package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"daycare/agents/prompt"
	"daycare/engine/address"
	"daycare/engine/record"
	ws "daycare/engine/workspace"
	"daycare/tools"
	"daycare/tools/mcp"
)

// withServer is what runs in a workspace with a server of n tools.
func withServer(t *testing.T, n int) *Daemon {
	t.Helper()
	dir := t.TempDir()
	settings := ""
	if n > 0 {
		settings = "mcp: { servers: [ { id: hub, url: \"http://127.0.0.1:1/mcp\" } ] }\n"
		var c mcp.Catalogue
		for i := range n {
			c.Tools = append(c.Tools, mcp.Define(fmt.Sprintf("update_thing_%d", i),
				"Changes a thing of the hub and returns what it is now. Fields that are left out stay as they are.",
				json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"which one"},`+
					`"title":{"type":"string"},"labels":{"type":"array","items":{"type":"string"}}},"required":["id"]}`)))
		}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		write(t, mcp.Path(filepath.Join(dir, ws.Home, MCPDir), "hub"), string(data))
	}
	write(t, filepath.Join(dir, ws.Home, "settings.yaml"), settings)
	r, err := openFiles(t.Context(), ws.At(dir), t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.close() })
	return r
}

// fixed is about how many tokens each model call of an agent begins with: characters / 4 of the
// system prompt, and of the tools as the Messages API takes them.
func fixed(t *testing.T, r *Daemon, d prompt.Definition, set *tools.Set) (system, told, n int) {
	t.Helper()
	d.Name, d.Handle, d.Workspace, d.OS = "assistant", "0/", "/home/ada/project", "linux"
	for s := range set.Told {
		data, err := json.Marshal(struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}{s.Name, s.Description, s.Schema})
		if err != nil {
			t.Fatal(err)
		}
		told, n = told+len(data)+1, n+1
	}
	return len([]rune(prompt.System(d))) / 4, told / 4, n
}

// TestFixedPartOfPrompts: what each model call begins with stays small, however many tools there
// are; docs/tools.md has the figures.
func TestFixedPartOfPrompts(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // no skills but those of the program
	var rows []string
	first := map[address.Type]int{}
	for _, n := range []int{0, 1, 10, 100} {
		r := withServer(t, n)
		sums := map[address.Type]int{}
		for _, kind := range []address.Type{address.User, address.Permanent, address.Cron, address.Heartbeat, address.Subagent} {
			meta := address.Meta{Descriptor: address.Descriptor{Type: kind}}
			system, told, count := fixed(t, r, factory{r}.define(meta, record.State{}), r.toolset.of(meta, false))
			t.Logf("%d tools of servers, %s: system prompt %d, %d tools %d tokens", n, kind, system, count, told)
			sums[kind] = system + told
			if n == 0 {
				first[kind] = sums[kind]
			}
			most := 1200
			if kind == address.User {
				most = 2200
			}
			if sums[kind] >= most {
				t.Errorf("%s with %d tools of servers: %d tokens; fewer than %d are promised", kind, n, sums[kind], most)
			}
			if n == 100 && sums[kind] > first[kind]+20 {
				t.Errorf("%s: 100 tools of servers add %d tokens", kind, sums[kind]-first[kind])
			}
		}
		rows = append(rows, fmt.Sprintf("| %d | %d | %d |\n", n, round(sums[address.User]), round(sums[address.Permanent])))
	}

	r := withServer(t, 0)
	chat := kind{Type: address.User, speaks: true, reacts: true}
	system, told, _ := fixed(t, r, factory{r}.define(address.Meta{Descriptor: address.Descriptor{Type: address.User}}, record.State{}),
		r.toolset.choose(r.toolset.all(), chat))
	if system+told >= 2200 {
		t.Errorf("an agent of a chat with reactions: %d tokens", system+told)
	}

	page, err := os.ReadFile("../../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/tools.md must say in its table:\n%s", strings.Join(rows, ""))
			break
		}
	}
}

// A sub-agent that has a tool of a server can answer what the server asks in it.
func TestADefinitionWithAToolOfAServer(t *testing.T) {
	r := withServer(t, 3)
	write(t, filepath.Join(r.at.Data, "subagents", "Updater.md"), "---\nname: Updater\ndescription: Updates things.\n"+
		"tools: [read, mcp__hub__update_thing_1]\n---\nUpdate what you are told.\n")
	var names []string
	for s := range r.toolset.of(address.Meta{Descriptor: address.Descriptor{Type: address.Subagent, Definition: "Updater"}}, false).Told {
		names = append(names, s.Name)
	}
	if want := []string{"read", "mcp__hub__update_thing_1", mcp.AnswerTool}; !slices.Equal(names, want) {
		t.Errorf("it has %v, want %v", names, want)
	}
}

func round(n int) int { return (n + 5) / 10 * 10 }
