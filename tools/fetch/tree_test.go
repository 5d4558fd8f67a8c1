//go:build !race

package fetch

import (
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
)

// A page takes memory by its length, and becomes a text that is not many times as long.
func TestAPageTakesNoMoreThanItsLength(t *testing.T) {
	base, _ := url.Parse("https://example.com/")
	x := strings.Repeat
	var attributes, styles strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&attributes, " a%d", i)
	}
	for i := range 450 {
		fmt.Fprintf(&styles, "<b id=%d>", i)
	}
	for name, page := range map[string]string{
		"paragraphs in lists":      x("<ul><li>", 200) + x("<p>x", 10_000),
		"items in lists":           x("<ol><li>", 200) + x("<li>x", 10_000),
		"lines in quotes":          x("<blockquote>", 400) + "<pre>" + x("x\n", 40_000),
		"a long base":              "<base href=http://a.example/" + x("a/", 3_000) + ">" + x("<a href=b>x</a>", 10_000),
		"many columns and rows":    "<table><tr>" + x("<td>x", 3_000) + x("<tr><td>x", 3_000),
		"styles left open":         styles.String() + x("<p>x", 20_000),
		"blocks in each other":     x("<div>", 480) + x("x<p>", 20_000),
		"tags that end nothing":    x(x("a", 20)+"</x>", 10_000),
		"text between rows":        "<table>" + x(x("a", 20)+"</x>", 10_000),
		"the tag html, many times": "<html" + attributes.String() + ">x" + x("<html a=b>", 5_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, text := markdown(page, base)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 200<<20 || len(text) > 4<<20 || text == "" {
			t.Errorf("%s: %d bytes take %d MB and become %d bytes", name, len(page), used>>20, len(text))
		}
	}
}

// What is not as it should be is read as browsers do.
func TestPagesThatAreNotInOrder(t *testing.T) {
	base, _ := url.Parse("https://example.com/")
	for html, want := range map[string]string{
		"a<div>b<div>c</div>d</div>e":                        "a\n\nb\n\nc\n\nd\n\ne",
		"<div>a<span>b</span><x-y>c</x-y></div>":             "abc",
		"<p>a<b>b<p>c</b>d":                                  "a**b**\n\n**c**d",
		"<ul><li>a<li><div>b</div></ul><p>c":                 "- a\n- b\n\nc",
		"<table>x<tr><td>a<td>b<tr>y<td>c</table>z":          "| x |  |\n|---|---|\n| a | b |\n| y | c |\n\nz",
		"<table><tr><td><p>a<td>b</table>":                   "| a | b |\n|---|---|",
		"<dl><dt>a<dd>b<dt>c</dl>":                           "a\n\nb\n\nc",
		"<svg><path/><title>t</title></svg>a</nav>b":         "ab",
		"<nav><div>x</div>y</nav>a<nav>z":                    "a",
		strings.Repeat("<nav>", 300) + "<script>x</script>y": "",
		"<h1>a<h2>b</h3>c":                                   "# a\n\n## b\n\nc",
		"<pre>\n a\n  b</pre>":                               "```\n a\n  b\n```",
		"<a href=x>a<a href=y>b":                             "[a](https://example.com/x)[b](https://example.com/y)",
		"a</br>b<td>c":                                       "a  \nb\n\nc",
	} {
		if _, text := markdown(html, base); text != want {
			t.Errorf("%.60q is %q, want %q", html, text, want)
		}
	}
}
