package markdown

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/connectors/terminal/theme"
)

// A text that has come piece by piece ends up as it would at once.
func TestStream(t *testing.T) {
	source, err := os.ReadFile("testdata/sample.md")
	if err != nil {
		t.Fatal(err)
	}
	r := New(theme.New(theme.Terminal{Dark: true}))
	var s Stream
	for n := 0; n <= len(source); n += 7 {
		s.Lines(r, string(source[:n]), 60)
	}
	got := s.Lines(r, string(source), 60)
	if diff := cmp.Diff(r.Lines(string(source), 60), got); diff != "" {
		t.Errorf("streamed (-at once +streamed):\n%s", diff)
	}
	if len(s.head) == 0 {
		t.Error("nothing of it was set for good")
	}
}

// A long answer costs no more per piece than a short one.
func TestStreamIsCheap(t *testing.T) {
	text := strings.Repeat("A paragraph of some words, **strong** and `code`, as models write it.\n\n", 3000)
	r := New(theme.New(theme.Terminal{Dark: true}))
	var s Stream
	const pieces = 50
	lines := func() { s.Lines(r, text, 80) }
	whole := allocations(lines)
	more := allocations(func() {
		for range pieces {
			text += "more words. "
			lines()
		}
	})
	t.Logf("a text of %d KB makes %d allocations, %d pieces more of it %d", len(text)>>10, whole, pieces, more)
	if more > whole/2 {
		t.Errorf("%d pieces of a text of %d KB make %d allocations, all of it %d", pieces, len(text)>>10, more, whole)
	}
}

// allocations is how many f makes: work that no other load of the machine changes.
func allocations(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}
