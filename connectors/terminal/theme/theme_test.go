package theme_test

import (
	"fmt"
	"image/color"
	"math"
	"reflect"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/theme"
)

// How the sixteen colours look on terminals as they come: xterm and the PC console.
var palettes = map[string][16]uint32{
	"xterm": {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
		0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff},
	"console": {0x000000, 0xaa0000, 0x00aa00, 0xaa5500, 0x0000aa, 0xaa00aa, 0x00aaaa, 0xaaaaaa,
		0x555555, 0xff5555, 0x55ff55, 0xffff55, 0x5555ff, 0xff55ff, 0x55ffff, 0xffffff},
}

// Every colour can be read on its background, and on the pale one of what users wrote.
func TestContrast(t *testing.T) {
	for name, palette := range palettes {
		for _, on := range []theme.Terminal{{Dark: true}, {}, {Dark: true, Sixteen: true}, {Sixteen: true}} {
			t.Run(fmt.Sprintf("%s %+v", name, on), func(t *testing.T) {
				ink, paper := color.Color(color.Black), color.Color(color.White)
				if on.Dark {
					ink, paper = paper, ink
				}
				th := theme.New(on)
				for style, s := range styles(reflect.ValueOf(*th)) {
					least := 4.0
					if style == "Rule" {
						least = 2.5
					}
					if got := contrast(shown(s.GetForeground(), ink, palette), paper); got < least {
						t.Errorf("%s: %.1f:1 on the background, want %.1f:1", style, got, least)
					}
				}
				for _, s := range []lipgloss.Style{th.Dim, th.Accent} {
					behind := shown(th.Person.GetBackground(), paper, palette)
					if got := contrast(shown(s.GetForeground(), ink, palette), behind); got < 3.5 {
						t.Errorf("%v: %.1f:1 on what people wrote, want 3.5:1", s.GetForeground(), got)
					}
				}
			})
		}
	}
}

// styles are all styles of a theme, by name.
func styles(v reflect.Value) map[string]lipgloss.Style {
	list := map[string]lipgloss.Style{}
	for i := range v.NumField() {
		if s, ok := v.Field(i).Interface().(lipgloss.Style); ok {
			list[v.Type().Field(i).Name] = s
			continue
		}
		for name, s := range styles(v.Field(i)) {
			list[name] = s
		}
	}
	return list
}

// shown is a colour as a terminal with this palette shows it; unset is what it shows
// where there is none.
func shown(c, unset color.Color, palette [16]uint32) color.Color {
	switch c := c.(type) {
	case lipgloss.NoColor:
		return unset
	case ansi.BasicColor:
		rgb := palette[c]
		return color.RGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 255}
	}
	return c
}

// contrast is as WCAG 2 has it, from 1 to 21.
func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

func linear(v uint32) float64 {
	f := float64(v) / 0xffff
	if f <= 0.03928 {
		return f / 12.92
	}
	return math.Pow((f+0.055)/1.055, 2.4)
}
