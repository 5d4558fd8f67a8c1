package prompt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // what vendors take, is read
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"daycare/agents/providers"
)

const (
	// maxEdge is the longest side of a picture that is sent, in pixels: no vendor's
	// models look at more, and one refuses more where there are many pictures.
	maxEdge = 2000
	// maxPixels is the largest picture that is opened: a file of some KB may hold
	// gigabytes. 50 megapixels take 200 MB for a moment.
	maxPixels = 50_000_000
	// maxWork bounds how often the pixels of a JPEG are gone over, each time for all of them: a few bytes may be one time
	// more. A photo has ten, of whatever size.
	maxWork = 15 * maxPixels
	// maxPicture is the largest file that is sent, in bytes: 5 MiB in base64.
	maxPicture = 5 << 20 / 4 * 3
)

// picture makes of a file what a model is shown: the file as it is, or a smaller
// picture of it, with a note for the model then. One that a vendor could not open
// is not sent, as it would be refused at every later call; the note says why.
// The same file gives the same bytes.
func picture(data []byte) (_ *providers.Image, note string) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, "not shown: it cannot be read as a picture"
	}
	if int64(config.Width)*int64(config.Height) > maxPixels {
		return nil, fmt.Sprintf("not shown: %dx%d pixels are too many", config.Width, config.Height)
	}

	if scans(data)*int64(config.Width)*int64(config.Height) > maxWork {
		return nil, "not shown: it takes too long to open"
	}

	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil || img.Bounds().Empty() {
		return nil, "not shown: it is damaged"
	}
	if max(config.Width, config.Height) <= maxEdge && len(data) <= maxPicture {
		return &providers.Image{MimeType: "image/" + format, Data: data}, ""
	}

	for edge := maxEdge; edge >= 64; edge /= 2 {
		small := shrink(img, edge)
		kind, out, err := compress(small)
		if err != nil {
			return nil, "not shown: it cannot be made smaller"
		}
		if len(out) <= maxPicture {
			b := small.Bounds()
			return &providers.Image{MimeType: kind, Data: out},
				fmt.Sprintf("%dx%d pixels, shown as %dx%d", config.Width, config.Height, b.Dx(), b.Dy())
		}
	}

	return nil, "not shown: it cannot be made smaller"
}

// scans is how often a JPEG goes over its pixels; 1 for any other file.
func scans(data []byte) (n int64) {
	const start, end, scan, restart = 0xd8, 0xd9, 0xda, 0xd0
	if !bytes.HasPrefix(data, []byte{0xff, start}) {
		return 1
	}
	for rest := data[2:]; ; {
		at := bytes.IndexByte(rest, 0xff)
		if at < 0 || len(rest) < at+4 {
			return n
		}
		rest = rest[at+1:]
		switch mark := rest[0]; {
		case mark == end:
			return n
		case mark == 0xff: // fills up
			continue
		case mark == 0, mark >= restart && mark < start: // within a scan
			rest = rest[1:]
			continue
		case mark == scan:
			n++
		}
		rest = rest[min(1+int(binary.BigEndian.Uint16(rest[1:])), len(rest)):]
	}
}

// shrink scales a picture so that its longest side is edge, if it is longer.
func shrink(img image.Image, edge int) *image.NRGBA {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	if longest := max(w, h); longest > edge {
		w, h = max(1, w*edge/longest), max(1, h*edge/longest)
	}
	small := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.BiLinear.Scale(small, small.Bounds(), img, img.Bounds(), draw.Src, nil)

	return small
}

// compress writes a photo as JPEG; what one can look through stays PNG if that is
// not too large, else it lies on white.
func compress(img *image.NRGBA) (kind string, _ []byte, err error) {
	var b bytes.Buffer
	if !img.Opaque() {
		if err := png.Encode(&b, img); err != nil || b.Len() <= maxPicture {
			return "image/png", b.Bytes(), err
		}
		b.Reset()
		paper := image.NewNRGBA(img.Bounds())
		draw.Draw(paper, paper.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.Draw(paper, paper.Bounds(), img, img.Bounds().Min, draw.Over)
		img = paper
	}

	err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 85})
	return "image/jpeg", b.Bytes(), err
}
