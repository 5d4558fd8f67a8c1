package prompt

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"daycare/agents/providers"
	"daycare/engine/message"
)

// drawn is a PNG with some colours.
func drawn(w, h int) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		row := img.Pix[y*img.Stride:]
		for x := range w { // not Set, which the race detector makes slow
			copy(row[4*x:], []byte{uint8(x), uint8(y), uint8(x + y), 255})
		}
	}

	return encoded(img)
}

// heavy is a PNG of few pixels in size bytes: most of it is a note that no picture
// is made of, so that a large file costs a test nothing.
func heavy(w, h, size int) []byte {
	small := drawn(w, h)
	const head = 8 + 25 // the signature and the first chunk
	note := append([]byte("prVt"), make([]byte, max(0, size-len(small)-12))...)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(note)-4))
	chunk = binary.BigEndian.AppendUint32(append(chunk, note...), crc32.ChecksumIEEE(note))
	return slices.Concat(small[:head], chunk, small[head:])
}

func encoded(img image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Text is inlined up to a limit, over all files of a message; what is no text is
// named only.
func TestTextFiles(t *testing.T) {
	long := strings.Repeat("a line of text\n", 4000)
	contents := map[string]string{"a.txt": "one <two>\n", "b.log": long, "c.json": long, "d.csv": long,
		"e.txt": "zero \x00 byte", "f.bin": "abc"}
	b := NewBuilder(Sources{File: func(f message.File) ([]byte, error) { return []byte(contents[f.Name]), nil }})
	u := asks("Read.")
	for _, f := range []struct{ name, kind string }{{"e.txt", "text/plain"}, {"f.bin", "application/octet-stream"},
		{"a.txt", "text/plain; charset=utf-8"}, {"b.log", "text/plain"}, {"c.json", "application/json"}, {"d.csv", "text/csv"}} {
		u.Files = append(u.Files, file(f.name, f.kind, int64(len(contents[f.name]))))
	}

	text := build(t, b, talk(u)).Messages[0].Parts[0].(providers.Text).Text
	for _, want := range []string{
		"<file name=\"a.txt\">\none &lt;two&gt;\n</file>",
		"/w/files/b.log] (its first 32", "/w/files/c.json] (its first 32",
		"/w/files/d.csv] (not shown: the files before it are long)",
		"/w/files/e.txt]\n[file: f.bin",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%.1500s", want, text)
		}
	}

	if strings.Contains(text, "zero") || strings.Contains(text, ">\nabc") {
		t.Error("what is no text was inlined")
	}
	if n := len(text); n > maxTexts+4096 {
		t.Errorf("%d bytes, limit %d", n, maxTexts)
	}
}
