package scripted

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/agents/providers"
	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/files"
	"daycare/tools/shell"
)

// TestFirstTry leads a whole first conversation with the real tools: what the
// tools print and what the offline model reads must fit together.
func TestFirstTry(t *testing.T) {
	ws := t.TempDir()
	for name, content := range map[string]string{
		"README.md":        "# Daycare\n\nRuns agents *for long*.\n\n## Install\n\ngo install .\n",
		"cmd/main.go":      "package main\n\n// TODO: more\nfunc main() {}\n",
		".daycare/secrets": "no",
	} {
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, err := tools.NewSet(append(files.New(files.Options{Data: filepath.Join(ws, ".daycare"), Home: t.TempDir()}), shell.New(shell.Options{Mode: shell.Off})...)...)
	if err != nil {
		t.Fatal(err)
	}
	c := newTalk(t, Options{})
	for _, tc := range []struct{ said, want string }{
		{"hello", "Hello! I am daycare's offline model"},
		{"what is in README.md?", "`README.md` has 7 lines. Its first heading is “Daycare”. It begins:\n\n> Runs agents *for long*."},
		{"read the readme", "`README.md`:\n\n```\n# Daycare\n"},
		{"what does README.md say about install?", "5: ## Install\n7: go install ."},
		{"list files", "In `.`:\n\n```\nREADME.md  61 B\ncmd/\n```"},
		{"show cmd", "In `cmd`:\n\n```\nmain.go  "},
		{"find *.go", "```\ncmd/main.go\n```"},
		{"search for TODO in cmd", "cmd/main.go:3: // TODO: more"},
		{"search for nonsense", "I find no line with `nonsense`."},
		{"write 'one two' to notes.txt", "Done: created notes.txt (1 line, 8 B)"},
		{"replace one with three in notes.txt", "Done: changed line 1 of notes.txt"},
		{"read notes.txt", "three two"},
		{"replace five with six in notes.txt", "That did not work: old is not in notes.txt."},
		{"run cat notes.txt | tr a-z A-Z", "`cat notes.txt | tr a-z A-Z` gave:\n\n```\nTHREE TWO\n[exit code 0]\n```"},
		{"run exit 3", "[exit code 3]"},
		{"read ../x", "outside the folders you may use"},
		{"read .daycare/secrets", "never open to agents"},
		{"read missing.txt", "There is no file `missing.txt`"},
		{"tell me a joke", "I cannot answer that offline."},
	} {
		c.person(tc.said)
		text, calls := c.answer()
		for rounds := 0; len(calls) > 0; rounds++ {
			if rounds > 5 {
				t.Fatalf("%q: no end of calls: %v", tc.said, calls)
			}
			c.results(runAll(t, set, ws, callsOf(c.req.Messages[len(c.req.Messages)-1]))...)
			text, calls = c.answer()
		}
		t.Logf("> %s\n%s", tc.said, text)
		if !strings.Contains(text, tc.want) {
			t.Errorf("%q\n got %s\nwant %s", tc.said, text, tc.want)
		}
	}
}

func runAll(t *testing.T, set *tools.Set, ws string, calls []providers.Call) []providers.Result {
	t.Helper()
	var results []providers.Result
	for _, c := range calls {
		if err := set.Validate(c.Name, c.Arguments); err != nil {
			t.Fatalf("the model made a call that does not fit: %v", err)
		}
		tool, _, _ := set.Get(c.Name)
		res, err := tool.Run(t.Context(), tools.Call{ID: c.ID, Name: c.Name, Arguments: json.RawMessage(c.Arguments),
			Access: permission.Default(ws), Progress: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, providers.Result{Text: res.Text, IsError: res.Status != "" && res.Status != tools.OK})
	}
	return results
}

// What a model is told of the tools is sent with every call of it.
func TestToolSpecsAreShort(t *testing.T) {
	n := 0
	for _, tool := range append(files.New(files.Options{}), shell.New(shell.Options{})...) {
		s := tool.Spec()
		n += len(s.Name) + len(s.Description) + len(s.Schema)
	}
	t.Logf("%d characters, about %d tokens", n, n/4)
	if n/4 > 900 {
		t.Errorf("the tools' descriptions cost about %d tokens; allowed are 900", n/4)
	}
}
