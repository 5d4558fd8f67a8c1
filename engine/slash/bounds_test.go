package slash

import (
	"runtime"
	"strings"
	"testing"
)

// A file with thousands of placeholders does not make gigabytes of what is typed.
func TestManyPlaceholdersTakeLittleMemory(t *testing.T) {
	c, _ := Parse("x.md", []byte(strings.Repeat("$ARGUMENTS $1 ", 4000)))
	typed := strings.Repeat("a", 60_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := c.Expand(typed)
	runtime.ReadMemStats(&after)

	if !strings.HasPrefix(text, typed+" "+typed+" ") || !strings.HasSuffix(text, "$ARGUMENTS $1") {
		t.Errorf("it is %.100q…", text)
	}
	if took := int(after.TotalAlloc-before.TotalAlloc) >> 20; took > 50 {
		t.Errorf("%d bytes take %d MB of memory", len(text), took)
	}
}
