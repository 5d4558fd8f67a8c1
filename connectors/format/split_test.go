package format

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		name    string
		text    string
		limit   int
		measure func(string) int
		want    []string
	}{
		{"empty", "", 10, nil, nil},
		{"fits", "hello", 5, nil, []string{"hello"}},
		{"paragraphs", "one two\n\nthree four", 12, nil, []string{"one two\n\n", "three four"}},
		{"lines", "one two\nthree four", 12, nil, []string{"one two\n", "three four"}},
		{"words", "one two three", 8, nil, []string{"one two ", "three"}},
		{"characters", "abcdefgh", 3, nil, []string{"abc", "def", "gh"}},
		{"a far paragraph is no place", "a\n\nbbbb bbbb bbbb", 12, nil, []string{"a\n\nbbbb ", "bbbb bbbb"}},
		{"fence", "```go\nline one\nline two\n```\n", 22, nil, []string{"```go\nline one\n```", "```go\nline two\n```\n"}},
		{"long line in a fence", "~~~\nabcdefgh\n~~~", 12, nil, []string{"~~~\nabcd\n~~~", "~~~\nefgh\n~~~"}},
		{"surrogate pairs", "😀😀😀", 4, UTF16, []string{"😀😀", "😀"}},
		{"odd limit", "😀😀😀", 3, UTF16, []string{"😀", "😀", "😀"}},
		{"entity", "abc&amp;d", 6, nil, []string{"abc", "&amp;d"}},
		{"escape", `abc\*d`, 4, nil, []string{"abc", `\*d`}},
		{"combining", "abce\u0301", 4, nil, []string{"abc", "e\u0301"}},
		{"too small for anything", "ab", 0, nil, []string{"a", "b"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Split(test.text, test.limit, test.measure)); diff != "" {
				t.Errorf("Split (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSplitLong: the time does not grow with the square of the text.
func TestSplitLong(t *testing.T) {
	text := strings.Repeat("Some words and `code`, then more.\n", 30_000) // 1 MiB
	if got := strings.Join(Split(text, 4096, UTF16), ""); got != text {
		t.Error("the parts are not the text")
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("a\n\n```go\nfunc main() {}\n```\nb &amp; c \\* 😀", 12, true)
	f.Add("~~~~\n~~~\n~~~~ x\n", 9, false)
	f.Add("\xff\xfe``` \n", 3, true)
	f.Fuzz(func(t *testing.T, text string, limit int, units bool) {
		limit = max(1, limit%200)
		measure := utf8.RuneCountInString
		if units {
			measure = UTF16
		}
		var joined strings.Builder
		for _, p := range pieces(text, limit, measure) {
			joined.WriteString(p.text)
			if p.text == "" {
				t.Fatalf("an empty piece of %q", text)
			}
			if utf8.ValidString(text) && !utf8.ValidString(p.text) {
				t.Errorf("a character of %q is cut: %q", text, p.text)
			}
			if got := measure(p.String()); got > limit && utf8.RuneCountInString(p.text) > 1 {
				t.Errorf("%q measures %d, limit %d", p, got, limit)
			}
			if (p.open != "" || p.close != "") && (fence{}).after(p.String()) != (fence{}) && p.close != "" {
				t.Errorf("the fence of %q stays open", p)
			}
		}

		if joined.String() != text {
			t.Errorf("joined = %q, want %q", joined.String(), text)
		}
	})
}

// No text is made of parts that have next to nothing of it, each with a long beginning, or each measured for a single character.
func TestPartsHaveTheirShare(t *testing.T) {
	const n = 1000
	for name, text := range map[string]string{
		"a long opening": "```" + strings.Repeat("x", 1990) + "\n" + strings.Repeat("y\n", n),
		"a long mark":    strings.Repeat("`", 990) + "\n" + strings.Repeat("y\n", n),
		"a long head":    "a|" + strings.Repeat("x", 1900) + "\n-|-\n" + strings.Repeat("a|b\n", n),
		"marks":          strings.Repeat("\u0301", 3*n),
		"escapes":        strings.Repeat(`\`, 3*n),
		"backticks":      strings.Repeat("`", 3*n),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		parts := pieces(text, 2000, func(s string) int { return UTF16(Discord(s)) })
		runtime.ReadMemStats(&after)

		var whole strings.Builder
		made := 0
		for _, p := range parts {
			whole.WriteString(p.text)
			made += len(p.String())
		}
		if whole.String() != text {
			t.Errorf("%s: the parts are not the text", name)
		}
		if len(parts) > 10 || made > 2*len(text) {
			t.Errorf("%s: %d bytes are %d parts of %d bytes", name, len(text), len(parts), made)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
			t.Errorf("%s: %d bytes take %d MB of memory", name, len(text), took>>20)
		}
	}
}
