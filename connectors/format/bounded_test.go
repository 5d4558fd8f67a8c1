package format

import (
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark/text"
)

// A text that is made to keep a parser busy is read in moments.
func TestNoTextKeepsTheParserBusy(t *testing.T) {
	const n = 200_000
	for name, source := range map[string]string{
		"lists":    strings.Repeat("- ", n/2) + "a",
		"numbers":  strings.Repeat("1. ", n/3) + "a",
		"quotes":   strings.Repeat(">", n),
		"styles":   strings.Repeat("*_a", n/3),
		"struck":   strings.Repeat("*~a", n/3),
		"links":    strings.Repeat("[a](", n/4),
		"images":   strings.Repeat("![a](", n/5),
		"brackets": strings.Repeat("[", n/2) + strings.Repeat("]", n/2),
	} {
		began := time.Now()
		Parser().Parse(text.NewReader([]byte(source)))
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: %d bytes took %s", name, len(source), took)
		}
	}
}

// What somebody writes to be read is nowhere near the bounds, and each paragraph has its own.
func TestTheBoundsOfTheParserAreWide(t *testing.T) {
	for source, want := range map[string]string{
		strings.Repeat("> ", 20) + "a":                  strings.Repeat("<blockquote>\n", 20) + "<p>a</p>",
		strings.Repeat("**a** `b` ", 400):               strings.Repeat("<strong>a</strong> <code>b</code> ", 399),
		strings.Repeat("*a* ~b~\n\n", 2000) + "**end**": "<p><strong>end</strong></p>",
		strings.Repeat("[a](http://b) ", 400):           strings.Repeat(`<a href="http://b">a</a> `, 399),
		strings.Repeat("[a](http://b)\n\n", 2000):       strings.Repeat("<p><a href=\"http://b\">a</a></p>\n", 2000),
	} {
		if got := HTML(source); !strings.Contains(got, want) {
			t.Errorf("%.40q… is %.200q…", source, got)
		}
	}
}
