package prompt

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"slices"
	"strings"
	"testing"
	"time"
)

// endless is a grey JPEG of edge × edge pixels that goes over them n times, and has for each time only that nothing changes.
func endless(edge, n int) []byte {
	size := []byte{byte(edge >> 8), byte(edge)}
	none := make([]byte, 15)
	segment := func(mark byte, parts ...[]byte) []byte {
		data := slices.Concat(parts...)
		return slices.Concat([]byte{0xff, mark, byte((len(data) + 2) >> 8), byte(len(data) + 2)}, data)
	}

	// One code: the next 2^14 blocks and more, as 14 bits say, are as they were.
	bits := strings.Repeat("0"+strings.Repeat("1", 14), edge*edge/64/32767+2)
	for len(bits)%8 != 0 {
		bits += "1"
	}
	once := segment(0xda, []byte{1, 1, 0, 1, 63, 0})
	for ; bits != ""; bits = bits[8:] {
		var b byte
		for _, bit := range bits[:8] {
			b = b<<1 | byte(bit-'0')
		}
		if once = append(once, b); b == 0xff {
			once = append(once, 0)
		}
	}

	return slices.Concat([]byte{0xff, 0xd8}, segment(0xdb, []byte{0}, bytes.Repeat([]byte{1}, 64)),
		segment(0xc2, []byte{8}, size, size, []byte{1, 1, 0x11, 0}), segment(0xc4, []byte{0, 1}, none, []byte{0}),
		segment(0xc4, []byte{0x10, 1}, none, []byte{0xe0}), bytes.Repeat(once, n), []byte{0xff, 0xd9})
}

// A picture of some KB cannot keep an agent busy for hours.
func TestAPictureThatTakesLongIsNotShown(t *testing.T) {
	began := time.Now()
	data := endless(7000, 1000)
	if img, note := picture(data); img != nil || !strings.Contains(note, "too long") {
		t.Errorf("%d bytes are shown (%q)", len(data), note)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d bytes took %s", len(data), took)
	}
	if img, note := picture(endless(100, 200)); img == nil || note != "" {
		t.Errorf("a small picture is not shown: %s", note)
	}
}

func TestScans(t *testing.T) {
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewNRGBA(image.Rect(0, 0, 300, 300)), nil); err != nil {
		t.Fatal(err)
	}
	video := append(bytes.Clone(photo.Bytes()), bytes.Repeat([]byte{0xff, 0xda, 0, 2}, 100)...)
	gif, _ := base64.StdEncoding.DecodeString("R0lGODlhAQABAAAAACw=")
	for name, c := range map[string]struct {
		data []byte
		want int64
	}{"one": {photo.Bytes(), 1}, "with something behind it": {video, 1}, "many": {endless(64, 12), 12}, "another kind": {gif, 1},
		"nothing": {[]byte{0xff, 0xd8}, 0}} {
		if got := scans(c.data); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
