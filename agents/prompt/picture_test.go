package prompt

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
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

func TestPicture(t *testing.T) {
	glass := image.NewNRGBA(image.Rect(0, 0, 3000, 10))
	glass.Set(1, 1, color.NRGBA{255, 0, 0, 90})
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 40, 20)), nil); err != nil {
		t.Fatal(err)
	}

	bomb := drawn(8, 8)
	copy(bomb[16:24], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // says 65536 x 65536
	for _, tt := range []struct {
		name       string
		data       []byte
		kind       string
		w, h       int
		note       string
		unmodified bool
	}{
		{"small", drawn(30, 20), "image/png", 30, 20, "", true},
		{"a jpeg, whatever its name says", photo.Bytes(), "image/jpeg", 40, 20, "", true},
		{"wide", drawn(4000, 40), "image/jpeg", 2000, 20, "4000x40 pixels, shown as 2000x20", false},
		{"one can look through it", encoded(glass), "image/png", 2000, 6, "3000x10 pixels, shown as 2000x6", false},
		{"large file", heavy(190, 100, maxPicture+1), "image/jpeg", 190, 100, "190x100 pixels, shown as 190x100", false},
		{"as large as may be", heavy(190, 100, maxPicture), "image/png", 190, 100, "", true},
		{"cut", drawn(300, 200)[:200], "", 0, 0, "not shown: it is damaged", false},
		{"no picture", []byte("hello"), "", 0, 0, "not shown: it cannot be read as a picture", false},
		{"bomb", bomb, "", 0, 0, "not shown: it cannot be read", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			img, note := picture(tt.data)
			if !strings.Contains(note, tt.note) || tt.note == "" && note != "" {
				t.Errorf("note %q, want %q", note, tt.note)
			}
			if tt.kind == "" {
				if img != nil {
					t.Fatalf("it is shown as %s", img.MimeType)
				}
				return
			}
			if img == nil {
				t.Fatal("it is not shown")
			}

			c, format, err := image.DecodeConfig(bytes.NewReader(img.Data))
			if err != nil || img.MimeType != tt.kind || "image/"+format != tt.kind || c.Width != tt.w || c.Height != tt.h {
				t.Errorf("shown as %s (%s), %dx%d, %v; want %s, %dx%d", img.MimeType, format, c.Width, c.Height, err, tt.kind, tt.w, tt.h)
			}
			if len(img.Data) > maxPicture {
				t.Errorf("%d bytes, over the limit", len(img.Data))
			}
			if bytes.Equal(img.Data, tt.data) != tt.unmodified {
				t.Error("what fits must be sent as it is, what does not must not")
			}
			again, _ := picture(tt.data)
			if !bytes.Equal(again.Data, img.Data) {
				t.Error("the same file gave other bytes: every cache would be lost")
			}
		})
	}
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
