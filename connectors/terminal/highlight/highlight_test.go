package highlight

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// names are all names of languages that there are tables for.
var names = strings.Fields("go js ts python sh json yaml toml sql rust c java html xml css markdown")

// spelled is a text with its comments, strings, numbers and keywords in brackets of their own.
func spelled(t *testing.T, language, text string) string {
	t.Helper()
	l := Named(language)
	if l == nil {
		t.Fatalf("%s is not known", language)
	}
	var state State
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		var spans []Span
		spans, state = l.Line(line, state)
		out := ""
		for _, s := range spans {
			marks := [...]string{"", "#", `"`, "0", "*"}
			out += marks[s.Kind] + line[:s.Len] + marks[s.Kind]
			line = line[s.Len:]
		}
		lines = append(lines, out+line)
	}
	return strings.Join(lines, "\n")
}

func TestLanguages(t *testing.T) {
	for _, c := range []struct{ language, text, want string }{
		{"go", "func f(n int) { return \"a\\\"b\" + `x\ny` } // 1 /* */",
			"*func* f(n *int*) { *return* \"\"a\\\"b\"\" + \"`x\"\n\"y`\" } #// 1 /* */#"},
		{"go", "x1 := 0x1F + 2.5 /* a\nb */ var", "x1 := 00x1F0 + 02.50 #/* a#\n#b */# *var*"},
		{"ts", "const a: string = `b ${c}\nd`", "*const* a: *string* = \"`b ${c}\"\n\"d`\""},
		{"python", "def f():\n  '''doc\n  for'''\n  return 'it' # 3",
			"*def* f():\n  \"'''doc\"\n\"  for'''\"\n  *return* \"'it'\" ## 3#"},
		{"sh", "echo a#b 'x y' # no", "*echo* a#b \"'x y'\" ## no#"},
		{"json", `{"a": [1, -2.5, "b"], "c":true}`, `{*"a"*: [010, -02.50, ""b""], *"c"*:*true*}`},
		{"yaml", "a-b: don't # c\n- d: 'e' 5\n[x]", "*a-b*: don't ## c#\n- *d*: \"'e'\" 050\n*[x]*"},
		{"sql", "SELECT a FROM b WHERE c='d' -- e", "*SELECT* a *FROM* b *WHERE* c=\"'d'\" #-- e#"},
		{"rust", "fn f<'a>(x: &'a str) -> char { 'x' }", "*fn* f<'a>(x: &'a *str*) -> *char* { \"'x'\" }"},
		{"c", "#include <a.h>\nchar *s = \"b\"; /* c */", "#*include* <a.h>\n*char* *s = \"\"b\"\"; #/* c */#"},
		{"css", "a { color: #fff; /* b */ }", "a { *color*: #fff; #/* b */# }"},
		{"html", `<!-- a --><p class="b">it's for 5</p>`, `#<!-- a -->#<*p* class=""b"">it's for 5</*p*>`},
		{"markdown", "# a\nb `c` 1\n> d\n```\nif\n```", "*# a*\nb \"`c`\" 1\n#> d#\n\"```\"\n\"if\"\n\"```\""},
	} {
		if diff := cmp.Diff(c.want, spelled(t, c.language, c.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.language, diff)
		}
	}
}

// Names are as users write them behind the marks of a code block; other words are no language.
func TestNames(t *testing.T) {
	for _, name := range append(names, "Go", "{.python}", "BASH", "tsx", "yml") {
		if Named(name) == nil {
			t.Errorf("%q is not known", name)
		}
	}
	for _, name := range []string{"", "text", "nonsense", "go go"} {
		if Named(name) != nil {
			t.Errorf("%q is a language", name)
		}
	}
}

// Nothing is built before it is asked for.
func TestNothingIsBuiltAtTheStart(t *testing.T) {
	Named("rust")
	known.Delete("rust")
	if n := testing.AllocsPerRun(1, func() { known.Delete("rust"); Named("rust") }); n < 10 {
		t.Errorf("the table of a language is made with %.0f allocations: it was there before", n)
	}
	n := testing.AllocsPerRun(100, func() { Named("rust") })
	t.Logf("a language that is known: %.0f allocations", n)
	if n > 2 {
		t.Errorf("a language is built again: %.0f allocations", n)
	}
}

// Whatever a text is: its parts are all of it, and none begins within a character.
func FuzzLine(f *testing.F) {
	f.Add("func f() { return \"a\" } // é 漢", 0)
	f.Add("<a b='c'>\n<!-- \xff -->", 12)
	f.Add("a: \"1️⃣\": # x\n'''\n```", 6)
	f.Fuzz(func(t *testing.T, text string, n int) {
		l := Named(names[max(n, 0)%len(names)])
		var state State
		for line := range strings.SplitSeq(text, "\n") {
			var spans []Span
			spans, state = l.Line(line, state)
			at := 0
			for _, s := range spans {
				if s.Len <= 0 || int(s.Kind) >= Kinds {
					t.Fatalf("%q has the part %+v", line, s)
				}
				at += s.Len
				if at < len(line) && line[at] >= 0x80 && line[at] < 0xc0 && strings.ToValidUTF8(line, "") == line {
					t.Fatalf("%q has a part that ends within a character, at %d", line, at)
				}
			}
			if at != len(line) {
				t.Fatalf("the parts of %q are %d bytes of %d", line, at, len(line))
			}
		}
	})
}
