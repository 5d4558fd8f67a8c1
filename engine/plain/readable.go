package plain

import (
	"fmt"
	"strings"
	"unicode"
)

// tags are characters that no font draws, with which a text can be hidden in another. After a black
// flag they are part of the flag of a region.
const (
	firstTag, lastTag = 0xE0000, 0xE007F
	blackFlag         = 0x1F3F4
	longestFlag       = 7 // tags, with the one that ends them
)

// Readable is what users wrote to an agent, so that nothing is in it that they cannot see: characters
// that turn the reading direction around, hide a text in another (tags, selectors), or steer a
// terminal are named, as "[U+202E]", and characters without width are left out. What scripts and
// emoji need stays: joiners, direction marks, the selectors of emoji, the flags of regions.
func Readable(s string) string {
	if strings.IndexFunc(s, deceives) < 0 {
		return s
	}
	var b strings.Builder
	all := []rune(s)
	for i := 0; i < len(all); i++ {
		r := all[i]
		if n := flag(all[i:]); n > 0 {
			b.WriteString(string(all[i : i+n]))
			i += n - 1
			continue
		}
		switch {
		case widthless(r):
		case deceives(r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteRune(r)
		}
	}

	return b.String()
}

// ReadableLine is Readable for a name: of one line, without spaces around it.
func ReadableLine(s string) string {
	return strings.Join(strings.Fields(Readable(strings.NewReplacer("\u2028", " ", "\u2029", " ").Replace(s))), " ")
}

// flag returns how many characters the flag of a region has with which a text begins; 0: none.
func flag(s []rune) int {
	if len(s) == 0 || s[0] != blackFlag {
		return 0
	}
	for n := 1; n < len(s) && n <= longestFlag; n++ {
		switch r := s[n]; {
		case r == lastTag && n > 1:
			return n + 1
		case r < firstTag || r >= lastTag:
			return 0
		}
	}

	return 0
}

// widthless reports whether a character only keeps words apart or together.
func widthless(r rune) bool {
	return r == 0x200B || r >= 0x2060 && r <= 0x2064 || r == 0xFEFF || r == 0x034F || r == 0x180E
}

func deceives(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return false
	case r == 0x200E || r == 0x200F || r == 0x061C: // marks of direction, which Arabic and Hebrew need
		return false
	}

	return widthless(r) || unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x206F ||
		r >= firstTag && r <= lastTag || r >= 0xE0100 && r <= 0xE01EF || r >= 0xFFF9 && r <= 0xFFFB
}
