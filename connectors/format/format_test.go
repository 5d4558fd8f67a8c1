package format

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"daycare/connectors/telegram/telegramtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestRenderings(t *testing.T) {
	tests := []struct {
		name, source, telegram, plain, slack string
	}{
		{"styles", "**b** *i* ~~s~~ `c`", "<b>b</b> <i>i</i> <s>s</s> <code>c</code>", "b i s c", "*b* _i_ ~s~ `c`"},
		{"nested", "**b *bi* b**", "<b>b <i>bi</i> b</b>", "b bi b", "*b* *_bi_* *b*"},
		{"escapes", `a < b & "c" \* &copy; &lt;`, "a &lt; b &amp; &quot;c&quot; * © &lt;", `a < b & "c" * © <`,
			`a &lt; b &amp; "c" * © &lt;`},
		{"tags are text", "<b>x</b>\n\n<div>y</div>", "&lt;b&gt;x&lt;/b&gt;\n\n&lt;div&gt;y&lt;/div&gt;",
			"<b>x</b>\n\n<div>y</div>", "&lt;b&gt;x&lt;/b&gt;\n\n&lt;div&gt;y&lt;/div&gt;"},
		{"heading", "# T\ntext", "<b>T</b>\n\ntext", "T\n\ntext", "*T*\n\ntext"},
		{"link", "[go](https://go.dev/?a=1&b)", `<a href="https://go.dev/?a=1&amp;b">go</a>`,
			"go (https://go.dev/?a=1&b)", "<https://go.dev/?a=1&amp;b|go>"},
		{"dangerous link", "[x](javascript:alert)", "x (javascript:alert)", "x (javascript:alert)", "x (javascript:alert)"},
		{"reference", "[a]: https://a.example\n\nsee [a]", "[a]: https://a.example\n\nsee [a]",
			"[a]: https://a.example\n\nsee [a]", "[a]: https://a.example\n\nsee [a]"},
		{"fence", "```go\nif a < b {\n\t**x**\n}\n```",
			"<pre><code class=\"language-go\">if a &lt; b {\n\t**x**\n}</code></pre>", "if a < b {\n\t**x**\n}",
			"```\nif a &lt; b {\n\t**x**\n}\n```"},
		{"list", "- a\n- b\n  1. c\n  2. d\n- [x] e", "• a\n• b\n  1. c\n  2. d\n• ☑ e",
			"• a\n• b\n  1. c\n  2. d\n• ☑ e", "• a\n• b\n  1. c\n  2. d\n• ☑ e"},
		{"list with lines", "1. a\n   b\n2. c", "1. a\n   b\n2. c", "1. a\n   b\n2. c", "1. a\n   b\n2. c"},
		{"quote", "> a\n> **b**\n\nc", "<blockquote>a\n<b>b</b></blockquote>\n\nc", "> a\n> b\n\nc", "&gt; a\n&gt; *b*\n\nc"},
		{"code in a quote", "> a\n>\n> ```\n> x\n> ```", "<blockquote>a\n\n</blockquote><pre>x</pre>", "> a\n> \n> x",
			"&gt; a\n&gt; \n&gt; ```\n&gt; x\n&gt; ```"},
		{"table", "| a | b |\n|---|--:|\n| one | 2 |", "<pre>a    b\n──────\none  2</pre>", "a    b\n──────\none  2",
			"```\na    b\n──────\none  2\n```"},
		{"a heading over a table", "a\nb\n|-\n| c\n-", "<b>a</b>\n\n<pre>b\n─\nc</pre>", "a\n\nb\n─\nc", "*a*\n\n```\nb\n─\nc\n```"},
		{"too many cells", "|a|\n|-|\n|b|c|", "<pre>a\n────\nb  c</pre>", "a\n────\nb  c", "```\na\n────\nb  c\n```"},
		{"rule", "a\n\n---\n\nb", "a\n\n———\n\nb", "a\n\n———\n\nb", "a\n\n———\n\nb"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.telegram, Telegram(test.source)); diff != "" {
				t.Errorf("Telegram (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.plain, Plain(test.source)); diff != "" {
				t.Errorf("Plain (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.ReplaceAll(test.slack, "&gt; ", "> "),
				strings.ReplaceAll(Slack(test.source), "&gt; ", "> ")); diff != "" {
				t.Errorf("Slack (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMattermost: Markdown stays as it is, but for what notifies everyone and what is fetched.
func TestMattermost(t *testing.T) {
	for source, want := range map[string]string{
		"**b** | [x](https://y)\n":          "**b** | [x](https://y)",
		"@all @Here x@channel! @allen @ada": "@\u200ball @\u200bHere x@\u200bchannel! @allen @ada",
		"![x](https://y)":                   "[x](https://y)", "!![x](y)": "[x](y)", " \n": "",
	} {
		if got := Mattermost(source); got != want {
			t.Errorf("%q is shown as %q, want %q", source, got, want)
		}
	}
}

// TestDiscord: what Discord would read as markup is shown as it is, and addresses stay whole.
func TestDiscord(t *testing.T) {
	for source, want := range map[string]string{
		"**b** *i* ~~s~~ `c`": "**b** *i* ~~s~~ `c`", "# T\ntext": "**T**\n\ntext", "a \\* b_c_d \\|\\|x\\|\\|": `a \* b\_c\_d \|\|x\|\|`,
		"<@80351110224678912> @everyone": `\<@80351110224678912> @everyone`, "[go](https://go.dev/a_b)": "[go](<https://go.dev/a_b>)",
		"https://go.dev/a_b is": "https://go.dev/a_b is", "[x](javascript:alert)": "x (javascript:alert)",
		"```go\na `` b\n```": "```go\na `` b\n```", "````\n```\n````": "```\n`\u200b``\n```", "> a\n> **b**": "> a\n> **b**",
		"\\# a\n\n\\> b": "\\# a\n\n\\> b",
		"- a\n- b":       "• a\n• b",
	} {
		if got := Discord(source); got != want {
			t.Errorf("%q is shown as %q, want %q", source, got, want)
		}
	}
}

func TestWideTable(t *testing.T) {
	long := strings.Repeat("word ", 12)
	got := Telegram("| Name | About |\n|---|---|\n| one | " + long + "|\n| **two** | x |")
	want := "<b>Name</b>: one\n<b>About</b>: " + strings.TrimSpace(long) + "\n\n<b>Name</b>: <b>two</b>\n<b>About</b>: x"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Telegram (-want +got):\n%s", diff)
	}
}

// TestSignalStyles: offsets are UTF-16 units, where 😀 is two.
func TestSignalStyles(t *testing.T) {
	text, styles := Signal("😀 **b** `c`\n\n> *q*")
	if want := "😀 b c\n\n> q"; text != want {
		t.Errorf("text = %q, want %q", text, want)
	}
	want := []Style{{3, 1, "BOLD"}, {5, 1, "MONOSPACE"}, {8, 3, "ITALIC"}}
	if diff := cmp.Diff(want, styles); diff != "" {
		t.Errorf("styles (-want +got):\n%s", diff)
	}
}

// TestMailHTML: what a model writes is not a markup of ours, and no script.
func TestMailHTML(t *testing.T) {
	got := HTML("**b** <script>x</script>\n[c](javascript:x)\n\n| a |\n|---|\n| 1 |")
	for _, want := range []string{"<strong>b</strong>", "&lt;script&gt;", "<table>"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}

	for _, bad := range []string{"<script", "javascript:"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q has %q", got, bad)
		}
	}
}

// TestIndentedCode: code that begins indented, as the rest of a block does that was
// cut in two, is shown as it was written.
func TestIndentedCode(t *testing.T) {
	const source = "```go\n\n    if a {\n        b()\n    }\n```\n"
	const want = "    if a {\n        b()\n    }"
	text, styles := Signal(source)
	for name, got := range map[string]string{"plain": Plain(source), "signal": text} {
		if got != want {
			t.Errorf("%s shows %q, want %q", name, got, want)
		}
	}

	if len(styles) != 1 || styles[0] != (Style{0, len(want), "MONOSPACE"}) {
		t.Errorf("styles %+v, want one over all of it", styles)
	}
	for name, got := range map[string]string{"telegram": Telegram(source), "slack": Slack(source), "html": HTML(source)} {
		if !strings.Contains(got, "    if a {\n        b()") {
			t.Errorf("%s lost the indentation: %q", name, got)
		}
	}
}

// TestLongAnswer is what each platform shows of one long answer with tables and
// code: golden files for users to look at.
func TestLongAnswer(t *testing.T) {
	source, err := os.ReadFile("testdata/long.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len([]rune(string(source))); n < 20_000 {
		t.Errorf("the answer has %d characters, want 20,000", n)
	}

	units := func(s string) int { return Length(s, UTF16) }
	for _, platform := range []struct {
		name   string
		limit  int
		render func(string) string
	}{
		{"telegram", 4096, Telegram},
		{"slack", 3900, Slack},
		{"discord", 2000, Discord},
		{"whatsapp", 4096, WhatsApp},
		{"signal", 2000, func(s string) string { text, _ := Signal(s); return text }},
		{"plain", 4000, Plain},
		{"mail", 1 << 20, HTML},
	} {
		t.Run(platform.name, func(t *testing.T) {
			var b strings.Builder
			for i, part := range Split(string(source), platform.limit, units) {
				if n := units(part); n > platform.limit {
					t.Errorf("part %d is %d long, limit %d", i+1, n, platform.limit)
				}
				b.WriteString(platform.render(part) + "\n\n=========\n\n")
			}
			golden(t, filepath.Join("testdata", "long."+platform.name+".golden"), b.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); if it is meant: go test -update\n%s", path, diff)
	}
}

var language = regexp.MustCompile("(```|~~~).*\\S")

// words are the runs of letters in a text.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}

// inOrder finds the first word that is not in text behind those before it.
func inOrder(text string, words []string) string {
	for _, w := range words {
		i := strings.Index(text, w)
		if i < 0 {
			return w
		}
		text = text[i+len(w):]
	}

	return ""
}

// anywhere finds the first word that is not in text.
func anywhere(text string, words []string) string {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return w
		}
	}

	return ""
}

// FuzzRender: whatever the text, each rendering is valid and has all of its words.
func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"# a\n\n**b *c* d** ~~e~~ `f`\n- g\n  - h\n> i\n\n```go\nj\n```\n| k | l |\n|---|---|\n| m | n | o |\n",
		"**a\n\nb** [c](https://d.example \"e\") ![f](g) <https://h.example>", "a | b\n-|-\nc",
		"1) x\n2) y\n***\n___\n", "\\<b\\> <i>x</i>", "```\n\n", "[]()", "> > a\n> b", "    code\n\ttab", "* * *\n+ a\n\n  b",
		"a\nb\n  |-\n | c\n-||d\n-",
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, source string) {
		shown, err := telegramtest.ParseHTML(Telegram(source))
		if err != nil {
			t.Fatalf("Telegram(%q) = %q: %v", source, Telegram(source), err)
		}
		text, styles := Signal(source)
		for _, s := range styles {
			if s.Length <= 0 || s.Start < 0 || s.Start+s.Length > UTF16(text) {
				t.Errorf("Signal(%q): style %+v is outside of the text's %d units", source, s, UTF16(text))
			}
		}

		_ = HTML(source)
		if strings.ContainsAny(source, "&[") || language.MatchString(source) {
			return // entities, links and the language of a fence are shown as something else
		}

		for name, got := range map[string]string{"telegram": shown, "plain": Plain(source), "slack": Slack(source),
			"discord": Discord(source), "whatsapp": WhatsApp(source), "signal": text} {
			lost := inOrder
			if strings.Contains(source, "|") { // a wide table is shown as records, with its header in each
				lost = anywhere
			}
			if lost := lost(got, words(strings.ToValidUTF8(source, "\uFFFD"))); lost != "" {
				t.Errorf("%s of %q is %q: %q is lost", name, source, got, lost)
			}
		}
	})
}

// What Slack reads as a mention is text, in whatever place: an answer notifies nobody.
func TestSlackNotifiesNobody(t *testing.T) {
	for _, source := range []string{"<!channel> <!here|x> <!everyone>", "[x](!channel)", "[x](<!here>)", "[x](@U1)", "![x](!subteam^S1)",
		"`<!channel>`", "```\n<!channel>\n```", "> <!here>", "- <@U1>", "| <!here> |\n|---|\n| <@U1> |", "<!channel", "&lt;!channel&gt;",
		"[x](https://e.example/>%20<!channel>)", "<https://e.example|<!channel>>", "\\<!channel>", "# <!channel>"} {
		if shown := Slack(source); strings.Contains(shown, "<!") || strings.Contains(shown, "<@") {
			t.Errorf("%q is sent to Slack as %q", source, shown)
		}
	}
}

// A link of Telegram's own that names a user would notify them.
func TestTelegramLinksMentionNobody(t *testing.T) {
	for _, source := range []string{"[x](tg://user?id=5550001)", "<tg://user?id=5550001>", "[x](TG://user?id=5550001)",
		"![x](tg://user?id=5)", "<tg:user?id=5>"} {
		if shown := Telegram(source); strings.Contains(shown, "href") {
			t.Errorf("%q is sent to Telegram as %q", source, shown)
		}
	}
}
