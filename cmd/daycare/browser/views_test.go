//go:build !race

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/network"
)

// pictures is where the pictures of the docs are, mostBytes how large they may be together.
const (
	pictures  = "../../../docs/pictures/web"
	mostBytes = 1_500_000
)

// Every view, light and dark, on a screen, on a phone, and 320 pixels wide: names, contrast,
// headings, targets, no sideways scrolling, what a screen reader announces, and colours that the
// system forces; and Tab leads everywhere, in order. Each is opened once, as that is most of the
// work. With -update it makes the pictures of the docs and the golden files.
func TestViews(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, demoScript, demoSettings)
	w.furnish()
	w.start()
	w.live()
	first := w.visit("/") // which logs in for all, as Settings list the browsers that did
	session := call(first, network.GetCookies, network.GetCookiesParams{}).Cookies[0]
	t.Run("views", func(t *testing.T) {
		for _, v := range views {
			t.Run(v.name, func(t *testing.T) {
				if !*update { // what is written is not compared again until it is right
					t.Parallel()
				}
				p := newTab(t)
				p.origin = first.origin
				call(p, network.SetCookie, network.SetCookieParams{Name: session.Name, Value: session.Value, URL: p.origin,
					HTTPOnly: &session.HTTPOnly, SameSite: session.SameSite})
				p.inEveryForm(v)
			})
		}
	})
	if *update {
		return
	}

	names := []string{"browsers", "hostile"} // of other tests
	for _, v := range views {
		names = append(names, v.name, v.name+"-dark", v.name+"-phone")
	}
	total := int64(0)
	for _, name := range names {
		info, err := os.Stat(filepath.Join(pictures, name+".png"))
		if err != nil {
			t.Errorf("%v\nmake it with: go test ./cmd/daycare/browser -run 'TestViews|TestHostile|TestBrowsers' -update", err)
			continue
		}
		total += info.Size()
	}
	if total > mostBytes {
		t.Errorf("the pictures have %d bytes together, at most %d", total, mostBytes)
	}
}

// inEveryForm opens a view and checks it in every form.
func (p *tab) inEveryForm(v view) {
	p.t.Helper()
	p.scheme("light")
	p.goTo(v.path)
	p.settled()
	if v.keys != nil {
		p.press(v.keys...)
		p.settled()
	}
	p.announces(v)
	p.looks(v.name)
	p.keep(v.name)
	p.walks(v.name, v.reach...)
	p.scheme("dark")
	p.looks(v.name + ", dark")
	p.keep(v.name + "-dark")
	p.size(320, 640)
	p.drawn()
	p.looks(v.name + ", 320 wide")
	p.size(390, 844)
	p.scheme("light")
	p.drawn()
	p.looks(v.name + ", on a phone")
	p.keep(v.name + "-phone")
	p.size(1440, 900)
	p.forced(v)
}

// drawn waits until the page is drawn anew, in another size or other colours.
func (p *tab) drawn() {
	p.t.Helper()
	eval[bool](p, "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
}

// settled waits until nothing is drawn any more.
func (p *tab) settled() {
	p.t.Helper()
	eval[bool](p, `new Promise(done => {
		let last = "", same = 0;
		const look = () => {
			const now = document.body.innerText.replace(/\d+ s\b|\d+s\b|\d+ ms|now/g, "") + document.body.offsetHeight;
			same = now === last ? same + 1 : 0;
			last = now;
			if (same > 3) done(true); else setTimeout(look, 120);
		};
		look();
	})`)
}

// keep writes what the page shows as a picture of the docs, with -update.
func (p *tab) keep(name string) {
	p.t.Helper()
	if !*update {
		return
	}
	shot, err := png.Decode(bytes.NewReader(p.screenshot()))
	if err != nil {
		p.t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, fewColours(shot)); err != nil {
		p.t.Fatal(err)
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pictures, name+".png"), small.Bytes(), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// alike reports whether the eye hardly tells two colours apart.
func alike(a, b color.RGBA) bool {
	r, g, u := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
	return r*r+g*g+u*u < 120
}

// fewColours is a picture with at most 256 colours, the most frequent of it, every other one
// replaced by the nearest of them: a page is text on plain ground, and looks the same.
func fewColours(shot image.Image) *image.Paletted {
	counts := map[color.RGBA]int{}
	bounds := shot.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(shot.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range most { // of those that are alike, one
		if len(palette) < 256 && !slices.ContainsFunc(palette, func(p color.Color) bool { return alike(p.(color.RGBA), c) }) {
			palette = append(palette, c)
		}
	}

	few := image.NewPaletted(bounds, palette)
	nearest := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			few.SetColorIndex(x, y, i)
		}
	}
	return few
}
