package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/tools"
)

// TestFirstTry holds the tools against the conversation with which the offline
// model is tested: it reads what they print, so a change here is a change there.
func TestFirstTry(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the conversation was recorded where upper and lower case differ in file names")
	}
	data, err := os.ReadFile("../../agents/providers/scripted/testdata/firsttry.json")
	if err != nil {
		t.Fatal(err)
	}
	var turns []struct {
		Calls []struct {
			Tool      string
			Arguments map[string]any
			Result    string
			IsError   bool
		}
	}
	if err := json.Unmarshal(data, &turns); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.file("README.md", "# Daycare\n\nRuns agents *for long*.\n\n## Install\n\ngo install .\n")
	w.file("cmd/main.go", "package main\n\n// TODO: more\nfunc main() {}\n")
	w.file(".daycare/secrets", "no")
	for _, turn := range turns {
		for _, c := range turn.Calls {
			if c.Tool == "exec" {
				continue
			}
			res := w.call(c.Tool, c.Arguments)
			got := strings.ReplaceAll(res.Text, filepath.Dir(w.ws), "/TOP")
			if diff := cmp.Diff(c.Result, got); diff != "" {
				t.Errorf("%s %v (-recorded +now):\n%s", c.Tool, c.Arguments, diff)
			}
			if isError := res.Status != "" && res.Status != tools.OK; isError != c.IsError {
				t.Errorf("%s %v: status %q", c.Tool, c.Arguments, res.Status)
			}
		}
	}
}

// What a model is told of the tools is sent with every call of it.
func TestSpecsAreShort(t *testing.T) {
	n := 0
	for _, tool := range New(Options{}) {
		s := tool.Spec()
		n += len(s.Name) + len(s.Description) + len(s.Schema)
	}
	if n/4 > 600 {
		t.Errorf("the tools' descriptions cost about %d tokens; allowed are 600", n/4)
	}
}
