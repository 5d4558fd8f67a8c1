package markdown

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"daycare/connectors/terminal/theme"
	"daycare/engine/plain"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each testdata/NAME.md is set in 60 columns and compared with NAME.txt.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := ansi.Strip(strings.Join(New(theme.New(theme.Terminal{Dark: true})).Lines(string(source), 60), "\n")) + "\n"
		golden := strings.TrimSuffix(file, ".md") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatalf("%v\nrun with -update to write it", err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s differs (-want +got); if that is meant, run with -update:\n%s", file, diff)
		}
	}
}

// What a user reads in a terminal is what others read in a chat.
func TestWhatIsRead(t *testing.T) {
	r := New(theme.New(theme.Terminal{Dark: true}))
	for source, want := range map[string]string{
		`1\. \*a\* &amp; &lt;b&gt; ` + "`\\* &amp;`": `1. *a* & <b> \* &amp;`,
		"an entity &#27;[2J &#x202e;":                `an entity \x1b[2J \u202e`,
		`[a](http://b/c\_d&amp;&#27;)`:               `a http://b/c_d&\x1b`,
		"~~**a** `b`~~ <b>c</b>":                     "a b <b>c</b>",
		"a|b\n-|-\nc\nd|e|f|g": "a    │ b    │ \n─────┼──────┼─────\nc    │      │ \n" +
			"d    │ e    │ f|g",
	} {
		if got := ansi.Strip(strings.Join(r.Lines(source, 60), "\n")); got != want {
			t.Errorf("%q is read as\n%s\nwant\n%s", source, got, want)
		}
	}
}

// A style that opens on a line closes on it, so that lines can be cut and moved.
func TestStylesCloseOnTheirLine(t *testing.T) {
	for _, line := range New(theme.New(theme.Terminal{Dark: true})).Lines("**a strong text that goes on over more than "+
		"one line of it** and `code that is as long as that, too, and more`", 30) {
		if i := strings.LastIndex(line, "\x1b["); i >= 0 && !strings.HasPrefix(line[i:], "\x1b[m") &&
			!strings.HasPrefix(line[i:], "\x1b[0m") {
			t.Errorf("the line leaves a style open: %q", line)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":      "plain\ttext\n",
		"\x1b[2J\x07":        `\x1b[2J\x07`,
		"a\u202eb":           `a\u202eb`,
		"line\r\nnext\rover": "line\nnext" + `\x0dover`,
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// Whatever a model writes: no line is too wide, and nothing but styles steers the
// terminal.
func FuzzLines(f *testing.F) {
	f.Add("# a\n\n- b\n  - c\n\n| x | y |\n|---|---|\n| 1 | 2 |\n", 20)
	f.Add("> quote\n> ```go\n> code\n> ```\n\n1. one\n\n   two\n", 15)
	f.Add("[link](http://example.org) ![i](x) <b>html</b> `c` ~~s~~", 40)
	f.Add("\x1b]52;c;aGk=\x07 tabs\tand 漢字漢字漢字漢字 👩‍👩‍👧", 12)
	r := New(theme.New(theme.Terminal{}))
	f.Fuzz(func(t *testing.T, source string, width int) {
		if width < minWidth || width > 200 || len(source) > 4<<10 {
			t.Skip()
		}
		began := time.Now()
		lines := r.Lines(source, width)
		if took := time.Since(began); took > time.Minute {
			t.Fatalf("%d bytes took %s", len(source), took)
		}
		for _, line := range lines {
			for _, c := range ansi.Strip(line) {
				if c != '\t' && plain.Steers(c) {
					t.Fatalf("%q comes through in %q", c, line)
				}
			}
			if strings.ContainsAny(line, "\n\r") {
				t.Fatalf("a line break in %q", line)
			}
		}
	})
}
