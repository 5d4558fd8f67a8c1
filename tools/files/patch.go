package files

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The envelope of apply_patch, as models are trained to write it:
//
//	*** Begin Patch
//	*** Add File: path
//	+line
//	*** Update File: path
//	*** Move to: new path
//	@@ a line that stands before the place
//	 context
//	-removed
//	+added
//	*** Delete File: path
//	*** End Patch

// A change is what a patch does to one file.
type change struct {
	kind   string // add, update, delete
	path   string
	moveTo string   // of an update
	added  []string // the content of a new file
	hunks  []hunk
	line   int // of the patch, where it begins
}

// A hunk replaces lines.
type hunk struct {
	anchors  []string // lines to find first, one after the other
	old, new []string
	end      bool // its place is the end of the file
	line     int
}

const (
	patchBegin, patchEnd = "*** Begin Patch", "*** End Patch"
	patchAdd             = "*** Add File: "
	patchUpdate          = "*** Update File: "
	patchDelete          = "*** Delete File: "
	patchMove            = "*** Move to: "
	patchEOF             = "*** End of File"
)

// parsePatch reads a patch. Errors name its line and what is allowed there.
func parsePatch(text string) ([]change, error) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n \t"), "\n")
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	if len(lines) == 0 || strings.TrimSpace(lines[0]) != patchBegin {
		return nil, fmt.Errorf("the patch must begin with the line %q", patchBegin)
	}
	if strings.TrimSpace(lines[len(lines)-1]) != patchEnd {
		return nil, fmt.Errorf("the patch must end with the line %q", patchEnd)
	}

	p := patchParser{}
	for i, line := range lines[1 : len(lines)-1] {
		if err := p.take(i+2, line); err != nil {
			return nil, fmt.Errorf("line %d of the patch: %w", i+2, err)
		}
	}

	if len(p.changes) == 0 {
		return nil, errors.New("the patch changes nothing")
	}

	return p.changes, p.complete()
}

type patchParser struct{ changes []change }

func (p *patchParser) take(n int, line string) error {
	for _, head := range []struct{ mark, kind string }{{patchAdd, "add"}, {patchUpdate, "update"}, {patchDelete, "delete"}} {
		if path, ok := strings.CutPrefix(line, head.mark); ok {
			if path = strings.TrimSpace(path); path == "" {
				return errors.New("there is no path")
			}
			p.changes = append(p.changes, change{kind: head.kind, path: path, line: n})
			return nil
		}
	}

	if len(p.changes) == 0 {
		return fmt.Errorf("%q, %q or %q must come first", patchAdd, patchUpdate, patchDelete)
	}
	switch c := &p.changes[len(p.changes)-1]; c.kind {
	case "add":
		text, ok := strings.CutPrefix(line, "+")
		if !ok {
			return errors.New("every line of a new file begins with +")
		}
		c.added = append(c.added, text, "\n")
		return nil
	case "update":
		return c.takeUpdate(n, line)
	}

	if strings.TrimSpace(line) != "" {
		return errors.New("nothing may follow a file that is deleted")
	}

	return nil
}

func (c *change) takeUpdate(n int, line string) error {
	if to, ok := strings.CutPrefix(line, patchMove); ok {
		if len(c.hunks) > 0 || c.moveTo != "" || strings.TrimSpace(to) == "" {
			return fmt.Errorf("%q comes once, directly below the file", patchMove)
		}
		c.moveTo = strings.TrimSpace(to)
		return nil
	}

	last := len(c.hunks) - 1
	if anchor, ok := strings.CutPrefix(line, "@@"); ok {
		if last < 0 || len(c.hunks[last].old)+len(c.hunks[last].new) > 0 {
			c.hunks, last = append(c.hunks, hunk{line: n}), last+1
		}
		if anchor = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(anchor), "@@")); anchor != "" && !lineNumbers(anchor) {
			c.hunks[last].anchors = append(c.hunks[last].anchors, anchor)
		}
		return nil
	}
	if last < 0 {
		c.hunks, last = append(c.hunks, hunk{line: n}), 0
	}

	h := &c.hunks[last]
	switch {
	case strings.TrimSpace(line) == patchEOF:
		h.end = true
	case line == "": // editors cut the blank of an empty line of context
		h.old, h.new = append(h.old, ""), append(h.new, "")
	case line[0] == ' ':
		h.old, h.new = append(h.old, line[1:]), append(h.new, line[1:])
	case line[0] == '-':
		h.old = append(h.old, line[1:])
	case line[0] == '+':
		h.new = append(h.new, line[1:])
	default:
		return errors.New("a line begins with a blank (as it is), - (goes), + (comes) or @@")
	}

	return nil
}

// lineNumbers: "-12,3 +12,4", as other formats have it; they are not trusted.
func lineNumbers(anchor string) bool {
	return strings.HasPrefix(anchor, "-") && strings.Trim(anchor, "-+0123456789, ") == ""
}

// complete checks what can only be known at the end of the patch.
func (p *patchParser) complete() error {
	for _, c := range p.changes {
		if c.kind != "update" {
			continue
		}
		if len(c.hunks) == 0 && c.moveTo == "" {
			return fmt.Errorf("line %d of the patch: nothing is changed in %s", c.line, c.path)
		}

		for _, h := range c.hunks {
			if slices.Equal(h.old, h.new) {
				return fmt.Errorf("line %d of the patch: the change has no line with - or +", h.line)
			}
		}
	}

	return nil
}

// apply makes the hunks of a change in a text. Lines are found in order, each after
// the one before: first as they are, then without blanks at their ends, then
// without any around them.
func (c change) apply(text string) (string, error) {
	ends := "\n"
	if strings.Contains(text, "\r\n") {
		ends, text = "\r\n", strings.ReplaceAll(text, "\r\n", "\n")
	}
	final := strings.HasSuffix(text, "\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines, final = nil, true
	}

	var done []string // lines that no further hunk changes
	for _, h := range c.hunks {
		at := 0
		for _, anchor := range h.anchors {
			i := find(lines, []string{anchor}, at, false)
			if i < 0 {
				return "", fmt.Errorf("line %d of the patch: no line %q in %s%s", h.line, anchor, c.path, after(len(done)+at))
			}
			at = i + 1
		}

		i := len(lines)
		if len(h.old) > 0 {
			i = find(lines, h.old, at, h.end)
		} else if len(h.anchors) > 0 {
			i = at // lines that come after the anchor
		}
		if i < 0 {
			return "", fmt.Errorf("line %d of the patch: its lines with blank and - are not in %s%s:%s", h.line, c.path,
				after(len(done)+at), closest(strings.Join(slices.Concat(done, lines), "\n"), strings.Join(h.old, "\n")))
		}

		done = append(append(done, lines[:i]...), h.replacement(lines[i:])...)
		lines = lines[i+len(h.old):]
	}

	lines = append(done, lines...)
	out := strings.Join(lines, "\n")
	if final && len(lines) > 0 {
		out += "\n"
	}

	return strings.ReplaceAll(out, "\n", ends), nil
}

// replacement keeps the lines of context as the file has them, which may differ in
// blanks.
func (h hunk) replacement(file []string) []string {
	out := slices.Clone(h.new)
	left := map[string]int{} // the new lines from j on
	for _, line := range h.new {
		left[line]++
	}
	i, j := 0, 0
	for i < len(h.old) && j < len(h.new) {
		switch {
		case h.old[i] == h.new[j]:
			out[j] = file[i]
			left[h.new[j]]--
			i, j = i+1, j+1
		case left[h.old[i]] > 0:
			left[h.new[j]]--
			j++
		default:
			i++
		}
	}

	return out
}

func after(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" after line %d", line)
}

// find returns where lines occur in a text from a line on; -1: nowhere. With end they
// must be its last.
func find(text, lines []string, from int, end bool) int {
	if end {
		from = max(from, len(text)-len(lines))
	}
	for _, as := range []func(string) string{
		func(line string) string { return line },
		func(line string) string { return strings.TrimRight(line, " \t") },
		strings.TrimSpace,
	} {
		if i := index(text[from:], lines, as); i >= 0 {
			return from + i
		}
	}

	return -1
}

// index is where lines first occur in a text, both as a function makes them; -1: nowhere. It looks at each line of the text
// once (Knuth, Morris, Pratt): texts in which all lines are alike are long.
func index(text, lines []string, as func(string) string) int {
	want := make([]string, len(lines))
	back := make([]int, len(lines)) // how many of the first lines are also the last of those up to here
	n := 0
	step := func(line string) {
		for n > 0 && want[n] != line {
			n = back[n-1]
		}
		if want[n] == line {
			n++
		}
	}
	for i, line := range lines {
		if want[i] = as(line); i > 0 {
			step(want[i])
		}
		back[i] = n
	}

	n = 0
	for i, line := range text {
		if step(as(line)); n == len(lines) {
			return i + 1 - n
		}
	}

	return -1
}
