package format

import (
	"bufio"
	"bytes"
	"html"
	"sync"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Parser parses Markdown wherever users read it: CommonMark (https://spec.commonmark.org/0.31.2/) with the tables, struck
// text and task boxes of GitHub's flavour (https://github.github.com/gfm/), which have the types of goldmark's extension/ast.
// There is no HTML in it, so that tags are text that a user sees, and no reference is defined in one place and used in
// another, because the two may be split into two messages.
//
// goldmark's package extension has these three, too. It is not used, because it compiles expressions for what is not used here
// whenever a program starts that contains it.
var Parser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(nested{parser.NewListParser()}, 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(nested{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithParagraphTransformers(util.Prioritized(findTable{}, 200)),
		parser.WithInlineParsers(
			util.Prioritized(taskBox{}, 0), // before links, which begin like one
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(bracketed{parser.NewLinkParser()}, 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(delimited{parser.NewEmphasisParser()}, 500),
			util.Prioritized(delimited{struck{}}, 500),
		),
		parser.WithASTTransformers(util.Prioritized(inOrderOfText{}, 100)),
	)
})

// Text is what a user reads of a text node: backslash escapes and entities are resolved, but in code. What an entity stands for
// may be any character, also one that steers a terminal.
func Text(n *ast.Text, src []byte) string {
	if n.IsRaw() {
		return string(n.Segment.Value(src))
	}
	return Unescape(n.Segment.Value(src))
}

// Box is how the box of a task looks.
func Box(n *tables.TaskCheckBox) string {
	if n.IsChecked {
		return "☑ "
	}
	return "☐ "
}

// Unescape resolves backslash escapes and entities as Markdown means them: goldmark does it while it writes HTML.
func Unescape(raw []byte) string {
	if !bytes.ContainsAny(raw, "\\&\x00") {
		return string(raw)
	}
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	ghtml.DefaultWriter.Write(w, raw)
	w.Flush()

	return html.UnescapeString(b.String())
}

// struck parses ~~struck~~ text, and text between single tildes.
type struck struct{}

func (struck) Trigger() []byte { return []byte{'~'} }

func (s struck) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	tildes := parser.ScanDelimiter(line, before, 1, s)
	if tildes == nil || tildes.OriginalLength > 2 || before == '~' {
		return nil
	}

	tildes.Segment = segment.WithStop(segment.Start + tildes.OriginalLength)
	block.Advance(tildes.OriginalLength)
	pc.PushDelimiter(tildes)
	return tildes
}

// IsDelimiter is part of parser.DelimiterProcessor, as the two that follow.
func (struck) IsDelimiter(b byte) bool { return b == '~' }

func (struck) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && opener.OriginalLength == closer.OriginalLength
}

func (struck) OnMatch(int) ast.Node { return tables.NewStrikethrough() }

// taskBox parses the box that a list item begins with: "[ ] to do", "[x] done".
type taskBox struct{}

func (taskBox) Trigger() []byte { return []byte{'['} }

func (taskBox) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	item := parent.Parent()
	if item == nil || item.Kind() != ast.KindListItem || item.FirstChild() != parent || parent.HasChildren() {
		return nil
	}

	line, _ := block.PeekLine()
	if len(line) < 3 || line[2] != ']' || len(line) > 3 && !util.IsSpace(line[3]) {
		return nil
	}
	done := line[1] == 'x' || line[1] == 'X'
	if !done && line[1] != ' ' {
		return nil
	}

	block.Advance(3 + len(line[3:]) - len(bytes.TrimLeft(line[3:], " \t\n")))
	return tables.NewTaskCheckBox(done)
}

// inOrderOfText puts a heading in front of the table that follows its text. Where a line of
// dashes comes after the table, the parser makes a heading of the text before the table, and
// leaves it behind the table.
type inOrderOfText struct{}

func (inOrderOfText) Transform(document *ast.Document, _ text.Reader, _ parser.Context) {
	var headings []ast.Node
	ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never an error
		if entering && n.Kind() == ast.KindHeading {
			headings = append(headings, n)
		}
		return ast.WalkContinue, nil
	})

	for _, h := range headings {
		parent := h.Parent()
		for before := h.PreviousSibling(); before != nil && before.Kind() == tables.KindTable && h.Pos() <= before.Pos(); {
			parent.InsertBefore(parent, before, h)
			before = h.PreviousSibling()
		}
	}
}
