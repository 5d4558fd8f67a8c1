package format

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// UTF16 is the length that platforms mean which count as JavaScript does
// (Telegram, Discord): UTF-16 units.
func UTF16(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}

	return n
}

// Split cuts Markdown into parts that measure at most limit each (nil: characters).
// It cuts between paragraphs if it can, else between lines, words, characters;
// never inside a character that is written as several, an entity or an escape. A
// code fence that is cut is closed and opened again. Joined, apart from those
// added fences, the parts are the text. Where not even one character fits, a part
// is that one character.
func Split(text string, limit int, measure func(string) int) []string {
	if measure == nil {
		measure = utf8.RuneCountInString
	}
	var parts []string
	for _, p := range pieces(text, limit, measure) {
		parts = append(parts, p.String())
	}

	return parts
}

// A piece is a stretch of the text and the fences that were added around it.
type piece struct{ open, text, close string }

func (p piece) String() string { return p.open + p.text + p.close }

func pieces(text string, limit int, measure func(string) int) []piece {
	var all []piece
	in := fence{}
	for text != "" {
		whole := piece{in.open(), text, ""}
		if len(text) < maxBytes(limit) && measure(whole.String()) <= limit {
			return append(all, whole)
		}
		p, after := first(text, in, limit, measure)
		all, text, in = append(all, p), text[len(p.text):], after
		if len(in.line) > mostOpening {
			in = fence{}
		}
	}

	return all
}

// mostOpening is how many bytes the first lines of a code fence or a table have at most that are repeated in each part. Longer ones
// would leave little room for the text, so that a part could have one character of it.
const mostOpening = 400

// maxBytes bounds what is measured as a whole, so that a long text is not
// measured once for each of its parts. No platform counts more than 16 bytes as
// one.
func maxBytes(limit int) int { return 16*limit + 1024 }

// first makes the first piece of a text that is too long, and says in which fence
// the rest begins.
func first(text string, in fence, limit int, measure func(string) int) (piece, fence) {
	window := text[:min(len(text), maxBytes(limit))]
	for room := fitting(window, limit, measure); ; room = room * 7 / 8 {
		cut := boundary(window, room, in)
		p, after := piece{text: text[:cut]}, in.after(text[:cut])
		p.open = in.open()
		p.close = after.close(p.text)
		if measure(p.String()) <= limit {
			return p, after
		}
		if room == 0 {
			// Not even the smallest piece fits with its fences: go without.
			return piece{text: p.text}, fence{}
		}
	}
}

// fitting is the number of bytes of text that measure at most limit.
func fitting(text string, limit int, measure func(string) int) int {
	low, high := 0, len(text)+1
	for high-low > 1 {
		middle := (low + high) / 2
		if measure(strings.ToValidUTF8(text[:middle], "")) <= limit {
			low = middle
		} else {
			high = middle
		}
	}

	return low
}

// boundary is the best place to cut in the first room bytes of text, which begins
// in a fence or not, at least one character from its beginning.
func boundary(text string, room int, in fence) int {
	room = min(room, len(text))
	for _, separator := range []string{"\n\n", "\n", " "} {
		// A cut that wastes most of a part is worse than a less good place.
		for i := strings.LastIndex(text[:room], separator); i >= 0 && i >= room/3; i = strings.LastIndex(text[:i], separator) {
			if cut := i + len(separator); whole(text, cut) && !in.opensAt(text[:cut]) {
				return cut
			}
		}
	}

	for cut := room; cut > 0; cut-- {
		if whole(text, cut) {
			return cut
		}
	}

	// One character with more marks than a part takes, or a run of escapes, is cut in the middle.
	for cut := room; cut > 0; cut-- {
		if utf8.RuneStart(text[cut]) {
			return cut
		}
	}

	_, size := utf8.DecodeRuneInString(text)
	return size
}

// longestEntity is &CounterClockwiseContourIntegral; in bytes.
const longestEntity = 33

// whole reports whether cutting text there leaves everything in one piece.
func whole(text string, cut int) bool {
	if cut >= len(text) {
		return true
	}
	if !utf8.RuneStart(text[cut]) {
		return false
	}

	before, _ := utf8.DecodeLastRuneInString(text[:cut])
	after, _ := utf8.DecodeRuneInString(text[cut:])
	if before == '\u200d' || after == '\u200d' || unicode.Is(unicode.M, after) || before == '\r' && after == '\n' {
		return false
	}
	if before >= 0x1f1e6 && before <= 0x1f1ff || after >= 0x1f3fb && after <= 0x1f3ff { // flags, skin tones
		return false
	}
	if before == '\\' || before == '`' && after == '`' || before == '~' && after == '~' {
		return false
	}

	return !inEntity(text, cut)
}

// inEntity reports whether a cut is between an entity's & and its semicolon.
func inEntity(text string, cut int) bool {
	start := strings.LastIndexByte(text[max(0, cut-longestEntity):cut], '&')
	if start < 0 {
		return false
	}
	start += max(0, cut-longestEntity)
	for i := start + 1; i < min(len(text), start+longestEntity); i++ {
		switch c := text[i]; {
		case c == ';':
			return i >= cut && i > start+1
		case c != '#' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z'):
			return false
		}
	}

	return false
}
