package markdown

import (
	"fmt"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"daycare/connectors/terminal/theme"
)

// longCode is about 100 KB of Go in a code block that is open, as a model writes it.
func longCode() string {
	var b strings.Builder
	b.WriteString("Here it is:\n\n```go\n")
	for i := 0; b.Len() < 100<<10; i++ {
		fmt.Fprintf(&b, "// f%d adds %d to n.\nfunc f%d(n int) int {\n\treturn n + %d // \"a string\"\n}\n\n", i, i, i, i)
	}
	return b.String()
}

// Comments, strings, numbers and keywords of a code block have colours, other text has that of
// code, and a block without a language is as it was.
func TestCodeHasTheColoursOfItsLanguage(t *testing.T) {
	th := theme.New(theme.Terminal{Dark: true})
	r := New(th)
	const line = `if x == 1 { f("a") } // b`
	var want strings.Builder
	for _, part := range []struct {
		style lipgloss.Style
		text  string
	}{{th.Syntax.Keyword, "if"}, {th.CodeBlock, " x == "}, {th.Syntax.Number, "1"}, {th.CodeBlock, " { f("},
		{th.Syntax.String, `"a"`}, {th.CodeBlock, ") } "}, {th.Syntax.Comment, "// b"}} {
		want.WriteString(part.style.Render(part.text))
	}
	if diff := cmp.Diff([]string{want.String()}, r.Code(line, "go", 80)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, language := range []string{"", "text", "nonsense"} {
		if diff := cmp.Diff([]string{th.CodeBlock.Render(line)}, r.Code(line, language, 80)); diff != "" {
			t.Errorf("as %q (-want +got):\n%s", language, diff)
		}
	}
	added := r.Code("@@ -1 +1 @@\n+if x {", "diff", 80)
	if diff := cmp.Diff([]string{th.Hunk.Render("@@ -1 +1 @@"), th.Added.Render("+if x {")}, added); diff != "" {
		t.Errorf("a diff (-want +got):\n%s", diff)
	}
}

func TestIsDiff(t *testing.T) {
	for text, want := range map[string]bool{
		"--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y":       true,
		"diff --git a/x b/x\nindex 1..2":          true,
		"write /etc/hosts:\n@@ -1,2 +1,3 @@\n a":  true,
		"@@ -7 +7 @@\n-a\n+b":                     true,
		"- a list\n+ of changes":                  false,
		"mail @@ home":                            false,
		"total 4\n-rw-r--r-- 1 ada ada 0 a.patch": false,
	} {
		if got := IsDiff(text); got != want {
			t.Errorf("IsDiff(%q) = %v", text, got)
		}
	}
}

// However a code block comes in, each frame of it is what it would be at once.
func TestAStreamedCodeBlockIsThatOfTheWholeText(t *testing.T) {
	text := "Some *words*:\n```go\nfunc f() {\n\n\tg(`a\nb`, 1)\n}\n\n\n/* c\n```\nmore\n\n~~~~\n```\n~~~~  \n```python\n```\n" +
		"- a list\n- of two\n```sh\necho a\r\n   ```\nand the end: " + strings.Repeat("wide ", 20) + "\n```json\n{\"" +
		strings.Repeat("long", 40) + "\": 1}\n"
	r := New(theme.New(theme.Terminal{Dark: true}))
	s := Stream{Margin: "  "}
	for n := 1; n <= len(text); n++ {
		line := text[strings.LastIndexByte(text[:n], '\n')+1 : n]
		if strings.Trim(line, "`~ \r") == "" && line != "" || strings.HasSuffix(line, "\r") {
			continue // half of a mark or of the end of a line means something else
		}
		if diff := cmp.Diff(prefix("  ", r.Lines(text[:n], 40)), s.Lines(r, text[:n], 40)); diff != "" {
			t.Fatalf("after %q (-at once +streamed):\n%s", text[:n], diff)
		}
	}
}

// A code block that streams in costs no more per line at its end than at its beginning.
func TestAStreamedCodeBlockIsCheap(t *testing.T) {
	text := longCode()
	r := New(theme.New(theme.Terminal{Dark: true}))
	var s Stream
	whole := allocations(func() { s.Lines(r, text, 80) })
	const pieces = 50
	more := allocations(func() {
		for range pieces {
			text += "\tmore(\"of it\") // 1\n"
			s.Lines(r, text, 80)
		}
	})
	t.Logf("%d KB of code make %d allocations, %d lines more of it %d", len(text)>>10, whole, pieces, more)
	if more > whole/10 {
		t.Errorf("%d lines more of %d KB make %d allocations, all of it %d", pieces, len(text)>>10, more, whole)
	}
}

// Colours are not text: what is copied is what was written.
func FuzzCode(f *testing.F) {
	f.Add("func f() { return \"a\" } // é 漢\n\tx\n", "go", 12)
	f.Add("<a b='c'>\n<!-- 👩‍👩‍👧 -->", "html", 40)
	f.Add("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y", "diff", 3)
	r := New(theme.New(theme.Terminal{Dark: true}))
	f.Fuzz(func(t *testing.T, source, language string, width int) {
		source = Clean(source)
		if width < 1 || width > 200 || len(source) > 4<<10 {
			t.Skip()
		}
		plain := r.Code(source, "", width)
		got := r.Code(source, language, width)
		for i := range got {
			got[i] = ansi.Strip(got[i])
		}
		for i := range plain {
			plain[i] = ansi.Strip(plain[i])
		}
		if diff := cmp.Diff(plain, got); diff != "" {
			t.Fatalf("as %q (-plain +coloured):\n%s", language, diff)
		}
		if width > 20 && !strings.Contains(source, "\t") && strings.ReplaceAll(strings.Join(plain, ""), "↪ ", "") !=
			strings.ReplaceAll(strings.ReplaceAll(source, "\n", ""), "↪ ", "") {
			t.Fatalf("%q is set as %q", source, plain)
		}
	})
}

// BenchmarkStreamedCode streams 100 KB of code in pieces of 32 bytes, each set as a frame.
func BenchmarkStreamedCode(b *testing.B) {
	text := longCode()
	r := New(theme.New(theme.Terminal{Dark: true}))
	for b.Loop() {
		s := Stream{Margin: "  "}
		for n := 0; n < len(text); n += 32 {
			s.Lines(r, text[:n], 100)
		}
	}
}

// BenchmarkCode sets 100 KB of code at once.
func BenchmarkCode(b *testing.B) {
	text := longCode()
	r := New(theme.New(theme.Terminal{Dark: true}))
	for b.Loop() {
		r.Lines(text, 100)
	}
}
