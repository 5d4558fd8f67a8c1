package memory

import (
	"strings"
	"unicode"
)

// words takes a text apart: lower case, letters and digits, without accents' marks.
// Scripts that set no spaces (Chinese, Japanese) give each two neighbours as one.
func words(text string) []string {
	var out []string
	var word strings.Builder
	var before rune // the last character of a script without spaces; 0: none
	flush := func() {
		if word.Len() > 0 {
			out = append(out, word.String())
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			flush()
			if before != 0 {
				out = append(out, string([]rune{before, r}))
			} else {
				out = append(out, string(r))
			}
			before = r
			continue
		case unicode.Is(unicode.Mn, r): // a mark of the letter before
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			word.WriteRune(plain(unicode.ToLower(r)))
		default:
			flush()
		}

		before = 0
	}

	flush()
	return out
}

// plain is a letter without its accent: users leave them out.
func plain(r rune) rune {
	if r < 0xC0 {
		return r
	}
	const with, without = "àáâãäåçèéêëìíîïñòóôõöøùúûüýÿāăąćčďđēęěğīłńňōőřśşšťūůűźżž",
		"aaaaaaceeeeiiiinoooooouuuuyyaaaccddeeegilnnoorssstuuuzzz"
	if i := strings.IndexRune(with, r); i >= 0 {
		return rune(without[strings.Count(with[:i], "")-1])
	}

	return r
}

// A passage is a piece of a file that is found and shown as one.
type passage struct {
	line  int // of its first line, from 1
	title string
	text  string
}

const (
	// maxPassage is how long a passage is at most, in lines and in bytes.
	maxPassage      = 20
	maxPassageBytes = 2000
	maxTitle        = 500
)

// passages cuts a Markdown file. A heading begins one and is the title of those
// after it; an empty line ends one that is long enough.
func passages(text string) []passage {
	var list []passage
	var lines []string
	title, begin, size := "", 0, 0
	flush := func() {
		if joined := strings.TrimSpace(strings.Join(lines, "\n")); joined != "" {
			list = append(list, passage{begin, title, strings.TrimRight(strings.Join(lines, "\n"), "\n ")})
		}
		lines, size = nil, 0
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		heading := strings.HasPrefix(line, "#")
		if heading || len(lines) >= maxPassage || size > maxPassageBytes || line == "" && size > maxPassageBytes/4 {
			flush()
		}
		if heading {
			title = strings.TrimSpace(strings.TrimLeft(line, "#"))
			title = strings.ToValidUTF8(title[:min(len(title), maxTitle)], "") // each passage has it
		}
		if len(lines) == 0 {
			if line == "" {
				continue
			}
			begin = n
		}

		lines = append(lines, line)
		size += len(line)
	}

	flush()
	return list
}
