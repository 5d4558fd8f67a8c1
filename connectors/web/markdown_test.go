package web

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

func TestMarkdown(t *testing.T) {
	for source, want := range map[string]string{
		"hello *you*, **there**":  "<p>hello <em>you</em>, <strong>there</strong></p>",
		"# one\n\ntwo":            "<h3>one</h3><p>two</p>",
		"a\nb":                    "<p>a<br>b</p>",
		"- a\n- b":                "<ul><li>a</li><li>b</li></ul>",
		"3. a\n4. b":              `<ol start="3"><li>a</li><li>b</li></ol>`,
		"```go\nif a < b {}\n```": `<pre><code data-language="go">if a &lt; b {}` + "\n</code></pre>",
		"`a<b>` &amp; \\*":        "<p><code>a&lt;b&gt;</code> &amp; *</p>",
		"a\nb\n|-|\n| c\n-":       `<h4>a</h4><table><tr><th>b</th></tr><tr><td>c</td></tr></table>`,
		"|a|b|\n|-|-:|\n|1|2|": `<table><tr><th>a</th><th data-align="right">b</th></tr>` +
			`<tr><td>1</td><td data-align="right">2</td></tr></table>`,
		"[x](https://a.example/?q&r)": `<p><a href="https://a.example/?q&amp;r" title="https://a.example/?q&amp;r" ` +
			`target="_blank" rel="noopener noreferrer">x</a></p>`,
		"- [x] done":      "<ul><li>☑ done</li></ul>",
		"~~old~~":         "<p><del>old</del></p>",
		"a \u202egnp.exe": "<p>a [U+202E]gnp.exe</p>",
		"a&#x202e;b":      "<p>a[U+202E]b</p>",
		"می\u200cخواهم":   "<p>می\u200cخواهم</p>",
		"":                "",
	} {
		if got := HTML(source); got != want {
			t.Errorf("%q:\n got %s\nwant %s", source, got, want)
		}
	}
}

// hostile are texts of those who want the page to run, load or show something else.
var hostile = []string{
	"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "<iframe src=javascript:alert(1)>",
	"<style>*{display:none}</style>", "<base href=//evil.example>", "<meta http-equiv=refresh content=0>", "<form action=//evil.example>",
	"[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](java\nscript:alert(1))", "[a](&#106;avascript:alert(1))",
	"[a](javascript&colon;alert(1))", "[a](data:text/html,<script>alert(1)</script>)", "[a](vbscript:x)", "[a](//evil.example)",
	"[a](\\\\evil.example)", "[a](file:///etc/passwd)", "[a](https:evil)", "[a](http://)", "[a](\"onmouseover=alert(1) x=\")",
	`[a](https://a.example/"onmouseover="alert(1))`, `[a](<https://a.example/' onclick='alert(1)>)`,
	`[a](https://a.example "t\" onclick=\"x")`,
	"![a](https://evil.example/pixel.gif)", "![a](x onerror=alert(1))", "![<img src=x>](https://a.example)", "<https://a.example/<b>>",
	"<javascript:alert(1)>", "<mailto:a@b.example>", "<a@b.example>", "[x]: javascript:alert(1)\n\n[x]", "```<script>\nx\n```",
	"```\" onload=\"x\nx\n```", "|<script>|\n|-|\n|<img onerror=x>|", "`<script>`",
	"&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;",
	"<!-- --><script>", "<![CDATA[<script>]]>", "\x00<script>\x00", "\xff\xfe<script>", "a\u202e<b>\u2066",
	"<a href=https://a.example>x</a>",
	strings.Repeat("<b>", 1000), strings.Repeat("> ", 500) + "<script>", "# <script>", "1. <script>\n2. [a](javascript:x)",
}

// allowed are the elements with the attributes that HTML writes.
var allowed = map[string]string{"p": "", "h3": "", "h4": "", "h5": "", "h6": "", "blockquote": "", "hr": "", "ul": "",
	"ol": "start", "li": "",
	"pre": "", "code": "data-language", "table": "", "tr": "", "th": "data-align", "td": "data-align", "br": "", "em": "", "strong": "",
	"del": "", "a": "href title target rel"}

var opens = regexp.MustCompile(`^(https?://[^/?#]|mailto:.)`)

// onlyAllowed reads HTML as a browser does and reports what is not on the list.
func onlyAllowed(t *testing.T, source, made string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(made))
	for z.Next() != html.ErrorToken {
		token := z.Token()
		switch token.Type {
		case html.TextToken, html.EndTagToken:
			continue
		case html.CommentToken, html.DoctypeToken:
			t.Fatalf("%q: a comment: %s", source, made)
		}
		attributes, ok := allowed[token.Data]
		if !ok {
			t.Fatalf("%q: <%s>: %s", source, token.Data, made)
		}
		for _, a := range token.Attr {
			if !strings.Contains(" "+attributes+" ", " "+a.Key+" ") || a.Key == "href" && !opens.MatchString(a.Val) ||
				a.Key == "rel" && a.Val != "noopener noreferrer" {
				t.Fatalf("%q: %s=%q: %s", source, a.Key, a.Val, made)
			}
		}
	}
}

func TestHostileMarkdownIsText(t *testing.T) {
	for _, source := range hostile {
		for _, s := range []string{source, "a " + source + " b", "> " + source, "- " + source, "**" + source + "**",
			"[" + source + "](https://a.example)"} {
			onlyAllowed(t, s, HTML(s))
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, source := range hostile {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) { onlyAllowed(t, source, HTML(source)) })
}

// Nothing that fits a message takes long.
func TestDeepAndLongMarkdown(t *testing.T) {
	for name, source := range map[string]string{
		"quotes": strings.Repeat(">", 30_000), "lists": strings.Repeat("- ", 20_000) + "x", "stars": strings.Repeat("*a", 30_000),
		"brackets": strings.Repeat("[", 60_000), "links": strings.Repeat("[a](", 15_000), "ticks": strings.Repeat("`a``", 15_000),
		"columns":    strings.Repeat("|a", 10_000) + "|\n" + strings.Repeat("|-", 10_000) + "|\n" + strings.Repeat("|b", 10_000) + "|",
		"short rows": strings.Repeat("|a", 4_000) + "\n" + strings.Repeat("|-", 4_000) + "\n" + strings.Repeat("b\n", 16_000),
		"a line":     strings.Repeat("x", 1<<20), "a megabyte": strings.Repeat("**a** `b`\n\n", 90_000),
	} {
		began := time.Now()
		made := HTML(source)
		onlyAllowed(t, name, made)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: %d bytes took %s", name, len(source), took)
		} else {
			t.Logf("%s: %d bytes, %d of HTML, %s", name, len(source), len(made), took.Round(time.Millisecond))
		}
	}
}
