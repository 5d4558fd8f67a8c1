package connectortest

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"daycare/engine"
	"daycare/engine/message"
)

// longAnswer is a text of over 20,000 characters with tables, code, lists and
// links, seen from a connector's own folder.
const longAnswer = "../format/testdata/long.md"

// unshown is what platforms show differently or not at all: where a link goes, the
// language of a block of code.
var unshown = regexp.MustCompile("\\]\\([^)]*\\)|```\\w+")

// longWhole: a long answer arrives whole and in order, in parts that the platform
// takes.
func longWhole(t *testing.T, p *platform) {
	p.canSend(t, None)
	source, err := os.ReadFile(longAnswer)
	if err != nil {
		t.Fatal(err)
	}

	c := p.new(t)
	parts := []string{string(source)}
	if s, ok := c.(engine.Splitter); ok {
		parts = s.Split(string(source))
	}

	for i, text := range parts {
		out := message.Outgoing{ID: "long", To: p.To[0], Text: text, Part: i, Parts: len(parts)}
		if err := p.try(t, c, out); err != nil {
			t.Fatalf("Send of part %d of %d = %v", i, len(parts), err)
		}
	}

	var shown strings.Builder
	for _, s := range p.Sent() {
		shown.WriteString(s.Text + "\n")
	}
	text := unshown.ReplaceAllString(string(source), "]")
	has := count(shown.String())
	for word, n := range count(text) {
		if has[word] < n { // more is right: a wide table says its heads again
			t.Errorf("%q is shown %d times, want %d", word, has[word], n)
		}
	}

	rest := shown.String()
	for _, head := range heading.FindAllStringSubmatch(text, -1) {
		_, after, ok := strings.Cut(rest, head[1])
		if !ok {
			t.Errorf("the heading %q is not behind those before it", head[1])
			continue
		}
		rest = after
	}

	t.Logf("%d characters in %d parts, %d messages", len([]rune(string(source))), len(parts), len(p.Sent()))
}

var heading = regexp.MustCompile(`(?m)^#+ (.+)$`)

// count counts the runs of letters in a text.
func count(text string) map[string]int {
	n := map[string]int{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		n[word]++
	}

	return n
}
