package transcript

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
)

// What streams comes in thousands of pieces, of which each is copied a few times at most.
func TestManyPiecesTakeLittleMemory(t *testing.T) {
	const n, piece = 40_000, "abcd"
	var before, after runtime.MemStats
	tr := New()
	runtime.ReadMemStats(&before)
	for i := range n {
		if i == n/2 { // the rest of it is known from elsewhere
			tr.Draft(event.Draft{Turn: "t", Text: strings.Repeat(piece, i) + "ab"}, time.Time{})
		}
		tr.text.delta(answer, control.RawEvent{}, event.Delta{Offset: i * len(piece), Text: piece})
	}
	runtime.ReadMemStats(&after)

	if text := tr.text.live[0].text; text != strings.Repeat(piece, n) {
		t.Errorf("%d bytes, want %d", len(text), n*len(piece))
	}
	if took := int(after.TotalAlloc-before.TotalAlloc) >> 20; took > 20 {
		t.Errorf("%d pieces take %d MB of memory", n, took)
	}
}
