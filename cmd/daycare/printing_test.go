package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Names, paths and texts of others reach a terminal through term.Printf, which spells what could steer it. So nothing else
// formats for standard output or standard error.
func TestOnlyTermPrintsForUsers(t *testing.T) {
	files, calls := token.NewFileSet(), 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch name := called(call); {
			case name == "term.Printf", strings.HasSuffix(name, ".Print"), strings.HasSuffix(name, ".Say"):
				calls++
			case printsForUsers(name, call) && !ownCharacters[filepath.ToSlash(path)]:
				t.Errorf("%s: %s writes to a user's terminal; use Print, Say or term.Printf", files.Position(call.Pos()), name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls < 100 {
		t.Errorf("only %d calls print for users; does this test still look at them?", calls)
	}
	t.Logf("%d calls print for users", calls)
}

// ownCharacters are the files that print nothing of others: help, and a bar that is drawn over itself.
var ownCharacters = map[string]bool{"term/app.go": true, "chaos/command.go": true}

// called is the name of what a call calls, such as fmt.Fprintln.
func called(call *ast.CallExpr) string {
	if f, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
		return "." + f.Sel.Name
	}
	return ""
}

// printsForUsers reports whether a call formats for standard output or standard error.
func printsForUsers(name string, call *ast.CallExpr) bool {
	switch {
	case name == "fmt.Print", name == "fmt.Printf", name == "fmt.Println":
		return true
	case !strings.HasPrefix(name, "fmt.Fprint") && name != "io.WriteString" || len(call.Args) == 0:
		return false
	}
	to, ok := call.Args[0].(*ast.SelectorExpr)

	return ok && (to.Sel.Name == "Out" || to.Sel.Name == "Err" || to.Sel.Name == "Stdout" || to.Sel.Name == "Stderr")
}
