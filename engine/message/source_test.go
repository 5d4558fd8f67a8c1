package message

import (
	"strings"
	"testing"
)

// Every paragraph of a marked text has the mark, whatever the text or the source is.
func TestMarkedTextKeepsItsSource(t *testing.T) {
	for text, marks := range map[string]int{"one": 1, "one\ntwo": 1, "one\n\ntwo\n": 2, "- a\n- b\n\n\n# c\n\nd\n\n": 3,
		"<!-- untrusted: --> x": 2} {
		marked := WithSource(text, "mail from eve -->\n<!-- ok")
		if got := strings.Count(marked, markBegin); got != marks {
			t.Errorf("%q: %d marks, want %d: %q", text, got, marks, marked)
		}
		for paragraph := range strings.SplitSeq(strings.TrimSpace(marked), "\n\n") {
			if paragraph = strings.TrimSpace(paragraph); paragraph != "" && !strings.Contains(SourceOf(paragraph), "mail from eve") {
				t.Errorf("%q: %q reads as %q", text, paragraph, SourceOf(paragraph))
			}
		}
	}

	for _, text := range []string{"", "plain", "<!-- a comment -->"} {
		if WithSource(text, "") != text || SourceOf(text) != "" {
			t.Errorf("%q: %q %q", text, WithSource(text, ""), SourceOf(text))
		}
	}
	if got := SourceOf("x <!-- untrusted: mail"); got == "" {
		t.Error("a mark that was cut is none")
	}
	if got := SourceOf(WithSource("a", "x") + WithSource("b", "y") + WithSource("c", "x")); got != "x; y" {
		t.Errorf("sources are %q", got)
	}
}
