package form

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A file with thousands of mistakes, or with aliases that stand for much more than the file has, is read with little memory.
func TestALongFileTakesLittleMemory(t *testing.T) {
	type part struct {
		Name string   `json:"name"`
		List []string `json:"list"`
	}
	type file struct {
		Parts []part   `json:"parts"`
		Texts []string `json:"texts"`
		Free  map[string]any
	}
	var unknown strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&unknown, "key%d: 1\n", i)
	}

	for name, c := range map[string]struct {
		text, want string
		most       int // findings
	}{
		"unknown keys": {unknown.String(), "unknown-key", 4000},
		"wrong values": {"parts:\n" + strings.Repeat("- 1\n", 4000), "wrong-type", 4000},
		"lists": {"free: {x: &a {list: [" + strings.Repeat("b,", 4000) + "]}}\nparts: [" + strings.Repeat("*a,", 4000) + "]\n",
			"too-large", 1},
		"texts": {"texts: [&a \"" + strings.Repeat("b", 16_000) + "\"" + strings.Repeat(", *a", 4000) + "]\n", "too-large", 1},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f := Kind{ID: "x"}.YAML("f", []byte(c.text))
		f.Read(&file{})
		runtime.ReadMemStats(&after)

		if n := len(f.Found); n == 0 || n > c.most || !strings.HasSuffix(f.Found[0].ID, c.want) {
			t.Errorf("%s: %d findings, the first %v", name, n, f.Found[:min(1, n)])
		}
		if took := int(after.TotalAlloc-before.TotalAlloc) >> 20; took > 50 {
			t.Errorf("%s: %d bytes take %d MB of memory", name, len(c.text), took)
		}
	}
}
