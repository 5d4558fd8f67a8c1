package permission

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"daycare/engine/event"
)

// Visible replaces every character that cannot be seen by its name: "[U+202E]" for one that
// reverses the reading direction, "[0xFF]" for a byte that is not UTF-8. Every user interface shows
// requests through it, so that a command cannot be disguised as another. Line breaks and tabs stay.
func Visible(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "[0x%02X]", text[i])
		case unseen(r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteString(text[i : i+n])
		}

		i += n
	}

	return b.String()
}

// mostUnseen limits what Unseen returns, because more would not be read.
const mostUnseen = 100

// Unseen returns where a text has the characters that Visible names.
func Unseen(text string) (list []event.Unseen) {
	line, column := 1, 0
	for i := 0; i < len(text) && len(list) < mostUnseen; {
		r, n := utf8.DecodeRuneInString(text[i:])
		column++
		switch {
		case r == utf8.RuneError && n == 1:
			list = append(list, event.Unseen{Char: fmt.Sprintf("0x%02X", text[i]), Line: line, Column: column})
		case unseen(r):
			list = append(list, event.Unseen{Char: fmt.Sprintf("U+%04X", r), Line: line, Column: column})
		case r == '\n':
			line, column = line+1, 0
		}

		i += n
	}

	return list
}

// VisibleLine is Visible for text that must stay on one line: line breaks are replaced, too.
func VisibleLine(text string) string {
	return strings.NewReplacer("\n", "[U+000A]", "\t", "[U+0009]").Replace(Visible(text))
}

// blank are letters and symbols that fonts draw as nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian selectors
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // empty Braille pattern
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // halfwidth Hangul filler
	},
}

// unseen reports whether a character has no shape of its own: controls, format
// characters (zero width, direction, tags), variation selectors, fillers, spaces other
// than the usual one, private and unassigned code points.
func unseen(r rune) bool {
	switch {
	case r == ' ' || r == '\n' || r == '\t':
		return false
	case !unicode.IsGraphic(r), unicode.IsSpace(r):
		return true
	}

	return unicode.In(r, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, blank)
}
