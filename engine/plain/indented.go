package plain

import (
	"bytes"
	"encoding/json"
)

// Indented is JSON with a line for each of its values. Where that would be many times as long as the text itself, as what is
// nested deep begins each line with as many blanks, it stays as it is.
func Indented(text []byte) []byte {
	const free = 256 << 10
	if indentedLen(text) > 4*len(text)+free {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return text
	}

	return b.Bytes()
}

// indentedLen is about how long a JSON text is with a line for each of its values.
func indentedLen(text []byte) int {
	long, deep, quoted := len(text), 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			deep++
			long += 1 + 2*deep
		case c == '}' || c == ']':
			deep--
			long += 1 + 2*deep
		case c == ',':
			long += 1 + 2*deep
		}
	}

	return long
}
