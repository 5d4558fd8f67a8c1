package pdf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown are the letters of a string in a font, with their widths; * marks a space of a word.
func shown(f *file, font string, s text) string {
	var b strings.Builder
	f.font(values(f, font)[0]).letters(s, func(l letter) {
		fmt.Fprintf(&b, "%s%v", l.text, l.width)
		if l.space {
			b.WriteString("*")
		}
		b.WriteString(" ")
	})
	return strings.TrimSpace(b.String())
}

// Letters have the widths that their font says, in thousandths of the size.
func TestWidthsOfLetters(t *testing.T) {
	const wide = "<</Subtype/Type0/Encoding/UniJIS-UTF16-H/DescendantFonts[<</DW 700"
	for font, tt := range map[string]struct {
		in   text
		want string
	}{
		"<<>>":                              {"A b", "A500  500* b500"},
		"<</FirstChar 65/Widths[100 200]>>": {"ABC", "A100 B200 C500"},
		"<</FirstChar 254/Widths[100 200 300]/Encoding/WinAnsiEncoding>>":       {"\xfe\xff", "þ100 ÿ200"},
		"<</FirstChar -1/Widths[100 200 300]/Encoding<</Differences[0/a/b]>>>>": {"\x00\x01", "a200 b300"},
		"<</FontDescriptor<</MissingWidth 250>>/FirstChar 65/Widths[100]>>":     {"AB", "A100 B250"},
		"<</FontDescriptor<</MissingWidth -1>>>>":                               {"A", "A500"},
		"<</FontMatrix[.01 0 0 .01 0 0]/FirstChar 65/Widths[5]>>":               {"AB", "A50 B500"},
		"<</FontMatrix[.01 0 0]/FirstChar 65/Widths[5]>>":                       {"A", "A5"},
		"<</Subtype/Type0>>":                           {"\x00A\x00 ", "1000 1000"},
		"<</Subtype/Type0/DescendantFonts[]>>":         {"\x00A", "1000"},
		wide + ">>]>>":                                 {"\x00A\x4e\x2d", "A700 中700"},
		wide + "/W[65[100 200]67 68 300 70[400]]>>]>>": {"\x00A\x00B\x00C\x00D\x00E\x00F", "A100 B200 C300 D300 E700 F400"},
		wide + "/W[65 66]>>]>>":                        {"\x00A", "A700"},
		wide + "/W[65 65 9 66 99999999 8]>>]>>":        {"\x00A\xff\xfd", "A9 \ufffd8"},
		"<</Subtype/Type0/Encoding/UniGB-UCS2-H>>":     {"\x4e\x2d\x00", "中1000 \x001000"},
	} {
		if diff := cmp.Diff(tt.want, shown(fresh(""), font, tt.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", font, diff)
		}
	}
}

// A font says which letters its codes show by a table that has a name, what differs from
// it, or a map of its own.
func TestWhichLettersAFontShows(t *testing.T) {
	for font, tt := range map[string]struct{ in, want string }{
		"<<>>":                           {"A'`\xae\xe9", "A’‘fiØ"},
		"<</Encoding/WinAnsiEncoding>>":  {"A'`\xae\xe9\x80", "A'`®é€"},
		"<</Encoding/MacRomanEncoding>>": {"A\x8e", "Aé"},
		"<</Encoding<</BaseEncoding/MacRomanEncoding/Differences[65/alpha 256/beta -1/gamma/delta]>>>>": {"A\x8e\x00", "αéδ"},
		"<</Encoding<</Differences[65/A.alt/aacute/nothing/x_y 1(z)]>>>>":                               {"ABCD\x01", "Aá xy"},
	} {
		data := page(raw("", fmt.Sprintf("BT /F1 10 Tf <%x> Tj", tt.in)))
		data = []byte(strings.Replace(string(data), plain, font, 1))
		if got := read(t, data, Options{}).Body; got != "[page 1]\n"+tt.want {
			t.Errorf("%s: %q, want %q", font, strings.TrimPrefix(got, "[page 1]\n"), tt.want)
		}
	}
}

// Names of glyphs say which letters they are.
func TestNamesOfGlyphs(t *testing.T) {
	for glyph, want := range map[string]string{"a": "a", "a.alt": "a", "eacute": "e\u0301", "Aogonek": "A\u0328", "uni00E9": "é",
		"u1F600": "😀", "uni004100": "\u4100", "u00E": "", "u00000E9": "", "uniXYZW": "", "f_f_i": "ffi", "a_b_c_d": "abcd",
		"a_b_c_d_e": "", "nothing": "", "": "", "xacutex": "", "space": " ", "colon": ":"} {
		if got := glyphText(glyph); got != want {
			t.Errorf("%q is %q, want %q", glyph, got, want)
		}
	}
}

// A map of letters has ranges of codes by their length; codes beside them have no letter.
func TestMapsOfLetters(t *testing.T) {
	f := fresh("")
	m := f.parseCMap([]byte("begincmap 2 begincodespacerange <00><80> <8140><9FFC> <0102030405><0102030405> endcodespacerange " +
		"/skipped 5 def 2 beginbfchar <20> <0041> <2030> <0042> endbfchar " +
		"4 beginbfrange <30><32><0061> <3000><3002><00780061> <40><42>[<0031> <00320033>] <50><52><> endbfrange " +
		"1 beginbfchar <60> <D83DDE00> <61> <41> endbfchar " +
		"1 beginbfrange <70><7172><0061> <> <> <0061> <0102030405><0102030405><0061> <71><71> 5 <72> 7 <0061> endbfrange endcmap"))
	for _, tt := range []struct {
		length int
		code   uint32
		want   string // "-": none
	}{
		{1, 0x20, "A"}, {2, 0x20, "-"}, {2, 0x2030, "B"}, {1, 0x30, "a"}, {1, 0x32, "c"}, {1, 0x33, "-"}, {1, 0x2f, "-"},
		{2, 0x3000, "xa"}, {2, 0x3002, "xc"}, {2, 0x3003, "-"}, {1, 0x40, "1"}, {1, 0x41, "23"}, {1, 0x42, "-"}, {1, 0x51, ""},
		{1, 0x60, "😀"}, {1, 0x61, "A"}, {1, 0x70, "-"}, {1, 0x71, "-"}, {1, 0x72, "-"}, {3, 0x20, "-"}, {1, 0, "-"},
	} {
		got := "-"
		if r, ok := m.look(tt.length, tt.code); ok {
			got = string(r)
		}
		if got != tt.want {
			t.Errorf("code %x of %d bytes is %q, want %q", tt.code, tt.length, got, tt.want)
		}
	}
	if m.lengths != [5]bool{1: true, 2: true} {
		t.Errorf("codes have the lengths %v", m.lengths)
	}
	// Of more entries than a map may have at once the newest count.
	var b strings.Builder
	for range 1200 {
		b.WriteString("<0000><0058>")
	}
	if r, _ := f.parseCMap([]byte(b.String()+"<0001><0059> endbfchar")).look(2, 1); string(r) != "Y" {
		t.Errorf("the last of many entries is %q", string(r))
	}
}

// Codes are as long as the map of the font says, else as its kind has them.
func TestHowLongCodesAre(t *testing.T) {
	for name, tt := range map[string]struct {
		font font
		in   text
		want int
	}{
		"simple":               {font{}, "abc", 1},
		"wide":                 {font{wide: true}, "abc", 2},
		"wide, at the end":     {font{wide: true}, "a", 1},
		"wide, mapped by one":  {font{wide: true, unicode: &cmap{lengths: [5]bool{1: true}}}, "abc", 1},
		"wide, mapped by both": {font{wide: true, unicode: &cmap{lengths: [5]bool{1: true, 2: true}}}, "abc", 2},
		"wide, mapped by two":  {font{wide: true, unicode: &cmap{lengths: [5]bool{2: true}}}, "abc", 2},
		"simple, mapped":       {font{unicode: &cmap{lengths: [5]bool{2: true}}}, "abc", 1},
	} {
		if got := tt.font.length(tt.in); got != tt.want {
			t.Errorf("%s: a code has %d bytes, want %d", name, got, tt.want)
		}
	}
}
