//go:build !race

package memory

import (
	"runtime"
	"strings"
	"testing"
)

// A file of a megabyte takes memory by its length, however many headings it has and however long they are, and is taken out as
// soon as it was put in.
func TestALongFileIsIndexedByItsLength(t *testing.T) {
	for name, text := range map[string]string{
		"many headings":  strings.Repeat("#a\n", maxFile/3),
		"a long heading": "#" + strings.Repeat("a ", maxFile/4) + "\n" + strings.Repeat("b\n", maxFile/4),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x := newIndex()
		for range 3 {
			x.put("a.md", text)
		}
		x.remove("a.md")
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 || x.count != 0 || len(x.search("a", 9)) > 0 {
			t.Errorf("%s takes %d MB, %d passages are left", name, used>>20, x.count)
		}
	}
}
