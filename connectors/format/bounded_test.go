//go:build !race

package format

import (
	"runtime"
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

// What a model writes, by accident or because somebody made it, is shown without many times its length or memory.
func TestWhatIsShownIsNotMuchLarger(t *testing.T) {
	const n = 4000
	for name, source := range map[string]string{
		"columns":       strings.Repeat("|a", n) + "\n" + strings.Repeat("|-", n) + "\n" + strings.Repeat("b\n", n),
		"a long row":    "a|b\n-|-\n" + strings.Repeat("|c", n) + "\n" + strings.Repeat("d\n", n),
		"a long head":   "a|" + strings.Repeat("b", n) + "\n-|-\n" + strings.Repeat("c\n", n),
		"sixty columns": strings.Repeat("|abcdefghi", 60) + "\n" + strings.Repeat("|-", 60) + "\n" + strings.Repeat("b\n", n),
		"links":         "a|b\n-|-\n" + strings.Repeat("[a](http://b)|[c](http://d.example/e)\n", n),
		"lists":         strings.Repeat("- ", n) + "a\n\nb",
		"numbers":       strings.Repeat("1. ", n) + "a\n" + strings.Repeat("b\n", n),
		"quotes":        strings.Repeat("> ", n) + "a\n" + strings.Repeat("b\n", n),
		"words":         strings.Repeat("a **b** ", n),
		"entities":      strings.Repeat("&amp;", n),
	} {
		for as, show := range map[string]func(string) string{"plain": Plain, "telegram": Telegram, "slack": Slack, "discord": Discord,
			"mattermost": Mattermost, "whatsapp": WhatsApp, "mail": HTML} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			shown := show(source)
			runtime.ReadMemStats(&after)

			if most := 25*len(source) + 2*mostRepeated; len(shown) > most {
				t.Errorf("%s: %d bytes are %d as %s, want at most %d", name, len(source), len(shown), as, most)
			}
			if took := int(after.TotalAlloc - before.TotalAlloc); took > 1000*len(source)+100*mostRepeated {
				t.Errorf("%s: %d bytes take %d MB of memory as %s", name, len(source), took>>20, as)
			}
		}
	}
}
