package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/terminal.md shows what the screen shows: each frame in it is a golden frame,
// and its table of commands is the table of commands.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "terminal.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := withFrames(t, string(data))
	if want == string(data) {
		return
	}
	if !*update {
		t.Fatalf("%s does not show what the screen shows; run with -update", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	framed = regexp.MustCompile("(?s)<!-- frame ([a-z0-9-]+) -->\n(?:```text\n.*?\n```\n)?")
	listed = regexp.MustCompile("<!-- commands -->\n(?:\\|.*\n)*")
)

func withFrames(t *testing.T, text string) string {
	text = framed.ReplaceAllStringFunc(text, func(old string) string {
		name := framed.FindStringSubmatch(old)[1]
		frame, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("<!-- frame %s -->\n```text\n%s\n```\n", name, strings.TrimRight(string(frame), "\n"))
	})
	var table strings.Builder
	table.WriteString("<!-- commands -->\n| command | does |\n|---|---|\n")
	for _, c := range commands() {
		fmt.Fprintf(&table, "| `%s` | %s |\n", strings.TrimSpace("/"+c.name+" "+c.args), c.does)
	}
	return listed.ReplaceAllLiteralString(text, table.String())
}
