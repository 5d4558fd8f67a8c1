package highlight

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Kind is what a part of a line is.
type Kind uint8

// Kinds.
const (
	Plain Kind = iota
	Comment
	String
	Number
	Keyword

	Kinds int = iota // how many there are
)

// A Span is a part of a line. Those of a line are as long as it is, together.
type Span struct {
	Len  int // in bytes
	Kind Kind
}

// A State is what continues from the line before. The zero value begins a text.
type State struct {
	close string // what ends it; "": nothing continues
	kind  Kind
	raw   bool // a backslash is a character like any other
	tag   bool // within the brackets of a tag
}

// Line finds the parts of a line, which has no line break, and what continues from there.
func (l *Language) Line(line string, s State) ([]Span, State) {
	x := &lexer{Language: l, line: line, State: s}
	if x.close != "" {
		x.until(0)
	} else if l.start != nil {
		l.start(x)
	}
	for x.at < len(line) {
		x.next()
	}

	return x.spans, x.State
}

// A lexer is at work on one line.
type lexer struct {
	*Language
	State
	line  string
	at    int
	spans []Span
}

// take makes the next n bytes a part, with the marks that belong to the last character of it.
func (x *lexer) take(n int, k Kind) {
	end := min(x.at+n, len(x.line))
	for end < len(x.line) && x.line[end] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(x.line[end:])
		if r != '\u200d' && !unicode.In(r, unicode.Mn, unicode.Me) {
			break
		}
		end += size
	}
	n = end - x.at
	if last := len(x.spans) - 1; last >= 0 && x.spans[last].Kind == k {
		x.spans[last].Len += n
	} else if n > 0 {
		x.spans = append(x.spans, Span{n, k})
	}
	x.at = end
}

// until takes what continues, to its end or that of the line; it began skip bytes ago.
func (x *lexer) until(skip int) {
	for i := x.at + skip; i < len(x.line); i++ {
		if x.line[i] == '\\' && !x.raw {
			i++
			continue
		}
		if strings.HasPrefix(x.line[i:], x.close) {
			x.take(i+len(x.close)-x.at, x.kind)
			x.close, x.kind, x.raw = "", Plain, false
			return
		}
	}
	x.take(len(x.line)-x.at, x.kind)
}

// next takes one part.
func (x *lexer) next() {
	rest := x.line[x.at:]
	if x.comment(rest) || x.markup && x.mark(rest) || x.quoted(rest) {
		return
	}
	n := x.word(rest)
	switch c := rest[0]; {
	case n == 0:
		_, size := utf8.DecodeRuneInString(rest)
		x.take(size, Plain)
	case x.markup:
		x.take(n, Plain)
	case c >= '0' && c <= '9' && !x.prose:
		x.take(x.number(rest), Number)
	case x.has(rest[:n]) || x.keys && named(rest[n:]):
		x.take(n, Keyword)
	default:
		x.take(n, Plain)
	}
}

// word is how long the name or number at the beginning of a text is.
func (x *lexer) word(text string) int {
	n := 0
	for n < len(text) && (wordly(text[n]) || n > 0 && text[n] == '-' && x.dashes) {
		n++
	}

	return n
}

func wordly(c byte) bool {
	return c >= utf8.RuneSelf || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// number is how long a number is, with its point.
func (x *lexer) number(text string) int {
	n := 0
	for n < len(text) && (wordly(text[n]) || text[n] == '.' && n+1 < len(text) && text[n+1] >= '0' && text[n+1] <= '9') {
		n++
	}

	return n
}

// named reports that a colon follows: what stands before is a name.
func named(rest string) bool {
	rest = strings.TrimLeft(rest, " ")
	return rest == ":" || strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, ":\t")
}

// comment takes a comment, if one begins here.
func (x *lexer) comment(rest string) bool {
	for _, c := range x.comments {
		if strings.HasPrefix(rest, c) && (!x.apart || x.at == 0 || strings.IndexByte(" \t;", x.line[x.at-1]) >= 0) {
			x.take(len(rest), Comment)
			return true
		}
	}
	if x.block[0] != "" && strings.HasPrefix(rest, x.block[0]) {
		x.State.close, x.kind, x.raw = x.block[1], Comment, true
		x.until(len(x.block[0]))
		return true
	}

	return false
}

// quoted takes a string, if one begins here. One that may not continue over line ends does not.
func (x *lexer) quoted(rest string) bool {
	if x.markup && !x.tag {
		return false
	}
	for _, q := range x.quotes {
		if !strings.HasPrefix(rest, q.open) {
			continue
		}
		if q.short > 0 && strings.IndexByte(rest[1:min(len(rest), q.short)], q.close[0]) < 0 {
			return false // an apostrophe
		}
		before := len(x.spans)
		from := x.at
		x.State.close, x.kind, x.raw = q.close, String, q.raw
		x.until(len(q.open))
		if x.State.close != "" && !q.lines {
			x.State.close, x.kind, x.raw = "", Plain, false
		}
		key := strings.HasPrefix(strings.TrimLeft(x.line[x.at:], " "), ":")
		if x.keys && key && len(x.spans) == before+1 && x.at-from == x.spans[before].Len {
			x.spans[before].Kind = Keyword
		}
		return true
	}

	return false
}

// mark takes the beginning of a tag with its name, or its end.
func (x *lexer) mark(rest string) bool {
	switch {
	case x.tag && rest[0] == '>':
		x.tag = false
		x.take(1, Plain)
		return true
	case x.tag || rest[0] != '<' || len(rest) == 1:
		return false
	}
	n := 1
	if strings.IndexByte("/!?", rest[1]) >= 0 {
		n++
	}
	name := x.word(rest[n:])
	if name == 0 || rest[n] >= utf8.RuneSelf {
		return false
	}
	x.tag = true
	x.take(n, Plain)
	x.take(name, Keyword)
	return true
}
