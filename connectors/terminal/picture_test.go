package terminal

import (
	"fmt"
	"html"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// The pictures of README.md show what the screen shows: they are drawn from the frames that the
// golden files have, with their colours.
func TestPictures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		drive(t, twelve(), 110, 30, func(d *driver) {
			d.send(tea.BackgroundColorMsg{Color: color.Black})
			d.wait(time.Second)
			d.golden("home")
			d.picture("home", "daycare: the home screen with twelve agents, those that need you first")
		})
	})
	bubble(t, func(t *testing.T) {
		drive(t, twelve(), 100, 30, func(d *driver) {
			d.send(tea.BackgroundColorMsg{Color: color.Black})
			d.wait(time.Second)
			d.press("a", "tab")
			d.golden("approval-diff")
			d.picture("approval", "daycare: an agent asks to change a file, and shows the diff")
		})
	})
}

// picture compares the screen, with its styles, with docs/pictures/NAME.svg.
func (d *driver) picture(name, title string) {
	d.t.Helper()
	got := draw(d.m.View().Content, d.m.screen.width, title)
	path := filepath.Join("..", "..", "docs", "pictures", name+".svg")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		d.t.Errorf("%s is not what the screen shows (%v); run with -update and look at it", path, err)
	}
}

// Measures of a picture in pixels, and its own colours.
const (
	cellWidth, cellHeight = 8.4, 19
	margin, barHeight     = 14, 34
	paper, ink, barColour = "#16181d", "#d7dae0", "#20232a"
)

// draw is a screen as SVG: a window with a bar, a background wherever there is one, and each
// run of characters of one style stretched to its columns, whatever the font.
func draw(content string, columns int, title string) string {
	lines := strings.Split(content, "\n")
	width := 2*margin + float64(columns)*cellWidth
	height := barHeight + margin + cellHeight*len(lines) + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="%s">
<rect width="100%%" height="100%%" rx="9" fill="%s"/>
<path d="M0 %d V9 a9 9 0 0 1 9 -9 H%.0f a9 9 0 0 1 9 9 V%d z" fill="%s"/>
<circle cx="20" cy="17" r="6" fill="#ff5f57"/><circle cx="40" cy="17" r="6" fill="#febc2e"/><circle cx="60" cy="17" r="6" fill="#28c840"/>
<g font-family="ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
`, width, height, html.EscapeString(title), paper, barHeight, width-9, barHeight, barColour)
	for row, line := range lines {
		for _, r := range styledRuns(line) {
			r.draw(&b, barHeight+margin+row*cellHeight)
		}
	}
	return b.String() + "</g>\n</svg>\n"
}

// A run is text of one style that begins at a column.
type run struct {
	style
	column int
	text   string
}

type style struct {
	fore, back                       string // "" is the window's own
	bold, italic, underline, reverse bool
}

func (r run) draw(b *strings.Builder, top int) {
	fore, back := r.fore, r.back
	if r.reverse {
		fore, back = back, fore
		if fore == "" {
			fore = paper
		}
		if back == "" {
			back = ink
		}
	}
	x, width := margin+float64(r.column)*cellWidth, float64(ansi.StringWidth(r.text))*cellWidth
	if back != "" && width > 0 {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, top, width, cellHeight, back)
	}
	text := strings.TrimSpace(r.text) // browsers leave out spaces at the ends, and would stretch the rest
	if text == "" {
		return
	}
	x += float64(len(r.text)-len(strings.TrimLeft(r.text, " "))) * cellWidth
	width = float64(ansi.StringWidth(text)) * cellWidth
	if fore == "" {
		fore = ink
	}
	more := ""
	if r.bold {
		more += ` font-weight="bold"`
	}
	if r.italic {
		more += ` font-style="italic"`
	}
	if r.underline {
		more += ` text-decoration="underline"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
		x, top+14, width, fore, more, html.EscapeString(text))
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;:]*)m")

// wide is a gap behind which text is placed anew, because fonts differ in their width.
var wide = regexp.MustCompile(" {2,}")

// styledRuns takes a line apart at its styles and wide gaps.
func styledRuns(line string) (all []run) {
	var s style
	column := 0
	add := func(text string) {
		text = ansi.Strip(text)
		if text == "" {
			return
		}
		from := 0
		for _, gap := range append(wide.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
			all = append(all, run{s, column + ansi.StringWidth(text[:from]), text[from:gap[0]]},
				run{s, column + ansi.StringWidth(text[:gap[0]]), text[gap[0]:gap[1]]})
			from = gap[1]
		}
		column += ansi.StringWidth(text)
	}
	for line != "" {
		at := sgr.FindStringSubmatchIndex(line)
		if at == nil {
			add(line)
			break
		}
		add(line[:at[0]])
		s.change(strings.FieldsFunc(line[at[2]:at[3]], func(r rune) bool { return r == ';' || r == ':' }))
		line = line[at[1]:]
	}
	return all
}

// change does what a sequence of a terminal says.
func (s *style) change(codes []string) {
	if len(codes) == 0 {
		codes = []string{"0"}
	}
	for len(codes) > 0 {
		n, err := strconv.Atoi(codes[0])
		used := 1
		switch {
		case err != nil || n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 22:
			s.bold = false
		case n == 3, n == 23:
			s.italic = n == 3
		case n == 4, n == 24:
			s.underline = n == 4
		case n == 7, n == 27:
			s.reverse = n == 7
		case n == 38:
			s.fore, used = colour(codes)
		case n == 48:
			s.back, used = colour(codes)
		case n == 39:
			s.fore = ""
		case n == 49:
			s.back = ""
		case n >= 30 && n <= 37:
			s.fore = indexed(n - 30)
		case n >= 90 && n <= 97:
			s.fore = indexed(n - 90 + 8)
		case n >= 40 && n <= 47:
			s.back = indexed(n - 40)
		}
		codes = codes[used:]
	}
}

// colour reads 38;5;N and 38;2;R;G;B.
func colour(codes []string) (string, int) {
	number := func(i int) int {
		n, _ := strconv.Atoi(codes[i])
		return n
	}
	switch {
	case len(codes) >= 3 && codes[1] == "5":
		return indexed(number(2)), 3
	case len(codes) >= 5 && codes[1] == "2":
		return fmt.Sprintf("#%02x%02x%02x", number(2), number(3), number(4)), 5
	}
	return "", len(codes)
}

// sixteen are the colours that each terminal has of its own; these are soft ones.
var sixteen = [16]string{"#3b4048", "#e06c75", "#98c379", "#d19a66", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
	"#7f848e", "#ff7b85", "#a5d68a", "#f0c674", "#7cc0ff", "#d898ec", "#6fd0dc", "#ffffff"}

// indexed is one of the 256 colours of terminals.
func indexed(n int) string {
	level := func(v int) int {
		if v == 0 {
			return 0
		}
		return 55 + 40*v
	}
	switch {
	case n < 16:
		return sixteen[max(n, 0)]
	case n < 232:
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	}
	grey := 8 + 10*(n-232)
	return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
}
