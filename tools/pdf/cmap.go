package pdf

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// A cmap says which text stands for the codes of a font (ToUnicode).
type cmap struct {
	lengths [5]bool // which lengths codes have, in bytes
	ranges  []span  // by length and first code
}

// A span is codes from lo to hi of one length; the first stands for to, the next
// for the letter after, or list has each.
type span struct {
	length int
	lo, hi uint32
	to     []rune
	list   []any
}

// parseCMap reads the operators that say something about codes, and skips the rest.
func (f *file) parseCMap(data []byte) *cmap {
	m := &cmap{}
	p := &parser{file: f, data: data}
	var stack []any
	for f.left.err == nil {
		v := p.value(0)
		w, ok := v.(word)
		if !ok {
			if v == (end{}) {
				break
			}
			stack = append(stack, v)
			if len(stack) > 1000 { // 100 entries of three are the most there are
				stack = stack[500:]
			}
			continue
		}

		switch w {
		case "endcodespacerange":
			for _, v := range stack {
				if s, ok := v.(text); ok && len(s) < len(m.lengths) {
					m.lengths[len(s)] = true
				}
			}
		case "endbfchar":
			for i := 0; i+1 < len(stack); i += 2 {
				m.add(stack[i], stack[i], stack[i+1])
			}
		case "endbfrange":
			for i := 0; i+2 < len(stack); i += 3 {
				m.add(stack[i], stack[i+1], stack[i+2])
			}
		}

		stack = stack[:0]
	}

	slices.SortStableFunc(m.ranges, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(a.lo, b.lo))
	})
	return m
}

func (m *cmap) add(lo, hi, to any) {
	first, ok := lo.(text)
	last, also := hi.(text)
	if !ok || !also || len(first) == 0 || len(first) > 4 || len(first) != len(last) {
		return
	}

	s := span{length: len(first), lo: code(first), hi: code(last)}
	switch to := to.(type) {
	case text:
		s.to = utf16BE(to)
	case []any:
		s.list = to
	default:
		return
	}

	m.lengths[s.length] = true
	m.ranges = append(m.ranges, s)
}

func code(s text) uint32 {
	var n uint32
	for i := range len(s) {
		n = n<<8 | uint32(s[i])
	}

	return n
}

func utf16BE(s text) []rune {
	s = s[:min(len(s), maxStands)]
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	if len(s) == 1 {
		units = append(units, uint16(s[0]))
	}

	return utf16.Decode(units)
}

// look gives the text of one code.
func (m *cmap) look(length int, c uint32) ([]rune, bool) {
	i, found := slices.BinarySearchFunc(m.ranges, span{length: length, lo: c}, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(a.lo, b.lo))
	})
	if !found {
		i--
	}
	if i < 0 || m.ranges[i].length != length || c > m.ranges[i].hi {
		return nil, false
	}

	s := m.ranges[i]
	n := c - s.lo
	if s.list != nil {
		if int64(n) >= int64(len(s.list)) {
			return nil, false
		}
		to, _ := s.list[n].(text)
		return utf16BE(to), true
	}
	if len(s.to) == 0 {
		return nil, true
	}

	to := slices.Clone(s.to)
	to[len(to)-1] += rune(n)
	return to, true
}
