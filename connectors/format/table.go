package format

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// tableWidth is how many characters wide a table may be to be shown in columns:
// what a phone shows of fixed-width text without breaking lines, and some more.
const tableWidth = 60

// mostRepeated is how many characters of a head are repeated for the rows of a table that is too wide for columns.
const mostRepeated = 1 << 18

// A cell is the content of one cell of a table.
type cell struct {
	spans []span
	right bool
}

func (c cell) text() string {
	var b strings.Builder
	for _, s := range c.spans {
		b.WriteString(strings.ReplaceAll(s.text, "\n", " "))
	}

	return b.String()
}

// table writes a table in columns if it is narrow enough, else each row as a small list under
// its first cell, unless the head, which each of these has, makes that much longer than the table.
func (w *writer) table(n *tables.Table) {
	var rows [][]cell
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		rows = append(rows, w.row(r))
	}
	widths := []int{}
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text()))
		}
	}

	total := 2 * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	if total <= tableWidth {
		w.columns(rows, widths, total)
		return
	}

	head := 0
	for _, c := range rows[0] {
		head += utf8.RuneCountInString(c.text())
	}
	if head*len(rows) > mostRepeated {
		w.bars(rows)
		return
	}

	w.records(rows)
}

func (w *writer) row(r ast.Node) []cell {
	var row []cell
	for c := r.FirstChild(); c != nil; c = c.NextSibling() {
		inner := &writer{src: w.src}
		inner.inlines(c)
		row = append(row, cell{joined(inner.spans), c.(*tables.TableCell).Alignment == tables.AlignRight})
	}

	return row
}

func (w *writer) columns(rows [][]cell, widths []int, total int) {
	var b strings.Builder
	for i, row := range rows {
		if i == 1 {
			b.WriteString("\n" + strings.Repeat("─", max(total, 1)))
		}
		var line strings.Builder
		for j, c := range row {
			gap := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(c.text()))
			if j > 0 {
				line.WriteString("  ")
			}
			if c.right {
				line.WriteString(gap + c.text())
			} else {
				line.WriteString(c.text() + gap)
			}
		}

		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
	}

	for _, row := range rows { // where a link leads does not fit into a column
		for _, c := range row {
			for _, s := range c.spans {
				if s.link != "" && s.link != s.text {
					b.WriteString("\n" + s.text + ": " + s.link)
				}
			}
		}
	}

	w.span(span{text: b.String(), style: w.style | pre})
}

// bars writes each row on a line.
func (w *writer) bars(rows [][]cell) {
	lines := make([]string, len(rows))
	for i, row := range rows {
		texts := make([]string, len(row))
		for j, c := range row {
			texts[j] = c.text()
		}
		lines[i] = strings.Join(texts, " | ")
	}
	w.span(span{text: strings.Join(lines, "\n"), style: w.style | pre})
}

func (w *writer) records(rows [][]cell) {
	if len(rows) == 1 {
		rows = append(rows, nil) // a header alone is all there is to say
	}
	header := rows[0]
	for i, row := range rows[1:] {
		if i > 0 {
			w.span(span{text: "\n\n", style: w.style})
		}
		for j := range max(len(row), len(header)) {
			if j > 0 {
				w.span(span{text: "\n", style: w.style})
			}
			w.field(j, header, row)
		}
	}
}

// field writes "Header: cell". The header is in each record, because the next
// record may be in the next message.
func (w *writer) field(j int, header, row []cell) {
	if j < len(header) && len(header[j].spans) > 0 {
		w.styled(bold, func() { w.cell(header[j]) })
		w.span(span{text: ": ", style: w.style})
	}
	if j < len(row) {
		w.cell(row[j])
	}
}

func (w *writer) cell(c cell) {
	for _, s := range c.spans {
		w.span(span{text: strings.ReplaceAll(s.text, "\n", " "), style: s.style | w.style, link: s.link})
	}
}
