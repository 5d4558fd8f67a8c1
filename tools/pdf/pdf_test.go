package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// made puts a file together of objects, the first being 1; their places are not
// said, as Read does not look at them.
func made(objects ...string) []byte {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("xref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 9/Root 1 0 R>>\nstartxref\n0\n%%EOF\n")
	return []byte(b.String())
}

const (
	root  = "<</Type/Catalog/Pages 2 0 R>>"
	pages = "<</Type/Pages/Kids[3 0 R]/Count 1/Resources<</Font<</F1 5 0 R>>/XObject<</X 6 0 R>>>>>>"
	leaf  = "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"
	plain = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
)

func packed(data string) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(data))
	w.Close()
	return b.Bytes()
}

func raw(extra, data string) string {
	return fmt.Sprintf("<</Length %d%s>>stream\n%s\nendstream", len(data), extra, data)
}

func flated(extra, data string) string {
	return raw("/Filter/FlateDecode"+extra, string(packed(data)))
}

// page is a file with one page of this content.
func page(content string, more ...string) []byte {
	return made(append([]string{root, pages, leaf, content, plain}, more...)...)
}

func read(t *testing.T, data []byte, o Options) Text {
	t.Helper()
	text, err := Read(context.Background(), data, o)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return text
}

func TestText(t *testing.T) {
	const to = "begincmap 1 begincodespacerange <0000><FFFF> endcodespacerange 1 beginbfchar <0003> <0020> endbfchar " +
		"3 beginbfrange <0010><0012><0041> <0020><0021>[<00660066><D83DDE00>] <0030><0030><> endbfrange endcmap"
	wide := func(more string) []string {
		return []string{root, pages, leaf, raw("", "BT /F1 10 Tf <00100011001200030020> Tj <00210030> Tj ET"),
			"<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 7 0 R/DescendantFonts[<</DW 500/W[3[250] 16 18 600]>>]>>", "null",
			flated("", to) + more}
	}
	differ := func(encoding, content string) []byte {
		return made(root, pages, leaf, raw("", content),
			"<</Type/Font/Subtype/Type1/Encoding<</Type/Encoding"+encoding+">>/FirstChar 65/Widths[500 500 500]>>")
	}
	compact := func(parms string, table string) []byte {
		objects := []string{root, pages, leaf, plain}
		at, head, body := 0, "", ""
		for i, o := range objects {
			head += fmt.Sprintf("%d %d ", []int{1, 2, 3, 5}[i], at)
			body += o + " "
			at += len(o) + 1
		}
		data := head + body
		if table != "" { // each line of nine bytes with the filter "up"
			var b strings.Builder
			before := make([]byte, 9)
			for len(data)%9 != 0 {
				data += " "
			}
			for i := 0; i < len(data); i += 9 {
				b.WriteByte(2)
				for n, c := range []byte(data[i : i+9]) {
					b.WriteByte(c - before[n])
					before[n] = c
				}
			}
			data = b.String()
		}
		return []byte("%PDF-1.5\n10 0 obj\n" + flated(fmt.Sprintf("/Type/ObjStm/N 4/First %d%s", len(head), parms), data) + "\nendobj\n" +
			"4 0 obj\n" + flated("", "BT /F1 12 Tf (packed) Tj ET") + "\nendobj\n11 0 obj\n" +
			flated("/Type/XRef/Root 1 0 R", "x") + "\nendobj\n")
	}
	for about, c := range map[string]struct {
		data []byte
		want string
	}{
		"plain":      {page(raw("", "BT /F1 12 Tf 72 700 Td (Hello \\(W\\157rld\\)) Tj 0 -14 Td (second) Tj ET")), "Hello (World)\nsecond"},
		"packed":     {page(flated("", "BT /F1 12 Tf (caf\\351 \\200 5) Tj ET")), "café € 5"},
		"words":      {page(raw("", "BT /F1 10 Tf [(ke) 30 (rned) -300 (apart)] TJ ET")), "kerned apart"},
		"paragraphs": {page(raw("", "BT /F1 10 Tf 12 TL 0 500 Td (one) Tj T* (two) Tj 0 -30 Td (three) ' ET")), "one\ntwo\n\nthree"},
		"placed": {page(raw("", "BT /F1 1 Tf 10 0 0 10 50 700 Tm (left) Tj 10 0 0 10 300 700 Tm (right) Tj 10 0 0 "+
			"10 50 650 Tm (below) Tj ET")), "left right\n\nbelow"},
		"turned": {page(raw("", "q 0 1 -1 0 100 100 cm BT /F1 10 Tf 0 0 Td (up) Tj 0 -12 Td (side) Tj ET Q")), "up\nside"},
		"form": {page(raw("", "BT /F1 10 Tf (a) Tj ET /X Do"),
			raw("/Subtype/Form/Matrix[1 0 0 1 0 -12]", "BT /F1 10 Tf (b) Tj ET")), "a\nb"},
		"picture":   {page(raw("", "BI /W 4 ID \x00(Tj EIx) EI BT /F1 9 Tf (after) Tj ET")), "after"},
		"wide":      {made(wide("")...), "ABC ff😀"},
		"names":     {differ("/Differences[65/fi/eacute/uni4E2D 1/f_f_i]", "BT /F1 10 Tf (ABC\\001) Tj ET"), "fié中ffi"},
		"standard":  {differ("", "BT /F1 10 Tf (it\\047s \\256) Tj ET"), "it’s fi"},
		"mac":       {differ("/BaseEncoding/MacRomanEncoding", "BT /F1 10 Tf (\\212) Tj ET"), "ä"},
		"a85":       {page(raw("/Filter[/ASCII85Decode/FlateDecode]", a85(packed("BT /F1 9 Tf (armoured) Tj ET")))), "armoured"},
		"hex":       {page(raw("/Filter/ASCIIHexDecode", "4254202f46312039205466202868692920546a204554>")), "hi"},
		"runs":      {page(raw("/Filter/RunLengthDecode", "\x0cBT /F1 9 Tf (\xfda\x04) Tj \x80")), "aaaa"},
		"compact":   {compact("", ""), "packed"},
		"predicted": {compact("/DecodeParms<</Predictor 12/Columns 9>>", "up"), "packed"},
		"length":    {page("<</Length 9 0 R>>stream\nBT /F1 9 Tf (no length) Tj ET\nendstream"), "no length"},
		"no root":   {bytes.Replace(page(raw("", "BT /F1 9 Tf (found) Tj ET")), []byte("/Root"), []byte("/Boot"), 1), "found"},
		"cut":       {page(raw("", "BT /F1 9 Tf (most) Tj ET"), "<</Cut [1 2 (")[:440], "most"},
		"newer": {append(page(raw("", "BT /F1 9 Tf (old) Tj ET")),
			"\n4 0 obj\n"+raw("", "BT /F1 9 Tf (new) Tj ET")+"\nendobj\n"...), "new"},
		"no font": {page(raw("", "BT /F9 9 Tf (default) Tj ET")), "default"},
	} {
		if text := read(t, c.data, Options{}); text.Body != "[page 1]\n"+c.want || text.Pages != 1 || text.Empty {
			t.Errorf("%s: %q of %d pages, empty %v; want %q", about, text.Body, text.Pages, text.Empty, c.want)
		}
	}
}

func a85(data []byte) string {
	var b strings.Builder
	for len(data) > 0 {
		var four [4]byte
		n := copy(four[:], data)
		data = data[n:]
		v := uint32(four[0])<<24 | uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
		var out [5]byte
		for i := 4; i >= 0; i-- {
			out[i] = byte(v%85) + '!'
			v /= 85
		}
		b.Write(out[:n+1])
	}

	return b.String() + "~>"
}

// The example of the standard.
func TestLZW(t *testing.T) {
	f := &file{left: meter{ctx: context.Background(), unpacked: 100, work: maxWork}}
	if got := string(f.filter("LZWDecode", nil, []byte{0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01})); got != "-----A---B" {
		t.Errorf("unpacked %q", got)
	}
}

// many is a file of n pages that say which they are; the second has a picture only.
func many(n int) []byte {
	objects := []string{root, "", plain}
	kids := ""
	for i := 1; i <= n; i++ {
		content := fmt.Sprintf("BT /F1 9 Tf (page %d of many) Tj ET", i)
		if i == 2 {
			content = "q 100 0 0 100 0 0 cm /Im Do Q"
		}
		objects = append(objects, fmt.Sprintf("<</Type/Page/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>",
			len(objects)+2), raw("", content))
		kids += fmt.Sprintf("%d 0 R ", len(objects)-1)
	}

	objects[1] = "<</Type/Pages/Kids[" + kids + "]>>"
	return made(objects...)
}

func TestPages(t *testing.T) {
	data := many(5)
	for _, c := range []struct {
		ask  Options
		want Text
	}{
		{Options{First: 2, Pages: 2}, Text{First: 2, Last: 3, Next: 4,
			Body: "[page 2]\n[no text on this page]\n\n[page 3]\npage 3 of many"}},
		{Options{First: 2, Pages: 1}, Text{First: 2, Last: 2, Next: 3, Body: "[page 2]\n[no text on this page]", Empty: true}},
		{Options{First: 5, Pages: 9}, Text{First: 5, Last: 5, Body: "[page 5]\npage 5 of many"}},
		{Options{First: 9}, Text{First: 9, Last: 8, Empty: true}},
		{Options{MaxChars: 20}, Text{First: 1, Last: 2, Next: 3, Body: "[page 1]\npage 1 of many\n\n[page 2]\n[no text on this page]"}},
		{Options{MaxChars: 6}, Text{First: 1, Last: 1, Next: 2, Body: "[page 1]\npage 1\n[the rest of this page is left out]"}},
		{Options{First: 5, MaxChars: 6}, Text{First: 5, Last: 5, Body: "[page 5]\npage 5\n[the rest of this page is left out]"}},
	} {
		c.want.Pages = 5
		if got := read(t, data, c.ask); got != c.want {
			t.Errorf("%+v:\n%+v, want\n%+v", c.ask, got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	bomb := func(n int) string { // packed twice
		return raw("/Filter[/FlateDecode/FlateDecode]", string(packed(string(packed(strings.Repeat("0 ", n))))))
	}
	for about, c := range map[string]struct {
		ctx  context.Context
		data []byte
		want error
	}{
		"another format": {data: []byte("GIF89a"), want: ErrNoPDF},
		"nothing":        {data: nil, want: ErrNoPDF},
		"no objects":     {data: []byte("%PDF-1.7\nall is lost"), want: ErrDamaged},
		"no pages":       {data: made(root, "<</Type/Pages/Kids[]>>"), want: ErrDamaged},
		"pages in pages": {data: made(root, "<</Type/Pages/Kids[2 0 R 2 0 R]>>"), want: ErrDamaged},
		"a loop":         {data: made("2 0 R", "1 0 R"), want: ErrDamaged},
		"encrypted":      {data: bytes.Replace(page(raw("", "")), []byte("/Size 9"), []byte("/Encrypt 4 0 R"), 1), want: ErrEncrypted},
		"a bomb":         {data: page(bomb(1 << 20)), want: ErrTooLarge},
		"much work":      {data: page(raw("", "/X Do "), flated("/Subtype/Form", strings.Repeat("/X Do ", 200))), want: ErrTooLarge},
		"cancelled":      {ctx: gone, data: many(30), want: context.Canceled},
	} {
		if c.ctx == nil {
			c.ctx = context.Background()
		}

		// A hundredth of the limits says the same, sooner.
		f := &file{data: c.data, left: meter{ctx: c.ctx, unpacked: maxUnpacked / 100, work: maxWork / 100, check: maxWork / 100}}
		if text, err := f.all(Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %.100q, %v; want %v", about, text.Body, err, c.want)
		}
	}
}

// Depth, lengths and numbers that are lies cost nothing.
func TestHostile(t *testing.T) {
	for about, content := range map[string]string{
		"depth":   raw("", strings.Repeat("[", 1<<17)),
		"dicts":   raw("", strings.Repeat("<<", 1<<20)),
		"strings": raw("", strings.Repeat("(", 1<<20)),
		"numbers": raw("", "BT /F1 1e308 Tf 1e308 0 0 1e308 1e308 1e308 Tm (a) Tj -1e308 1e308 Td [1e308 -1e308 (b)] TJ "+
			"nan inf +Inf Tz (c) Tj ET"),
		"stack":  raw("", strings.Repeat("q ", 1<<18)+strings.Repeat("Q ", 1<<18)),
		"length": "<</Length 99999999999999999999>>stream\nendstream",
	} {
		if text := read(t, page(content), Options{}); !text.Empty && about != "numbers" {
			t.Errorf("%s: %q", about, text.Body)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(page(raw("", "BT /F1 12 Tf 72 700 Td (Hello) Tj [(a) -300 <62>] TJ ET")))
	f.Add(page(flated("", "BT /F1 12 Tf (packed) Tj ET")))
	f.Add(many(3))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := Read(context.Background(), data, Options{MaxChars: 10_000})
		if err == nil && (text.Pages < 1 || len(text.Body) > 0 && !strings.HasPrefix(text.Body, "[page 1]\n")) {
			t.Errorf("%+v", text)
		}
	})
}
