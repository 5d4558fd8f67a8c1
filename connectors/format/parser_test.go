package format

import (
	"strings"
	"testing"
)

// Examples of the specification of GitHub's flavour (https://github.github.com/gfm/), and what differs from it on purpose.
func TestTablesStruckTextAndBoxes(t *testing.T) {
	table := func(rows ...string) string {
		html := "<table>\n<thead>\n"
		for i, row := range rows {
			tag := "td"
			if i == 0 {
				tag = "th"
			}
			html += "<tr>\n"
			for cell := range strings.SplitSeq(row, "/") {
				align := ""
				if side, rest, ok := strings.Cut(cell, "="); ok {
					align, cell = ` style="text-align:`+side+`"`, rest
				}
				html += "<" + tag + align + ">" + strings.ReplaceAll(cell, "÷", "/") + "</" + tag + ">\n"
			}
			html += "</tr>\n"
			if i == 0 {
				html += "</thead>\n<tbody>\n"
			}
		}
		return html + "</tbody>\n</table>\n"
	}

	for _, c := range []struct{ source, want string }{
		{"| foo | bar |\n| --- | --- |\n| baz | bim |", table("foo/bar", "baz/bim")},
		{"| abc | defghi |\n:-: | -----------:\nbar | baz", table("center=abc/right=defghi", "center=bar/right=baz")},
		{"| f\\|oo  |\n| ------ |\n| b `\\|` az |\n| b **\\|** im |",
			table("f|oo", "b <code>|<÷code> az", "b <strong>|<÷strong> im")},
		{"| abc | def |\n| --- | --- |\n| bar | baz |\n> bar",
			table("abc/def", "bar/baz") + "<blockquote>\n<p>bar</p>\n</blockquote>\n"},
		{"| abc | def |\n| --- | --- |\n| bar | baz |\nbar\n\nbar", table("abc/def", "bar/baz", "bar") + "<p>bar</p>\n"},
		{"| abc | def |\n| --- |\n| bar |", "<p>| abc | def |<br>\n| --- |<br>\n| bar |</p>\n"},
		{"| abc | def |\n| --- | --- |\n| bar |\n| bar | baz | boo | far | ", table("abc/def", "bar", "bar/baz/boo | far")},
		{"| abc | def |\n| --- | --- |", table("abc/def")},
		{"above\na|b\n-|-\n\\|c\\||`\\|\\|` `d", "<p>above</p>\n" + table("a/b", "|c|/<code>||<÷code> `d")},
		{"a|b\n:-|::\n", "<p>a|b<br>\n:-|::</p>\n"},
		{"|a\n|:-\n||", table("left=a", "left=")},
		{"a\n\n    :-\n", "<p>a</p>\n<pre><code>:-\n</code></pre>\n"},
		{"1. a|b\n   -|-\n   c|d\n", "<ol>\n<li>" + table("a/b", "c/d") + "</li>\n</ol>\n"},
		{"> a|b\n> -|-\n> c|d\n", "<blockquote>\n" + table("a/b", "c/d") + "</blockquote>\n"},

		{"~~Hi~~ Hello, ~there~ world!", "<p><del>Hi</del> Hello, <del>there</del> world!</p>\n"},
		{"This ~~has a\n\nnew paragraph~~.", "<p>This ~~has a</p>\n<p>new paragraph~~.</p>\n"},
		{"This will ~~~not~~~ strike, ~nor~~ this.", "<p>This will ~~~not~~~ strike, ~nor~~ this.</p>\n"},
		{"~~**a** `b`~~", "<p><del><strong>a</strong> <code>b</code></del></p>\n"},

		{"- [ ] foo\n- [x] bar\n- [X]\tbaz", "<ul>\n<li>☐ foo</li>\n<li>☑ bar</li>\n<li>☑ baz</li>\n</ul>\n"},
		{"- [x](https://go.dev) a\n- a [x] b\n- [xx] c\n\n[x] d",
			"<ul>\n<li><a href=\"https://go.dev\">x</a> a</li>\n<li>a [x] b</li>\n<li>[xx] c</li>\n</ul>\n<p>[x] d</p>\n"},
	} {
		if got := strings.ReplaceAll(HTML(c.source), "<li>\n", "<li>"); got != c.want {
			t.Errorf("%q is\n%s, want\n%s", c.source, got, c.want)
		}
	}
}
