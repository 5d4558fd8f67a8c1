package format

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// mostColumns is how many columns a table has at most; one with more is text.
const mostColumns = 60

// findTable makes a table of the lines of a paragraph that are one
// (https://github.github.com/gfm/#tables-extension-). Other than there, what a row has beyond the columns of the head is one
// more cell, so that nothing is lost, and a row that has less is not filled up, so that a table is no larger than its text.
type findTable struct{}

func (findTable) Transform(p *ast.Paragraph, reader text.Reader, _ parser.Context) {
	src, lines := reader.Source(), p.Lines()
	for i := 1; i < lines.Len(); i++ {
		delimiters := lines.At(i)
		aligned := alignments(delimiters.Value(src))
		if len(aligned) == 0 || len(aligned) > mostColumns {
			continue
		}
		head := row(lines.At(i-1), src, aligned)
		if head.ChildCount() != len(aligned) {
			continue
		}

		table := tables.NewTable()
		table.Alignments = aligned
		table.SetPos(p.Pos())
		table.AppendChild(table, tables.NewTableHeader(head))
		for _, line := range lines.Sliced(i+1, lines.Len()) {
			table.AppendChild(table, row(line, src, aligned))
		}
		p.Parent().InsertAfter(p.Parent(), p, table)
		above(p, i-1)
		return
	}
}

// above leaves only the first n lines of a paragraph, those above a table.
func above(p *ast.Paragraph, n int) {
	if n == 0 {
		p.Parent().RemoveChild(p.Parent(), p)
		return
	}

	p.Lines().SetSliced(0, n)
	last := p.Lines().At(n - 1)
	last.Stop-- // its line end
	p.Lines().Set(n-1, last)
}

// alignments reads the line under a table's head, such as "| --- | :-: |": how each column is
// aligned. It is nil for any other line.
func alignments(line []byte) []tables.Alignment {
	indent, _ := util.IndentWidth(line, 0)
	line = bytes.TrimSpace(line)
	if indent > 3 || !bytes.ContainsAny(line, "|:") {
		return nil
	}

	var aligned []tables.Alignment
	for column := range bytes.SplitSeq(bytes.TrimSuffix(bytes.TrimPrefix(line, []byte("|")), []byte("|")), []byte("|")) {
		column = bytes.TrimSpace(column)
		rest, left := bytes.CutPrefix(column, []byte(":"))
		dashes, right := bytes.CutSuffix(rest, []byte(":"))
		if len(dashes) == 0 || len(bytes.Trim(dashes, "-")) > 0 {
			return nil
		}
		aligned = append(aligned, alignment(left, right))
	}

	return aligned
}

func alignment(left, right bool) tables.Alignment {
	switch {
	case left && right:
		return tables.AlignCenter
	case left:
		return tables.AlignLeft
	case right:
		return tables.AlignRight
	}

	return tables.AlignNone
}

// row reads a line of a table.
func row(line text.Segment, src []byte, aligned []tables.Alignment) *tables.TableRow {
	r := tables.NewTableRow(aligned)
	r.SetPos(line.Start)
	line = line.TrimLeftSpace(src)
	line = line.TrimRightSpace(src)
	if line.Len() > 0 && src[line.Start] == '|' {
		line.Start++
	}

	for _, a := range aligned {
		if line.Len() == 0 {
			return r
		}
		end := bar(src, line)
		c := cellOf(line.WithStop(end), src)
		c.Alignment = a
		r.AppendChild(r, c)
		line.Start = min(end+1, line.Stop)
	}

	for line.Len() > 0 && bar(src, line.WithStart(line.Stop-1)) < line.Stop {
		line.Stop--
	}
	if line.Len() > 0 {
		r.AppendChild(r, cellOf(line, src))
	}

	return r
}

// bar is where the first bar of a segment is that ends a cell, or the end of the segment. The segment does not
// begin at the start of a line with a bar.
func bar(src []byte, in text.Segment) int {
	at := in.Start
	for at < in.Stop && (src[at] != '|' || src[at-1] == '\\') {
		at++
	}

	return at
}

// cellOf makes a cell. In code, where a backslash is text, one before a bar is left out: the bar would end the cell without it.
func cellOf(at text.Segment, src []byte) *tables.TableCell {
	c := tables.NewTableCell()
	c.SetPos(at.Start)
	at = at.TrimLeftSpace(src)
	at = at.TrimRightSpace(src)

	if _, code, found := bytes.Cut(at.Value(src), []byte("`")); found {
		from := at.Stop - len(code)
		for {
			bar := bytes.Index(src[from:at.Stop], []byte(`\|`))
			if bar < 0 {
				break
			}
			c.Lines().Append(at.WithStop(from + bar))
			at.Start = from + bar + 1
			from = at.Start
		}
	}
	if at.Len() > 0 {
		c.Lines().Append(at)
	}

	return c
}
