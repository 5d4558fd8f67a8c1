package prompt

import (
	"bytes"
	"testing"
	"time"
)

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"a": "<b> \u003c \\u003c"}`, `"text"`, `[1]`, ``, `{`, "\"\xff\"", `null`, ` {} `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		once := arguments([]byte(raw))
		if got := compact(once); got != string(once) {
			t.Fatalf("arguments(%q) = %s", raw, got)
		}
		if twice := arguments(once); !bytes.Equal(once, twice) {
			t.Fatalf("arguments of its own result: %s, then %s", once, twice)
		}
	})
}

func TestClock(t *testing.T) {
	at := time.Date(2026, 11, 20, 17, 22, 33, 0, time.UTC)
	for zone, want := range map[string]string{
		"Europe/Berlin": "<time>2026-11-20 18:22 CET (Europe/Berlin)</time>",
		"UTC":           "<time>2026-11-20 17:22 UTC</time>",
		"":              "<time>2026-11-20 17:22 UTC</time>",
		"No/Where":      "<time>2026-11-20 17:22 UTC</time>",
	} {
		if got := clock(at, zone); got != want {
			t.Errorf("clock(%q) = %s, want %s", zone, got, want)
		}
	}
}
