package transcript

import (
	"time"

	"daycare/connectors/terminal/markdown"
)

// A viewport is which part of the conversation is looked at: the end, or a line of
// a block. It is tied to the block, so that what comes before or after it does not
// move what a person reads.
type viewport struct {
	anchor *block // of the top line; nil: the end is followed
	line   int    // of the anchor
	width  int
	height int
	chosen *block // under the cursor of the reader, nil: none
}

// A Frame is what blocks are set for.
type Frame struct {
	*markdown.Renderer
	Width, Height int
	Now           time.Time
	Names         func(agent string) string       // id to what people call it
	Child         func(call string) (Child, bool) // the agent that a call started
}

func (v *viewport) moved(from, to *block) {
	if v.anchor == from {
		v.anchor = to
	}
	if v.chosen == from {
		v.chosen = to
	}
}

// all is the number of blocks, recorded and live.
func (t *Transcript) all() int { return len(t.blocks) + len(t.live) }

func (t *Transcript) block(i int) *block {
	if i < len(t.blocks) {
		return t.blocks[i]
	}
	return t.live[i-len(t.blocks)]
}

func (t *Transcript) index(b *block) int {
	for i := range t.all() {
		if t.block(i) == b {
			return i
		}
	}
	return -1
}

// linesOf are the lines of block i, the space above it included.
func (t *Transcript) linesOf(i int, f Frame) []string {
	b := t.block(i)
	lines := b.lines(f, b == t.view.chosen)
	if i == 0 || b.kind == card && t.block(i-1).kind == card {
		return lines
	}
	return append([]string{""}, lines...)
}

// Lines are what is looked at: at most f.Height lines.
func (t *Transcript) Lines(f Frame) []string {
	t.view.width, t.view.height = f.Width, f.Height
	i, line := t.top(f)
	var out []string
	for ; i < t.all() && len(out) < f.Height; i++ {
		lines := t.linesOf(i, f)
		out = append(out, lines[min(line, len(lines)):]...)
		line = 0
	}
	return out[:min(len(out), f.Height)]
}

// top is the block and line that the view begins with.
func (t *Transcript) top(f Frame) (i, line int) {
	if t.view.anchor != nil {
		if i = t.index(t.view.anchor); i >= 0 {
			return i, min(t.view.line, len(t.linesOf(i, f)))
		}
		t.view.anchor = nil
	}
	return t.back(t.all(), 0, f.Height, f)
}

// back goes n lines back from line `line` of block i.
func (t *Transcript) back(i, line, n int, f Frame) (int, int) {
	for n > line {
		n -= line
		if i--; i < 0 {
			return 0, 0
		}
		line = len(t.linesOf(i, f))
	}
	return i, line - n
}

// Following reports whether the end is followed.
func (t *Transcript) Following() bool { return t.view.anchor == nil }

// Follow goes to the end and stays there.
func (t *Transcript) Follow() { t.view.anchor, t.view.chosen = nil, nil }

// Scroll moves the view by n lines, up if negative. It reports that the beginning
// of what is loaded was reached.
func (t *Transcript) Scroll(n int, f Frame) (atTop bool) {
	if t.all() == 0 {
		return true
	}
	i, line := t.top(f)
	if n < 0 {
		i, line = t.back(i, line, -n, f)
		t.view.anchor, t.view.line = t.block(i), line
		if i == 0 && line == 0 {
			t.unneeded(f)
			return true
		}
		return false
	}
	for n > 0 && i < t.all() {
		rest := len(t.linesOf(i, f)) - line
		if n < rest {
			line += n
			break
		}
		n -= rest
		i, line = i+1, 0
	}
	endI, endLine := t.back(t.all(), 0, f.Height, f)
	if i > endI || i == endI && line >= endLine {
		t.view.anchor = nil
		return false
	}
	t.view.anchor, t.view.line = t.block(i), line
	return false
}

// unneeded: a conversation that fits the screen has no other place to be.
func (t *Transcript) unneeded(f Frame) {
	if i, line := t.back(t.all(), 0, f.Height, f); i == 0 && line == 0 {
		t.view.anchor = nil
	}
}

// Choose moves the cursor to the next block that can be opened, up if n is
// negative, and brings it into view. Without one it begins at the end.
func (t *Transcript) Choose(n int, f Frame) bool {
	i := t.all()
	if t.view.chosen != nil {
		if k := t.index(t.view.chosen); k >= 0 {
			i = k
		}
	} else if n > 0 {
		return false
	}
	for i += n; i >= 0 && i < t.all(); i += n {
		if b := t.block(i); b.foldable() {
			t.view.chosen = b
			t.reveal(i, f)
			return true
		}
	}
	if n > 0 {
		t.Follow()
	}
	return false
}

// reveal scrolls until block i can be seen.
func (t *Transcript) reveal(i int, f Frame) {
	top, line := t.top(f)
	if i < top || i == top && line > 0 {
		t.view.anchor, t.view.line = t.block(i), 0
		return
	}
	rows := -line
	for k := top; k <= i; k++ {
		rows += len(t.linesOf(k, f))
	}
	if rows > f.Height {
		t.Scroll(min(rows-f.Height, rows-len(t.linesOf(i, f))), f)
	}
}

// Chosen reports whether a block is under the cursor.
func (t *Transcript) Chosen() bool { return t.view.chosen != nil }

// Unchoose takes the cursor away.
func (t *Transcript) Unchoose() { t.view.chosen = nil }

// Toggle opens or closes the block under the cursor.
func (t *Transcript) Toggle() bool {
	if t.view.chosen == nil {
		return false
	}
	t.view.chosen.open = !t.view.chosen.open
	return true
}

// ToggleAt opens or closes what stands in row y of the view.
func (t *Transcript) ToggleAt(y int, f Frame) bool {
	i, line := t.top(f)
	for ; i < t.all(); i++ {
		n := len(t.linesOf(i, f)) - line
		if y < n {
			b := t.block(i)
			b.open = b.foldable() && !b.open
			return b.foldable()
		}
		y, line = y-n, 0
	}
	return false
}

// ToggleAll opens everything that can be opened, or closes all of it.
func (t *Transcript) ToggleAll() (open bool) {
	for i := range t.all() {
		if b := t.block(i); b.foldable() && !b.open {
			open = true
		}
	}
	for i := range t.all() {
		if b := t.block(i); b.foldable() {
			b.open = open
		}
	}
	return open
}
