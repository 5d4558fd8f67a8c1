package pdf

import (
	"bytes"
	"strconv"
)

// The values of a PDF: nil, bool, float64, name, text, []any, dict, ref, *stream.
type (
	name string
	text string // bytes
	dict map[name]any
	ref  int    // the number of an object; generations are not told apart
	word string // an operator, or a keyword of the file
)

// A stream is a dictionary with data.
type stream struct {
	dict dict
	raw  []byte
}

// end is what a parser gives after the last value.
type end struct{}

// A parser reads values one after the other.
type parser struct {
	file *file
	data []byte
	at   int
	kept int // values in the lists of the value that is being read
}

var white = [256]bool{0: true, '\t': true, '\n': true, '\f': true, '\r': true, ' ': true}

var delimiter = [256]bool{'(': true, ')': true, '<': true, '>': true, '[': true, ']': true, '{': true, '}': true, '/': true, '%': true}

func (p *parser) space() {
	start := p.at
	defer func() { p.file.left.charge(p.at - start) }()
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case white[c]:
			p.at++
		case c == '%':
			for p.at < len(p.data) && p.data[p.at] != '\n' && p.data[p.at] != '\r' {
				p.at++
			}
		default:
			return
		}
	}
}

// keyword goes behind a word that stands next, if it does.
func (p *parser) keyword(w string) bool {
	p.space()
	if !bytes.HasPrefix(p.data[p.at:], []byte(w)) {
		return false
	}
	p.at += len(w)

	return true
}

// value reads the next value; a keyword is returned as such.
func (p *parser) value(depth int) any {
	p.space()
	if p.at >= len(p.data) || !p.file.left.charge(valueWork) {
		return end{}
	}
	if depth == 0 {
		p.kept = 0
	}

	start := p.at
	c := p.data[p.at]
	switch {
	case c == '/':
		p.at++
		defer func() { p.file.left.charge(p.at - start) }()
		return p.name()
	case c == '(':
		defer func() { p.file.left.charge(p.at - start) }()
		return p.literal()
	case c == '<' && p.peek(1) == '<':
		p.at += 2
		return p.dict(depth)
	case c == '<':
		defer func() { p.file.left.charge(p.at - start) }()
		return p.hex()
	case c == '[':
		p.at++
		return p.array(depth)
	case c == '>' && p.peek(1) == '>':
		p.at += 2
		return word(">>")
	case delimiter[c]:
		p.at++
		return word(c)
	}

	return p.regular()
}

func (p *parser) peek(n int) byte {
	if p.at+n < len(p.data) {
		return p.data[p.at+n]
	}
	return 0
}

// regular reads a number or a word.
func (p *parser) regular() any {
	start := p.at
	for p.at < len(p.data) && !white[p.data[p.at]] && !delimiter[p.data[p.at]] {
		p.at++
	}
	p.file.left.charge(p.at - start)
	s := string(p.data[start:min(p.at, start+64)])
	if c := s[0]; c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' {
		if n, err := strconv.ParseFloat(s, 64); err == nil {
			return n
		}
		return 0.0 // "--5" and the like occur in files
	}

	switch s {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}

	return word(s)
}

func (p *parser) name() name {
	var b []byte
	for p.at < len(p.data) && !white[p.data[p.at]] && !delimiter[p.data[p.at]] {
		c := p.data[p.at]
		if hi, lo := nibble(p.peek(1)), nibble(p.peek(2)); c == '#' && hi >= 0 && lo >= 0 {
			c = byte(hi<<4 | lo)
			p.at += 2
		}
		b = append(b, c)
		p.at++
	}

	return name(b)
}

func nibble(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}

	return -1
}

func (p *parser) hex() text {
	p.at++
	var b []byte
	high := -1
	for p.at < len(p.data) {
		c := p.data[p.at]
		p.at++
		if c == '>' {
			break
		}

		switch n := nibble(c); {
		case n < 0:
		case high < 0:
			high = n
		default:
			b, high = append(b, byte(high<<4|n)), -1
		}
	}

	if high >= 0 {
		b = append(b, byte(high<<4))
	}

	return text(b)
}

// escapes of a literal string.
var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f'}

func (p *parser) literal() text {
	p.at++
	var b []byte
	for open := 1; p.at < len(p.data); p.at++ {
		c := p.data[p.at]
		switch c {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				p.at++
				return text(b)
			}
		case '\\':
			p.at++
			b = p.escape(b)
			continue
		}

		b = append(b, c)
	}

	p.at = min(p.at, len(p.data)) // a backslash was the last byte
	return text(b)
}

// escape reads what stands after a backslash; at is left on its last byte.
func (p *parser) escape(b []byte) []byte {
	c := p.peek(0)
	switch {
	case c >= '0' && c <= '7':
		n := 0
		for i := 0; i < 3 && p.peek(i) >= '0' && p.peek(i) <= '7'; i++ {
			n = n<<3 | int(p.peek(i)-'0')
		}
		for i := 0; i < 2 && p.peek(1) >= '0' && p.peek(1) <= '7'; i++ {
			p.at++
		}
		return append(b, byte(n))
	case c == '\r' && p.peek(1) == '\n':
		p.at++
		return b
	case c == '\r' || c == '\n':
		return b
	}

	if e, ok := escapes[c]; ok {
		c = e
	}

	return append(b, c)
}

func (p *parser) array(depth int) []any {
	list := []any{}
	for depth < maxDepth {
		v := p.value(depth + 1)
		switch v {
		case end{}, word("]"), word(">>"), word("endobj"):
			return list
		case word("R"):
			list = refer(list)
			continue
		}
		list = p.keep(list, v)
	}

	return list
}

// keep appends to a list within the limit; what is more is dropped.
func (p *parser) keep(list []any, v any) []any {
	if p.kept++; p.kept > maxKept {
		return list
	}
	return append(list, v)
}

// refer replaces "12 0" at the end of a list, before an R, by the reference.
func refer(list []any) []any {
	if len(list) < 2 {
		return list
	}
	n, _ := list[len(list)-2].(float64)
	return append(list[:len(list)-2], ref(n))
}

func (p *parser) dict(depth int) dict {
	var list []any
	for depth < maxDepth {
		v := p.value(depth + 1)
		if v == (end{}) || v == word(">>") || v == word("endobj") {
			break
		}
		if v == word("R") {
			list = refer(list)
			continue
		}
		list = p.keep(list, v)
	}

	d := make(dict, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		key, ok := list[i].(name)
		if !ok {
			i-- // a value too many: continue with the next key
			continue
		}
		d[key] = list[i+1]
	}

	return d
}
