package pdf

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// A font turns the bytes of a string into letters and their widths.
type font struct {
	unicode  *cmap
	wide     bool        // codes have two bytes
	utf16    bool        // and are UTF-16
	names    [256]string // of a simple font: the text of each code
	widths   map[uint32]float64
	standard float64 // width of the others, in thousandths of the size
}

// font makes a font of its dictionary. One that is nothing gives letters as they are.
func (f *file) font(v any) *font {
	r, isRef := v.(ref)
	if isRef && f.fonts[r] != nil {
		return f.fonts[r]
	}
	d := f.asDict(v)
	o := &font{widths: map[uint32]float64{}, standard: 500}
	if s, ok := f.get(d["ToUnicode"]).(*stream); ok {
		o.unicode = f.parseCMap(f.unpack(s))
	}
	if d["Subtype"] == name("Type0") {
		f.composite(o, d)
	} else {
		f.simple(o, d)
	}
	if isRef && len(f.fonts) < 1000 {
		f.fonts[r] = o
	}

	return o
}

// composite reads a font with codes of several bytes.
func (f *file) composite(o *font, d dict) {
	o.wide, o.standard = true, 1000
	if n, ok := f.get(d["Encoding"]).(name); ok {
		o.utf16 = strings.Contains(string(n), "UTF16") || strings.Contains(string(n), "UCS2")
	}
	list, _ := f.get(d["DescendantFonts"]).([]any)
	if len(list) == 0 {
		return
	}

	down := f.asDict(list[0])
	if n, ok := f.get(down["DW"]).(float64); ok {
		o.standard = n
	}
	w, _ := f.get(down["W"]).([]any)
	for i := 0; i+1 < len(w); {
		first := uint32(max(f.number(w[i]), 0))
		if each, ok := f.get(w[i+1]).([]any); ok {
			for n, v := range each {
				o.widths[first+uint32(n)] = f.number(v)
			}
			i += 2
			continue
		}
		if i+2 >= len(w) {
			return
		}

		last, width := uint32(max(f.number(w[i+1]), 0)), f.number(w[i+2])
		for c := first; c <= last && c < 1<<16 && f.left.charge(valueWork); c++ {
			o.widths[c] = width
		}
		i += 3
	}
}

// simple reads a font with codes of one byte.
func (f *file) simple(o *font, d dict) {
	base := name("")
	var differ []any
	switch e := f.get(d["Encoding"]).(type) {
	case name:
		base = e
	case dict:
		base, _ = f.get(e["BaseEncoding"]).(name)
		differ, _ = f.get(e["Differences"]).([]any)
	}

	table := charmap.Windows1252 // which the standard encoding is nearly
	if base == "MacRomanEncoding" {
		table = charmap.Macintosh
	}

	for c := 32; c < 256; c++ {
		if r := table.DecodeByte(byte(c)); r != utf8.RuneError {
			o.names[c] = string(r)
		}
	}

	if base == "" {
		for c, r := range standardEncoding {
			o.names[c] = string(r)
		}
	}

	c := 0
	for _, v := range differ {
		switch v := f.get(v).(type) {
		case float64:
			c = int(v)
		case name:
			if c >= 0 && c < 256 {
				o.names[c] = glyphText(string(v))
			}
			c++
		}
	}

	descriptor := f.asDict(d["FontDescriptor"])
	if n := f.number(descriptor["MissingWidth"]); n > 0 {
		o.standard = n
	}
	scale := 1.0
	if m, ok := f.get(d["FontMatrix"]).([]any); ok && len(m) == 6 { // Type3: widths are in units of its own
		scale = f.number(m[0]) * 1000
	}

	first := f.number(d["FirstChar"])
	widths, _ := f.get(d["Widths"]).([]any)
	for i, v := range widths {
		if c := first + float64(i); c >= 0 && c < 256 {
			o.widths[uint32(c)] = f.number(v) * scale
		}
	}
}

// A letter is what one code of a string shows.
type letter struct {
	text  string
	width float64 // in thousandths of the size
	space bool    // the code 32 of one byte, which word spacing widens
}

// letters reads a string.
func (o *font) letters(s text, each func(letter)) {
	for len(s) > 0 {
		n := o.length(s)
		c := code(s[:n])
		width, ok := o.widths[c]
		if !ok {
			width = o.standard
		}
		each(letter{o.text(n, c), width, n == 1 && c == 32})
		s = s[n:]
	}
}

// length is how many bytes the first code has.
func (o *font) length(s text) int {
	n := 1
	if o.wide {
		n = 2
	}
	if o.wide && o.unicode != nil && o.unicode.lengths[1] && !o.unicode.lengths[2] {
		n = 1
	}

	return min(n, len(s))
}

func (o *font) text(n int, c uint32) string {
	if o.unicode != nil {
		if r, ok := o.unicode.look(n, c); ok {
			return string(r)
		}
	}

	switch {
	case o.utf16:
		return string(rune(c))
	case o.wide || c > 255:
		return "" // a glyph that does not say which letter it is
	}

	return o.names[c]
}
