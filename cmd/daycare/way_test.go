//go:build !race

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReferenceOfAMessagesWay: the functions that docs/architecture.md names on the way of a
// message exist. That they run is what .ci/turn shows.
func TestReferenceOfAMessagesWay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| step | package | functions |\n|---|---|---|\n")
	if !ok {
		t.Fatal("the table is not there")
	}

	known := map[string]bool{}
	for _, folder := range []string{"engine", "engine/inbox", "agents", "cmd/daycare/daemon", "tools/files", "connectors/webhook"} {
		declare(t, known, folder)
	}
	names := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			break
		}
		for i, name := range strings.Split(cells[3], "`") {
			if i%2 == 0 || strings.Contains(name, "/") {
				continue
			}
			if names++; !known[name] {
				t.Errorf("there is no function %s: see go run ./.ci/turn -v", name)
			}
		}
	}

	if names < 30 {
		t.Errorf("the table names %d functions", names)
	}
}

// declare adds the functions of a folder, as Type.Name, package.Name and package.Type.Name.
func declare(t *testing.T, known map[string]bool, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range tree.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}

			name := f.Name.Name
			if on := receiverOf(f); on != "" {
				known[on+"."+name], name = true, on+"."+name
			}
			known[tree.Name.Name+"."+name] = true
		}
	}
}

// receiverOf is the name of the type that a method belongs to, "" for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	on := f.Recv.List[0].Type
	if star, ok := on.(*ast.StarExpr); ok {
		on = star.X
	}
	if generic, ok := on.(*ast.IndexExpr); ok {
		on = generic.X
	}
	if name, ok := on.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
