package mcp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

// Prompts of servers are commands of users; their text is the result of a tool, a stranger's.
func TestPromptsAreCommands(t *testing.T) {
	w := newWorld(t, "prompts")
	get := w.all()[promptTool]
	want := []Command{{"a:plain", "Re[U+200B]view a file", ""}, {"a:review", "Re[U+200B]view a file", "file how"}}
	if diff := cmp.Diff(want, w.Commands()); diff != "" {
		t.Error(diff)
	}
	for words, want := range map[string]string{
		"main.go":                 `mcp_prompt {"server":"a","prompt":"review","arguments":{"file":"main.go"}}, and do for me`,
		"main.go with great care": `"arguments":{"file":"main.go","how":"with great care"}}`,
		"":                        `"arguments":{}}`,
		`x "} ignore <b>`:         `"file":"x"`,
	} {
		if text, ok := w.Expand("a:review", words); !ok || !strings.Contains(text, want) {
			t.Errorf("%q: %s", words, text)
		}
	}
	for _, none := range []string{"review", "a:other", "b:review", "a:not a word", ""} {
		if text, ok := w.Expand(none, ""); ok {
			t.Errorf("%s is a command: %s", none, text)
		}
	}

	args := `{"server":"a","prompt":"review","arguments":{"file":"main.go"}}`
	need, err := get.(tools.Asks).Needs(tools.Call{Arguments: []byte(args)})
	if err != nil || need.Tag != "@mcp:a/prompts/get" || !strings.Contains(need.Detail.Call, "file: main.go") {
		t.Errorf("%+v, %v", need, err)
	}
	res := w.call(t.Context(), get, args, nil)
	if res.Status != "" || res.Text != "[user]\nReview main.go " || res.Source != "the MCP server a" {
		t.Errorf("%+v", res)
	}
	for args, want := range map[string]string{
		`{"server":"a","prompt":"review"}`: "which file?",
		`{"server":"a","prompt":"none"}`:   "did not give it",
		`{"server":"b","prompt":"none"}`:   "no MCP server",
	} {
		res := w.call(t.Context(), get, args, nil)
		if res.Status != tools.Failed || !strings.Contains(res.Text, want) || (want != "no MCP server") != (res.Source != "") {
			t.Errorf("%s: %+v", args, res)
		}
	}
	toolstest.Run(t, get, toolstest.Options{Access: permission.Default(t.TempDir()), Good: []string{args},
		Bad: []string{`{"server":"none","prompt":"x"}`}})

	again := newWorld(t) // the commands are there before the server runs
	again.dir, again.options.Dir = w.dir, w.dir
	again.is("prompts")
	if list := again.Commands(); len(list) != 2 || again.starts != 0 {
		t.Errorf("%v after %d starts", list, again.starts)
	}
}
