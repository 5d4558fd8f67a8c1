package engine

import (
	"strings"
	"testing"
)

func TestFirstLine(t *testing.T) {
	long := strings.Repeat("ü", mostSaid+1)
	for text, want := range map[string]string{
		"": "", " \n ": "", "one": "one", "one\n": "one", "\n one \n\ntwo": "one …",
		long: long[:2*mostSaid] + " …", long[2:]: long[2:],
	} {
		if got := firstLine(text); got != want {
			t.Errorf("the first line of %q is %q, want %q", text, got, want)
		}
	}
}
