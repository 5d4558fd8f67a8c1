//go:build !race

package prompt

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
)

// Tests without goroutines that compute a lot.

// A picture more than vendors take is named, and it stays so: a refused request
// would be refused at every later call.
func TestPicturesAreBounded(t *testing.T) {
	large := heavy(10, 9, 2_700_000)
	b := NewBuilder(Sources{File: func(message.File) ([]byte, error) { return large, nil }})
	u := asks("Look.")
	for range 12 {
		u.Files = append(u.Files, file("p.png", "image/png", int64(len(large))))
	}

	req := build(t, b, talk(u))
	images := 0
	for _, p := range req.Messages[0].Parts {
		if _, ok := p.(providers.Image); ok {
			images++
		}
	}

	if want := maxMedia / len(large); images != want || images < 4 {
		t.Errorf("%d pictures of %d bytes are sent, want %d", images, len(large), want)
	}
}

// Of many pictures the newest are shown, the old ones are named, seldom at once, and
// a process that starts anew sends the same.
func TestOldPicturesAreNamed(t *testing.T) {
	pixel := drawn(2, 2)
	src := Sources{File: func(message.File) ([]byte, error) { return pixel, nil }}
	b := NewBuilder(src)
	var said []record.Record
	changed, before := 0, []*providers.Message(nil)
	for i := range 3 * maxShown {
		u := asks(fmt.Sprintf("Picture %d.", i))
		u.Files = []message.File{file(fmt.Sprintf("p%d.png", i), "image/png", int64(len(pixel)))}
		said = append(said, u)
		now := build(t, b, talk(said...)).Messages
		shown := seen(now)
		if len(shown) > maxShown || !shown[len(now)-1] {
			t.Fatalf("after %d pictures %d are shown, the newest: %v", i+1, len(shown), shown[len(now)-1])
		}
		if i+1 <= maxShown && len(shown) != i+1 {
			t.Fatalf("%d of %d are shown although there is room", len(shown), i+1)
		}

		other := len(before) > 0 && !reflect.DeepEqual(before, now[:len(before)])
		if other {
			changed++
		}
		if other || i%7 == 0 { // each reads all the pictures again
			again := build(t, NewBuilder(src), talk(said...)).Messages
			if diff := cmp.Diff(now, again, cmpopts.IgnoreUnexported(providers.Message{})); diff != "" {
				t.Fatalf("made anew, the request is another one:\n%.2000s", diff)
			}
		}

		before = now
		said = append(said, says("Seen."))
	}

	if changed == 0 || changed > 3*maxShown/(maxShown/2) {
		t.Errorf("old pictures were taken out %d times", changed)
	}
	first := before[0].Parts
	if len(first) != 2 || !strings.Contains(first[0].(providers.Text).Text, "p0.png") || first[1] != (providers.Text{Text: gone}) {
		t.Errorf("the first message is %+v", first)
	}
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

// TestPrefix grows histories at random and checks, at every call of the model,
// the promises of the package comment.
func TestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &grower{history: history{ctx: record.Context{Session: "s1", Generation: 1}}}
		b := NewBuilder(sources)
		var requests []*providers.Request
		var bytesOf [][]byte
		var before []byte
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			g.step(t)
			if rapid.IntRange(0, 2).Draw(t, "wait") == 0 {
				continue
			}
			req, err := b.Build(&g.ctx, "SYSTEM", nil, Options{})
			fresh := NewBuilder(sources)
			again, errAgain := fresh.Build(&g.ctx, "SYSTEM", nil, Options{})
			if (err == nil) != (errAgain == nil) {
				t.Fatalf("extended: %v, made anew: %v", err, errAgain)
			}
			if err != nil {
				continue
			}

			answered, all := wire(req)
			if _, want := wire(again); !bytes.Equal(all, want) || b.Tokens() != fresh.Tokens() {
				t.Fatalf("extending and making anew differ\nextended (%d tokens):\n%s\nanew (%d tokens):\n%s",
					b.Tokens(), all, fresh.Tokens(), want)
			}
			if !bytes.HasPrefix(all, before) {
				t.Fatalf("bytes that were answered for have changed\nbefore:\n%s\nnow:\n%s", before, all)
			}

			before = answered
			requests, bytesOf = append(requests, req), append(bytesOf, all)
			checkShape(t, req.Messages)
		}

		for i, req := range requests {
			var now []byte
			for _, m := range req.Messages {
				now = append(now, encode(m)...)
			}
			if !bytes.Equal(now, bytesOf[i]) {
				t.Fatalf("request %d was changed after it was given out", i)
			}
		}
	})
}

// A picture that one can look through lies on white where it would be too large as it is.
func TestALargePictureLiesOnWhite(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	img := image.NewNRGBA(image.Rect(0, 0, 1200, 1200))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32())
	}
	for y := range 100 {
		for x := range 100 {
			img.SetNRGBA(x, y, color.NRGBA{})
		}
	}
	kind, data, err := compress(img)
	if err != nil || kind != "image/jpeg" || len(data) > maxPicture {
		t.Fatalf("it becomes %s of %d bytes, %v", kind, len(data), err)
	}
	got, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	bright := 0
	for y := range 1200 {
		if red, _, _, _ := got.At(600, y).RGBA(); red < 0x8000 {
			bright++
		}
	}
	if red, green, blue, _ := got.At(50, 50).RGBA(); min(red, green, blue) < 0xf000 || bright == 0 {
		t.Errorf("what one can look through is %x %x %x; %d of the others are dark", red, green, blue, bright)
	}
	small := image.NewNRGBA(image.Rect(0, 0, 4, 4))
	if kind, _, err := compress(small); kind != "image/png" || err != nil {
		t.Errorf("a small one becomes %s, %v", kind, err)
	}
}

// Old pictures and documents that tools brought are taken out as those that users sent are,
// and make room for new ones.
func TestWhatToolsBroughtMakesRoom(t *testing.T) {
	pixel := drawn(2, 2)
	src := Sources{File: func(f message.File) ([]byte, error) {
		if f.MimeType == pdf {
			return append([]byte("%PDF-1.7 "), make([]byte, maxMedia/8)...), nil
		}
		return pixel, nil
	}}
	for kind, mime := range map[string]string{"image": "image/png", "document": pdf} {
		b := NewBuilder(src)
		h := &history{ctx: record.Context{Session: "s1"}}
		for i := range maxShown + 8 {
			f := file(fmt.Sprint("f", i), mime, 100)
			result := gave(fmt.Sprint("c", i), "read", record.StatusOK, "it")
			result.Output.Blocks = []record.Block{{Type: kind, File: &f, Text: "its text"}}
			h.add(asks("Read it."), says("", call(fmt.Sprint("c", i), "read", "{}")), result)
			now := build(t, b, &h.ctx).Messages
			n, size := media(now)
			if n > maxShown || size > maxMedia || n != b.shown || int64(size) != b.media {
				t.Fatalf("%s %d: %d of %d bytes are sent, counted are %d of %d", kind, i, n, size, b.shown, b.media)
			}
			last := now[len(now)-1].Parts[0].(providers.Result)
			if len(last.Images)+len(last.Documents) != 1 || strings.Contains(last.Text, "not shown") {
				t.Fatalf("%s %d is not shown: %s", kind, i, last.Text)
			}
			h.add(says("Seen."))
		}
		h.add(asks("And now?"))
		first := build(t, b, &h.ctx).Messages[2].Parts[0].(providers.Result)
		if !strings.HasSuffix(first.Text, gone) || len(first.Images)+len(first.Documents) != 0 {
			t.Errorf("the first %s is still sent as %q", kind, first.Text)
		}
	}
}

// seen is which messages have a picture.
func seen(list []*providers.Message) map[int]bool {
	all := map[int]bool{}
	for i, m := range list {
		for _, p := range m.Parts {
			if _, ok := p.(providers.Image); ok {
				all[i] = true
			}
		}
	}

	return all
}
