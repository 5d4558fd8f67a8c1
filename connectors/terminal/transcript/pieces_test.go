package transcript

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/theme"
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

// A change of a file is shown without what could steer the terminal.
func TestADiffDoesNotSteerTheTerminal(t *testing.T) {
	b := &block{kind: card, tool: &tool{}, layout: layout{open: true}}
	b.finish("ok", "", "@@ -1 +1 @@\n+\x1b]0;title\x07\x1b[2J", 0)
	f := Frame{Renderer: markdown.New(theme.New(theme.Terminal{})), Width: 100, Height: 40}
	if text := strings.Join(b.lines(f, false), "\n"); strings.Contains(text, "\x1b]0") || !strings.Contains(text, `\x1b[2J`) {
		t.Errorf("it is shown as %q", text)
	}
}
