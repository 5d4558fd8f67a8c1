package markdown

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// maxColumns is how many columns a table has at most; one with more is text.
const maxColumns = 60

// minColumn is the least that a column is narrowed to.
const minColumn = 4

// A grid is a table as it is written: its head, the sides its columns are set to,
// and its rows.
type grid struct {
	before string // text of the paragraph above the table
	right  []bool
	rows   [][]string // the head first
}

// findGrid finds a table in the lines of a paragraph: a row of dashes with as many
// columns as the line above it.
func findGrid(text string) (g grid, ok bool) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 1; i < len(lines); i++ {
		right, dashes := delimiters(lines[i])
		head := cellsOf(lines[i-1])
		if !dashes || len(head) != len(right) || len(right) > maxColumns {
			continue
		}
		g = grid{before: strings.Join(lines[:i-1], "\n"), right: right, rows: [][]string{head}}
		for _, l := range lines[i+1:] {
			g.rows = append(g.rows, cellsOf(l))
		}
		return g, true
	}
	return g, false
}

// delimiters reads the row of dashes under a table's head.
func delimiters(line string) (right []bool, ok bool) {
	if !strings.Contains(line, "|") {
		return nil, false
	}
	for _, c := range cellsOf(line) {
		dashes := strings.Trim(c, ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return nil, false
		}
		right = append(right, strings.HasSuffix(c, ":") && !strings.HasPrefix(c, ":"))
	}
	return right, true
}

// cellsOf splits a row. A bar after a backslash is text.
func cellsOf(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	const kept = "\x00"
	cells := strings.Split(strings.ReplaceAll(line, `\|`, kept), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, kept, "|"))
	}
	return cells
}

// table sets a table in columns; cells that do not fit are broken over lines.
func (s setter) table(g grid, width int) []string {
	var lines []string
	if g.before != "" {
		lines = append(s.Lines(g.before, width), "")
	}
	rows := make([][]string, len(g.rows))
	for i, row := range g.rows {
		for k, c := range row[:min(len(row), len(g.right))] {
			if k == len(rows[i]) {
				rows[i] = append(rows[i], s.cell(c))
			}
			if i == 0 {
				rows[i][k] = s.Theme.Strong.Render(rows[i][k])
			}
		}
	}
	widths := fit(natural(rows), width-3*(len(g.right)-1))
	for i, row := range rows {
		lines = append(lines, s.setRow(row, widths, g.right)...)
		if i == 0 {
			lines = append(lines, s.Theme.Rule.Render(ruleOf(widths)))
		}
	}
	return lines
}

// cell is the styled text of a cell, on one line.
func (s setter) cell(source string) string {
	src := []byte(source)
	inner := setter{Renderer: s.Renderer, src: src}
	doc := s.parser.Parse(text.NewReader(src))
	if p := doc.FirstChild(); p != nil && p.Kind() == ast.KindParagraph {
		return inner.inline(p)
	}
	return source
}

// natural is how wide each column would like to be.
func natural(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, minColumn)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return widths
}

// fit narrows the widest columns until all fit.
func fit(widths []int, room int) []int {
	sum := 0
	for _, w := range widths {
		sum += w
	}
	for sum > room {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
		sum--
	}
	return widths
}

func ruleOf(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return strings.Join(parts, "─┼─")
}

func (s setter) setRow(cells []string, widths []int, right []bool) []string {
	broken := make([][]string, len(widths))
	height := 1
	for i := range widths {
		if i < len(cells) {
			broken[i] = wrap(cells[i], widths[i])
		}
		height = max(height, len(broken[i]))
	}
	lines := make([]string, height)
	for k := range lines {
		parts := make([]string, len(widths))
		for i, w := range widths {
			text := ""
			if k < len(broken[i]) {
				text = broken[i][k]
			}
			parts[i] = pad(text, w, i < len(right) && right[i])
		}
		lines[k] = strings.TrimRight(strings.Join(parts, s.Theme.Rule.Render(" │ ")), " ")
	}
	return lines
}

func pad(text string, width int, right bool) string {
	gap := strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
	if right {
		return gap + text
	}
	return text + gap
}
