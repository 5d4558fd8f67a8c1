package bench

import (
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// A Series is one line of a plot.
type Series struct {
	Name   string
	Points []Point
	Dashed bool // a limit, not a measurement
}

// A Point is one measurement of a Series.
type Point struct{ X, Y float64 }

// A Chart says what is around the lines.
type Chart struct {
	Title, X, Y string
	Log         bool // both axes logarithmic; all values must be above 0
}

// The picture, in pixels, and its colours, which differ in lightness, too.
const (
	width, height            = 720, 420
	left, right, top, bottom = 76, 170, 40, 52
)

var colours = []string{"#1b6ca8", "#d1495b", "#2e933c", "#8a5a00", "#6a4c93", "#333333"}

// A Drawing is one chart with its lines.
type Drawing struct {
	Chart
	Series []Series
}

// Plot draws the series as an SVG picture that needs nothing else.
func Plot(w io.Writer, c Chart, series ...Series) error { return PlotAll(w, Drawing{c, series}) }

// PlotAll draws several charts one below the other. One without points is left out.
func PlotAll(w io.Writer, drawings ...Drawing) error {
	var b strings.Builder
	n := 0
	for _, d := range drawings {
		if len(drawings) > 1 && !d.drawable() {
			continue
		}
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", n*height)
		if err := d.draw(&b); err != nil {
			return fmt.Errorf("plot %s: %w", d.Title, err)
		}
		b.WriteString("</g>\n")
		n++
	}

	if n == 0 {
		return fmt.Errorf("plot: %w", errNoPoints)
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n"+
		`<rect width="%d" height="%d" fill="#fff"/>`+"\n%s</svg>\n", width, n*height, width, n*height, b.String())

	return err
}

func (d Drawing) drawable() bool {
	return slices.ContainsFunc(d.Series, func(s Series) bool { return len(s.Points) > 0 })
}

// draw writes one chart.
func (d Drawing) draw(b *strings.Builder) error {
	c, series := d.Chart, d.Series
	x, y, err := scales(c, series)
	if err != nil {
		return err
	}

	text(b, left, 22, "start", "bold", c.Title)

	for _, v := range x.ticks() {
		line(b, x.at(v), top, x.at(v), height-bottom)
		text(b, x.at(v), height-bottom+18, "middle", "normal", short(v))
	}

	for _, v := range y.ticks() {
		line(b, left, y.at(v), width-right, y.at(v))
		text(b, left-8, y.at(v)+4, "end", "normal", short(v))
	}
	text(b, (left+width-right)/2, height-12, "middle", "normal", c.X)
	text(b, 8, top-12, "start", "normal", c.Y)

	for i, s := range series {
		draw(b, s, colours[i%len(colours)], x, y)
		text(b, width-right+34, float64(top+14+i*20), "start", "normal", s.Name)
		fmt.Fprintf(b, `<path d="M%d %d h22" stroke="%s" stroke-width="2"%s/>`+"\n",
			width-right+8, top+10+i*20, colours[i%len(colours)], dash(s))
	}

	return nil
}

func draw(b *strings.Builder, s Series, colour string, x, y scale) {
	var path []string
	for _, p := range s.Points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.X), y.at(p.Y)))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(path, " "), colour, dash(s))
	if s.Dashed {
		return
	}

	for _, p := range s.Points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.at(p.X), y.at(p.Y), colour)
	}
}

func dash(s Series) string {
	if s.Dashed {
		return ` stroke-dasharray="6 4"`
	}
	return ""
}

func line(b *strings.Builder, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, `<path d="M%.1f %.1f L%.1f %.1f" stroke="#ddd"/>`+"\n", x1, y1, x2, y2)
}

func text(b *strings.Builder, x, y float64, anchor, weight, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-weight="%s">%s</text>`+"\n", x, y, anchor, weight, html.EscapeString(s))
}

// short writes an axis value: 1000 as 1k, 2500000 as 2.5M.
func short(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= u.size {
			return fmt.Sprintf("%.3g%s", v/u.size, u.name)
		}
	}

	return fmt.Sprintf("%.3g", v)
}

var errNoPoints = errors.New("no points")
