package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is one changed place of a file.
type mutant struct {
	file string
	line int
	what string // what was done to it
	text string // the text that is there
}

func (m mutant) String() string {
	text := strings.Join(strings.Fields(m.text), " ")
	if len(text) > 100 {
		text = text[:100] + "…"
	}

	return fmt.Sprintf("%s:%d  %s: %s", filepath.ToSlash(m.file), m.line, m.what, text)
}

// in reports whether it is at one of some places: base names of files, or such a name and a line, with commas.
func (m mutant) in(places string) bool {
	name := filepath.Base(m.file)
	return slices.ContainsFunc(strings.Split(places, ","), func(p string) bool { return p == name || p == fmt.Sprintf("%s:%d", name, m.line) })
}

// A pack is a package as it is compiled here, without its tests.
type pack struct {
	dir   string
	fset  *token.FileSet
	files []*file
	types *types.Package
	info  *types.Info
}

// A file is a source file, and what is put into it.
type file struct {
	path   string
	tree   *ast.File
	source []byte
	made   []mutant
	opens  []put
	closes []put
	first  int               // the number of its first mutant
	failed map[ast.Stmt]bool // returns beside an error: nobody looks at the other results
}

// A put is a text that goes between two bytes of the source.
type put struct {
	at   int
	text string
}

// load reads a package and the types of its expressions.
func load(pkg string) (*pack, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,DepOnly", pkg)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}

	type listed struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
		DepOnly                 bool
	}
	var it listed
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}

		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			it = l
		}
	}

	p := &pack{dir: it.Dir, fset: token.NewFileSet(), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	var trees []*ast.File
	for _, name := range it.GoFiles {
		f := &file{path: filepath.Join(it.Dir, name), failed: map[ast.Stmt]bool{}}
		if f.source, err = os.ReadFile(f.path); err != nil {
			return nil, err
		}
		if f.tree, err = parser.ParseFile(p.fset, f.path, f.source, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		trees, p.files = append(trees, f.tree), append(p.files, f)
	}

	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", open)}
	p.types, err = conf.Check(it.ImportPath, p.fset, trees, p.info)
	return p, err
}

// mutate makes the mutants of a file, numbered from first, and returns the source with
// all of them in it. Nothing of the source is taken away: what is put in changes nothing
// until its mutant is switched on.
func (p *pack) mutate(f *file, first int) []byte {
	f.first = first
	c := &changer{p, f}
	ast.Inspect(f.tree, c.visit)

	// A node inside another is visited after it: of what opens at one place the outer
	// comes first, of what closes the inner, and something closes before another opens.
	slices.Reverse(f.closes)
	all := slices.Concat(f.closes, f.opens)
	slices.SortStableFunc(all, func(a, b put) int { return cmp.Compare(a.at, b.at) })
	var out bytes.Buffer
	at := 0
	for _, p := range all {
		out.Write(f.source[at:p.at])
		out.WriteString(p.text)
		at = p.at
	}

	out.Write(f.source[at:])
	return out.Bytes()
}

// A changer makes the mutants of one file.
type changer struct {
	*pack
	*file
}

func (c *changer) offset(p token.Pos) int { return c.fset.Position(p).Offset }

// text is the source of a node.
func (c *changer) text(n ast.Node) string {
	return string(c.source[c.offset(n.Pos()):c.offset(n.End())])
}

// number notes a mutant and returns its number.
func (c *changer) number(what string, n ast.Node) int {
	path := c.path
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil {
			path = rel
		}
	}
	c.made = append(c.made, mutant{path, c.fset.Position(n.Pos()).Line, what, c.text(n)})

	return c.first + len(c.made) - 1
}

// around puts one text before a node and one behind it.
func (c *changer) around(n ast.Node, before, behind string) {
	c.opens = append(c.opens, put{c.offset(n.Pos()), before})
	c.closes = append(c.closes, put{c.offset(n.End()), behind})
}

func (c *changer) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR // constants and types have to stay so
	case *ast.ArrayType:
		return false
	case *ast.BinaryExpr:
		c.operator(n)
	case *ast.IfStmt:
		if c.seeded(n.Cond) {
			return false
		}
		if c.onlyLogs(n) {
			if n.Init != nil {
				ast.Inspect(n.Init, c.visit)
			}
			return false
		}
		c.condition(n)
		if c.text(n.Cond) == "err != nil" {
			for _, s := range n.Body.List {
				c.failed[s] = true
			}
		}
	case *ast.BlockStmt:
		c.calls(n.List)
	case *ast.CaseClause:
		if slices.ContainsFunc(n.List, c.seeded) {
			return false
		}
		c.calls(n.Body)
	case *ast.CommClause:
		c.calls(n.Body)
	case *ast.AssignStmt:
		if n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN {
			c.sign(n, n.Rhs[0])
		}
	case *ast.ReturnStmt:
		c.results(n)
	}

	return true
}

// calls leaves out those of a list of statements that are a call.
func (c *changer) calls(list []ast.Stmt) {
	for _, s := range list {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		if call, ok := e.X.(*ast.CallExpr); ok && c.text(call.Fun) != "panic" && !c.logs(call) {
			c.around(s, fmt.Sprintf("if !mutateOn(%d) { ", c.number("call left out", s)), " }")
		}
	}
}

// onlyLogs reports whether a branch does nothing but write lines of a log.
func (c *changer) onlyLogs(n *ast.IfStmt) bool {
	return n.Else == nil && len(n.Body.List) > 0 && !slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			return true
		}
		call, ok := e.X.(*ast.CallExpr)
		return !ok || !c.logs(call)
	})
}

// logs reports whether a call writes a line of a log, which is for users to read and
// changes nothing else.
func (c *changer) logs(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log"}, f.Sel.Name) {
		return false
	}
	of := c.info.Types[f.X].Type

	return strings.HasSuffix(strings.ToLower(c.text(f.X)), "log") || of != nil && of.String() == "*log/slog.Logger"
}

// seeded reports whether a condition is that of a seeded bug, which is never switched on in this build.
func (c *changer) seeded(cond ast.Expr) bool { return strings.Contains(c.text(cond), "crash.Bug(") }

func (c *changer) operator(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LSS, token.GEQ, token.GTR, token.LEQ, token.EQL, token.NEQ:
		c.around(n, fmt.Sprintf("(mutateOn(%d) != (", c.number("comparison swapped", n)), "))")
	case token.LAND, token.LOR:
		// By De Morgan's law one becomes the other if both sides and the result are inverted.
		what := "&& for ||"
		if n.Op == token.LAND {
			what = "|| for &&"
		}
		on := fmt.Sprintf("(mutateOn(%d) != (", c.number(what, n))
		c.around(n, on, "))")
		c.around(n.X, on, "))")
		c.around(n.Y, on, "))")
	case token.ADD, token.SUB:
		if c.info.Types[n].Value == nil {
			c.sign(n, n.Y)
		}
	}
}

// sign turns the sign of what is added to something, or taken from it.
func (c *changer) sign(n ast.Node, of ast.Expr) {
	t := c.info.Types[of]
	basic, ok := t.Type.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsNumeric == 0 {
		return
	}

	before, behind := "mutateSign(%d, ", ")"
	if t.Value != nil { // a constant takes its type from what is around it
		name := types.TypeString(t.Type, func(p *types.Package) string {
			if p == c.types {
				return ""
			}
			return p.Name()
		})
		before, behind = before+strings.TrimPrefix(name, "untyped ")+"(", "))"
	}

	c.around(of, fmt.Sprintf(before, c.number("sign turned", n)), behind)
}

// condition makes a branch that is never taken; for a failed call that is an error
// which is swallowed.
func (c *changer) condition(n *ast.IfStmt) {
	what := "condition never true"
	if strings.HasSuffix(c.text(n.Cond), "err != nil") {
		what = "error swallowed"
	}
	c.around(n.Cond, fmt.Sprintf("!mutateOn(%d) && (", c.number(what, n.Cond)), ")")
}

// results inverts what is returned: a truth, or an error.
func (c *changer) results(n *ast.ReturnStmt) {
	for _, r := range n.Results {
		switch text := c.text(r); {
		case c.failed[n] && (text == "true" || text == "false"):
		case text == "true" || text == "false":
			c.around(r, fmt.Sprintf("(mutateOn(%d) != ", c.number("return inverted", r)), ")")
		case text == "err":
			c.around(r, fmt.Sprintf("mutateErr(%d, ", c.number("error swallowed", r)), ")")
		}
	}
}
