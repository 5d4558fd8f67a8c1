package files

import (
	"regexp"
	"regexp/syntax"
	"testing"
)

// What is asked for before a regular expression changes nothing of what it finds.
func TestRequired(t *testing.T) {
	for expr, want := range map[string]string{
		"plain": "plain", `[A-Z][a-z]+Reader\(ctx`: "Reader(ctx", "(?i)plain": "", "a|b": "", "(ab)+c": "ab",
		"(abc){2,}": "abc", "(abc){0,2}d": "d",
		"x*": "", "abc?": "ab", "(one|two)three": "three", "^": "", `\x{FFFD}`: "", "ä.ö": "ä", "a(?i)bcd": "a", "": "",
		"(x(yz))": "yz", `\bfoo\b`: "foo",
		"foo|foobar": "foo",
	} {
		parsed, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := required(parsed); got != want {
			t.Errorf("%q requires %q, want %q", expr, got, want)
		}

		re := regexp.MustCompile(expr)
		g := &grepper{re: re, need: []byte(required(parsed))}
		for _, line := range []string{"", "plain", "a PLAIN one", "b", "NewReader(ctx)", "ababc", "abcabc", "d", "xyz",
			"twothree", "\xff", "äxö", "aBCD", "foo", "afoo", "foobar", "ab"} {
			if got := g.match([]byte(line)); got != re.MatchString(line) {
				t.Errorf("%q in %q: %v", expr, line, got)
			}
		}
	}
}
