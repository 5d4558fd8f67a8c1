package pdf

import (
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A layout puts letters into words and lines by where they stand.
type layout struct {
	b          strings.Builder
	on         bool    // there is a letter before
	x, y       float64 // where the letter before ended
	dx, dy     float64 // the direction of its line, of length 1
	size       float64
	spaceAfter bool // what was written ends with a space or a line
}

// add takes a letter. at maps a square of one by one to the letter's place and
// size; width is its part of that square.
func (l *layout) add(s string, at matrix, width float64) {
	length, size := math.Hypot(at.a, at.b), math.Hypot(at.c, at.d)
	if !(length > 0 && size > 0 && length < 1e9 && size < 1e9) || math.IsNaN(at.e+at.f) {
		return
	}
	dx, dy := at.a/length, at.b/length
	if s = clean(s); s == "" {
		return
	}

	l.gap(at.e, at.f, dx, dy, size)
	if s != " " || !l.spaceAfter {
		l.b.WriteString(s)
	}
	l.on, l.spaceAfter = true, s == " "
	l.x, l.y, l.dx, l.dy, l.size = at.e+width*at.a, at.f+width*at.b, dx, dy, size
}

// gap writes what stands between the letter before and one at x, y: nothing, a
// space, a new line, an empty line.
func (l *layout) gap(x, y, dx, dy, size float64) {
	if !l.on {
		return
	}
	mx, my := x-l.x, y-l.y
	along, across := mx*l.dx+my*l.dy, my*l.dx-mx*l.dy
	larger := max(size, l.size)
	turned := l.dx*dx+l.dy*dy < 0.9
	switch {
	case turned, across > larger*0.7, across < -larger*1.9:
		l.end("\n\n")
	case across < -larger*0.7, along < -larger*1.5:
		l.end("\n")
	case along > larger*0.16:
		if !l.spaceAfter {
			l.b.WriteByte(' ')
		}
		l.spaceAfter = true
	}
}

func (l *layout) end(with string) {
	l.b.WriteString(with)
	l.spaceAfter = true
}

// clean makes text of a letter: no control characters, ligatures taken apart, and
// every space a plain one.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == unicode.ReplacementChar, r == 0x00AD, unicode.Is(unicode.Co, r):
			return -1
		}

		return r
	}, ligatures.Replace(s))
}

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")

// String is the text of the page; "" if there is none.
func (l *layout) String() string {
	lines := strings.Split(l.b.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	text := strings.Join(lines, "\n")

	return norm.NFC.String(strings.TrimSpace(text))
}
