package plain

import (
	"strings"
	"testing"
)

func TestIndented(t *testing.T) {
	deep := strings.Repeat("[", 2000) + "1" + strings.Repeat(",1", 100_000) + strings.Repeat("]", 2000)
	quoted := `"` + strings.Repeat(`[,\"`, 200_000) + `"`
	for text, want := range map[string]string{`{"a":[1,{}],"b":"[,"}`: "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"[,\"\n}", "[": "[",
		deep: deep, quoted: quoted, "": ""} {
		if got := string(Indented([]byte(text))); got != want {
			t.Errorf("%.60q is %.60q, %d bytes, want %d", text, got, len(got), len(want))
		}
	}
	small := "[" + strings.Repeat(`{"name":"a","size":1},`, 100_000) + "1]"
	if got := Indented([]byte(small)); len(got) <= len(small) {
		t.Errorf("a long list is not indented: %d of %d bytes", len(got), len(small))
	}
}
