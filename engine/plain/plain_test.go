package plain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext ü":    "plain\n\ttext ü",
		"a\x1b]0;title\ab":   `a\x1b]0;title\x07b`,
		"rm \u202egnp.txt":   `rm \u202egnp.txt`,
		"c\u009b31m\r":       `c\x9b31m\x0d`,
		"a byte \x9b2Jalone": "a byte \ufffd2Jalone", // a control character where a terminal takes it for Latin-1
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[0m\u202e\x9b")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Text(s); strings.ContainsFunc(got, Steers) || !utf8.ValidString(got) {
			t.Errorf("Text(%q) = %q still steers a terminal", s, got)
		}
	})
}

func TestFenced(t *testing.T) {
	for in, want := range map[string]string{
		"a\n\n":      "```\na\n```",
		"":           "```\n\n```",
		"`` b `":     "```\n`` b `\n```",
		"```\nc\n``": "````\n```\nc\n``\n````",
		"d`````":     "``````\nd`````\n``````",
	} {
		if got := Fenced(in); got != want {
			t.Errorf("Fenced(%q) = %q, want %q", in, got, want)
		}
	}
}
