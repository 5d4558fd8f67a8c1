package markdown

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	tables "github.com/yuin/goldmark/extension/ast"
)

// minColumn is the least that a column is narrowed to.
const minColumn = 4

// table sets a table in columns; cells that do not fit are broken over lines.
func (s setter) table(t *tables.Table, width int) []string {
	var rows [][]string
	var right []bool
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var row []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			set := s.inline(c)
			if r.Kind() == tables.KindTableHeader {
				set = s.Theme.Strong.Render(set)
			}
			if row = append(row, set); len(row) > len(right) {
				right = append(right, c.(*tables.TableCell).Alignment == tables.AlignRight)
			}
		}
		rows = append(rows, row)
	}

	var lines []string
	room := 1 << 16 // bytes: many columns with little in them could take hundreds of times the text
	widths := fit(natural(rows), width-3*(len(right)-1))
	for i, row := range rows {
		set := s.setRow(row, widths, right)
		for _, line := range set {
			room -= len(line)
		}
		for _, cell := range row {
			room += mostPadded * len(cell)
		}
		if room < 0 {
			return s.listed(rows, width)
		}
		if lines = append(lines, set...); i == 0 {
			lines = append(lines, s.Theme.Rule.Render(ruleOf(widths)))
		}
	}

	return lines
}

// mostPadded is how many times as long as its cells a table is set in columns.
const mostPadded = 20

// listed sets a table without columns.
func (s setter) listed(rows [][]string, width int) (lines []string) {
	for _, row := range rows {
		lines = append(lines, wrap(strings.Join(row, " │ "), width)...)
	}
	return lines
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
			parts[i] = pad(text, w, right[i])
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
