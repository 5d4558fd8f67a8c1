package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is a file with one place changed.
type mutant struct {
	file   string
	line   int
	what   string // what was done to it
	before string // the text that was there
	source []byte
}

func (m mutant) String() string {
	text := strings.Join(strings.Fields(m.before), " ")
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	return fmt.Sprintf("%s:%d  %s: %s", filepath.ToSlash(m.file), m.line, m.what, text)
}

// mutants are all that can be made of the files of a folder which are compiled here.
func mutants(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_darwin.go") || strings.HasSuffix(name, "_other.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		f := &changer{fset: token.NewFileSet(), file: file, source: source, failed: map[ast.Stmt]bool{}}
		tree, err := parser.ParseFile(f.fset, file, source, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tree.Comments, func(c *ast.CommentGroup) bool { return strings.HasPrefix(c.List[0].Text, "//go:build ") }) {
			continue // it may not be part of this build
		}
		ast.Inspect(tree, f.visit)
		all = append(all, f.made...)
	}
	return all, nil
}

// A changer makes the mutants of one file.
type changer struct {
	fset   *token.FileSet
	file   string
	source []byte
	made   []mutant
	failed map[ast.Stmt]bool // returns of an error that is there: nobody looks at the other results
}

// text is the source of a node.
func (c *changer) text(n ast.Node) string {
	return string(c.source[c.fset.Position(n.Pos()).Offset:c.fset.Position(n.End()).Offset])
}

// replace makes a mutant with the source from one place to another replaced.
func (c *changer) replace(what string, from, to token.Pos, with string) {
	a, b := c.fset.Position(from), c.fset.Position(to)
	source := slices.Concat(c.source[:a.Offset], []byte(with), c.source[b.Offset:])
	c.made = append(c.made, mutant{c.file, a.Line, what, string(c.source[a.Offset:b.Offset]), source})
}

func (c *changer) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		c.operator(n)
	case *ast.IfStmt:
		if strings.Contains(c.text(n.Cond), "crash.Bug(") {
			return false // a seeded bug, which is never switched on in this build
		}
		c.condition(n)
		if c.text(n.Cond) == "err != nil" {
			for _, s := range n.Body.List {
				c.failed[s] = true
			}
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && c.text(call.Fun) != "panic" && !c.logs(call) {
			c.replace("call left out", n.Pos(), n.End(), "")
		}
	case *ast.AssignStmt:
		c.assignment(n)
	case *ast.ReturnStmt:
		c.results(n)
	}
	return true
}

// logs reports whether a call writes a line of a log, which is for people to read and
// changes nothing else.
func (c *changer) logs(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && strings.HasSuffix(strings.ToLower(c.text(f.X)), "log") &&
		slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log"}, f.Sel.Name)
}

// swapped is the operator that stands in the place of another.
var swapped = map[token.Token]token.Token{
	token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
}

func (c *changer) operator(n *ast.BinaryExpr) {
	with, ok := swapped[n.Op]
	if !ok {
		return
	}
	what := "comparison swapped"
	switch n.Op {
	case token.LAND, token.LOR:
		what = n.Op.String() + " for " + with.String()
	case token.ADD, token.SUB:
		what = "sign turned"
	}
	a := c.fset.Position(n.OpPos).Offset
	source := slices.Concat(c.source[:a], []byte(with.String()), c.source[a+len(n.Op.String()):])
	c.made = append(c.made, mutant{c.file, c.fset.Position(n.OpPos).Line, what, c.text(n), source})
}

// condition makes a branch that is never taken; for a failed call that is an error
// which is swallowed.
func (c *changer) condition(n *ast.IfStmt) {
	what := "condition never true"
	if strings.HasSuffix(c.text(n.Cond), "err != nil") {
		what = "error swallowed"
	}
	c.replace(what, n.Cond.Pos(), n.Cond.End(), "false && ("+c.text(n.Cond)+")")
}

// assignment turns the sign of what is added up.
func (c *changer) assignment(n *ast.AssignStmt) {
	switch n.Tok {
	case token.ADD_ASSIGN:
		c.replace("sign turned", n.TokPos, n.TokPos+2, "-=")
	case token.SUB_ASSIGN:
		c.replace("sign turned", n.TokPos, n.TokPos+2, "+=")
	}
}

// results inverts what is returned: a truth, or an error.
func (c *changer) results(n *ast.ReturnStmt) {
	for _, r := range n.Results {
		switch text := c.text(r); {
		case c.failed[n] && (text == "true" || text == "false"):
		case text == "true":
			c.replace("return inverted", r.Pos(), r.End(), "false")
		case text == "false":
			c.replace("return inverted", r.Pos(), r.End(), "true")
		case text == "err":
			c.replace("error swallowed", r.Pos(), r.End(), "nil")
		}
	}
}
