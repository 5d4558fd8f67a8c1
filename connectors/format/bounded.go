package format

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// goldmark takes a time that grows with the square, or more, of how deep blocks are nested and of how many delimiters and
// brackets are open in one paragraph. What is beyond these is text; nothing that somebody writes to be read has as many.
const (
	mostBlocks     = 50 // one in the other, an item of a list and its list counting as two
	mostDelimiters = 1000
	mostBrackets   = 500
)

// nested is a block parser that opens no block where many are open.
type nested struct{ parser.BlockParser }

func (n nested) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for above := parent; above != nil; above = above.Parent() {
		depth++
	}
	if depth > mostBlocks {
		return nil, parser.NoChildren
	}

	return n.BlockParser.Open(parent, reader, pc)
}

// opened is how many delimiters a paragraph has by now.
var opened = parser.NewContextKey()

// delimited is a parser of delimiters that takes no more of them where a paragraph has many.
type delimited struct{ parser.InlineParser }

func (d delimited) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if pc.LastDelimiter() == nil { // the paragraph before was closed
		pc.Set(opened, 0)
	}
	n := pc.Get(opened).(int)
	if n == mostDelimiters {
		return nil
	}

	node := d.InlineParser.Parse(parent, block, pc)
	if node != nil {
		pc.Set(opened, n+1)
	}

	return node
}

// brackets is how many brackets a paragraph has by now.
var brackets = parser.NewContextKey()

// bracketed is the parser of links, for which the brackets behind the first of a paragraph are text.
type bracketed struct{ parser.InlineParser }

func (b bracketed) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if block.Peek() != ']' {
		n, _ := pc.Get(brackets).(int)
		if n == mostBrackets {
			return nil
		}
		pc.Set(brackets, n+1)
	}

	return b.InlineParser.Parse(parent, block, pc)
}

// CloseBlock is part of parser.CloseBlocker.
func (b bracketed) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	b.InlineParser.(parser.CloseBlocker).CloseBlock(parent, block, pc)
	pc.Set(brackets, 0)
}
