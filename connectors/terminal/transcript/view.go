package transcript

import (
	"time"

	"daycare/connectors/terminal/markdown"
)

// A View is which part of the conversation is looked at: the end, or a line of
// a block. It is tied to the block, so that what comes before or after it does not
// move what a user reads.
type View struct {
	text   *text
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
	Names         func(agent string) string       // id to what users call it
	Child         func(call string) (Child, bool) // the agent that a call started
}

func (v *View) moved(from, to *block) {
	if v.anchor == from {
		v.anchor = to
	}
	if v.chosen == from {
		v.chosen = to
	}
}

// all is the number of blocks, recorded and live.
func (x *text) all() int { return len(x.blocks) + len(x.live) }

func (x *text) block(i int) *block {
	if i < len(x.blocks) {
		return x.blocks[i]
	}
	return x.live[i-len(x.blocks)]
}

func (x *text) index(b *block) int {
	for i := range x.all() {
		if x.block(i) == b {
			return i
		}
	}

	return -1
}

// linesOf are the lines of block i, the space above it included.
func (v *View) linesOf(i int, f Frame) []string {
	b := v.text.block(i)
	lines := b.lines(f, b == v.chosen)
	if i == 0 || b.kind == card && v.text.block(i-1).kind == card {
		return lines
	}

	return append([]string{""}, lines...)
}

// Lines are what is looked at: at most f.Height lines.
func (v *View) Lines(f Frame) []string {
	v.width, v.height = f.Width, f.Height
	i, line := v.top(f)
	var out []string
	for ; i < v.text.all() && len(out) < f.Height; i++ {
		lines := v.linesOf(i, f)
		out = append(out, lines[min(line, len(lines)):]...)
		line = 0
	}

	return out[:min(len(out), f.Height)]
}

// top is the block and line that the view begins with.
func (v *View) top(f Frame) (i, line int) {
	if v.anchor != nil {
		if i = v.text.index(v.anchor); i >= 0 {
			return i, min(v.line, len(v.linesOf(i, f)))
		}
		v.anchor = nil
	}

	return v.back(v.text.all(), 0, f.Height, f)
}

// back goes n lines back from line `line` of block i.
func (v *View) back(i, line, n int, f Frame) (int, int) {
	for n > line {
		n -= line
		if i--; i < 0 {
			return 0, 0
		}
		line = len(v.linesOf(i, f))
	}

	return i, line - n
}

// Following reports whether the end is followed.
func (v *View) Following() bool { return v.anchor == nil }

// Follow goes to the end and stays there.
func (v *View) Follow() { v.anchor, v.chosen = nil, nil }

// Scroll moves the view by n lines, up if negative. It reports that the beginning
// of what is loaded was reached.
func (v *View) Scroll(n int, f Frame) (atTop bool) {
	if v.text.all() == 0 {
		return true
	}
	i, line := v.top(f)
	if n < 0 {
		i, line = v.back(i, line, -n, f)
		v.anchor, v.line = v.text.block(i), line
		if i == 0 && line == 0 {
			v.unneeded(f)
			return true
		}
		return false
	}
	for n > 0 && i < v.text.all() {
		rest := len(v.linesOf(i, f)) - line
		if n < rest {
			line += n
			break
		}
		n -= rest
		i, line = i+1, 0
	}
	endI, endLine := v.back(v.text.all(), 0, f.Height, f)
	if i > endI || i == endI && line >= endLine {
		v.anchor = nil
		return false
	}
	v.anchor, v.line = v.text.block(i), line
	return false
}

// unneeded: a conversation that fits the screen has no other place to be.
func (v *View) unneeded(f Frame) {
	if i, line := v.back(v.text.all(), 0, f.Height, f); i == 0 && line == 0 {
		v.anchor = nil
	}
}

// Choose moves the cursor to the next block that can be opened, up if n is
// negative, and brings it into view. Without one it begins at the end.
func (v *View) Choose(n int, f Frame) bool {
	i := v.text.all()
	if v.chosen != nil {
		if k := v.text.index(v.chosen); k >= 0 {
			i = k
		}
	} else if n > 0 {
		return false
	}
	for i += n; i >= 0 && i < v.text.all(); i += n {
		if b := v.text.block(i); b.foldable() {
			v.chosen = b
			v.reveal(i, f)
			return true
		}
	}
	if n > 0 {
		v.Follow()
	}

	return false
}

// reveal scrolls until block i can be seen.
func (v *View) reveal(i int, f Frame) {
	top, line := v.top(f)
	if i < top || i == top && line > 0 {
		v.anchor, v.line = v.text.block(i), 0
		return
	}
	rows := -line
	for k := top; k <= i; k++ {
		rows += len(v.linesOf(k, f))
	}
	if rows > f.Height {
		v.Scroll(min(rows-f.Height, rows-len(v.linesOf(i, f))), f)
	}
}

// Chosen reports whether a block is under the cursor.
func (v *View) Chosen() bool { return v.chosen != nil }

// Unchoose takes the cursor away.
func (v *View) Unchoose() { v.chosen = nil }

// Toggle opens or closes the block under the cursor.
func (v *View) Toggle() bool {
	if v.chosen == nil {
		return false
	}
	v.chosen.open = !v.chosen.open
	return true
}

// ToggleAt opens or closes the block in row y of the view.
func (v *View) ToggleAt(y int, f Frame) bool {
	i, line := v.top(f)
	for ; i < v.text.all(); i++ {
		n := len(v.linesOf(i, f)) - line
		if y < n {
			b := v.text.block(i)
			b.open = b.foldable() && !b.open
			return b.foldable()
		}
		y, line = y-n, 0
	}

	return false
}

// ToggleAll opens everything that can be opened, or closes all of it.
func (v *View) ToggleAll() (open bool) {
	for i := range v.text.all() {
		if b := v.text.block(i); b.foldable() && !b.open {
			open = true
		}
	}
	for i := range v.text.all() {
		if b := v.text.block(i); b.foldable() {
			b.open = open
		}
	}

	return open
}
