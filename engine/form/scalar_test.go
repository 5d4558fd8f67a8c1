package form

import (
	"strings"
	"testing"
)

// What a short text may be, by what it is for.
func TestFormsOfShortTexts(t *testing.T) {
	for name, tt := range map[string]struct {
		is  func(string) bool
		yes []string
		no  []string
	}{
		"an id": {isID, []string{"a", "9", "my-bot", "a.b_c", strings.Repeat("x", 64)},
			[]string{"-a", ".a", "a b", "a/b", "ä", strings.Repeat("x", 65)}},
		"a variable": {isEnvName, []string{"A", "_a", "KEY_2", "z9"}, []string{"2A", "9", "A-B", "A B", "A=B", strings.Repeat("X", 129)}},
		"an address to listen at": {isListen, []string{"127.0.0.1:80", ":80", "[::1]:65535", "localhost:0"},
			[]string{"80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", "a b:80", "127.0.0.1:00", "127.0.0.1:-1"}},
		"a zone": {isZone, []string{"UTC", "Europe/Berlin"}, []string{"Europe/Nowhere", "../etc/passwd"}},
	} {
		for _, text := range tt.yes {
			if !tt.is(text) {
				t.Errorf("%q is not %s", text, name)
			}
		}

		for _, text := range tt.no {
			if tt.is(text) {
				t.Errorf("%q is %s", text, name)
			}
		}
	}

	if isPort("127.0.0.1:0") || isPort(":80") || isPort("*:80") || !isPort("127.0.0.1:80") {
		t.Error("a server's own address needs a host and a port")
	}
}
