package crash

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// stepsOf says which points a call passes, by the name of the method that is called
// with the beginning of their names. The methods are those of engine/disk.
var stepsOf = map[string][]string{
	"WriteFile":    {".write", ".sync", ".rename", ".dirsync"},
	"AddFile":      {".write", ".sync", ".rename"},
	"Exchange":     {".write", ".sync", ".rename", ".dirsync"},
	"Amend":        {".write", ".sync", ".rename", ".dirsync"},
	"WriteDraft":   {".write", ".rename"},
	"WriteDraftOf": {".write", ".rename"},
	"Link":         {".link"},
	"writeNew":     {".write", ".sync"},
	"ReplaceIn":    {".write", ".sync", ".rename", ".dirsync"},
	"SyncIn":       {".dirsync"},
	"MkdirIn":      {".dirsync"},
	"Rename":       {".rename", ".dirsync"},
	"Remove":       {".unlink"},
	"SyncDir":      {""},
	"SyncFile":     {""},
	"Write":        {""}, // crash.Write and crash.Do and crash.Point
	"Do":           {""},
	"Point":        {""},
}

// TestEveryStepIsKnown reads the source for points that the list lacks: passing one
// while failpoints are armed or traced is a panic, which would only be seen there.
func TestEveryStepIsKnown(t *testing.T) {
	root := filepath.Join("..", "..")
	known, looked := map[string]bool{}, 0
	for _, name := range names {
		known[name] = true
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}

		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		for node := range ast.Preorder(file) {
			for _, name := range passes(node) {
				looked++
				if !known[name] {
					t.Errorf("%s passes the failpoint %s, which is not in the list: add it to names in crash.go",
						set.Position(node.Pos()), name)
				}
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < len(names)/2 {
		t.Errorf("only %d passings of points were found for %d names: the methods in stepsOf are not those of engine/disk any more",
			looked, len(names))
	}
}

// passes lists the points of a call with a literal step.
func passes(node ast.Node) (points []string) {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	name, log := "", false
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
		log = name == "OpenLog"
	case *ast.Ident:
		name = f.Name
	}

	if log && len(call.Args) == 2 {
		if options, ok := call.Args[1].(*ast.CompositeLit); ok {
			for _, e := range options.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "Name" {
					points = suffixed(kv.Value, []string{".write", ".sync"})
				}
			}
		}
		return points
	}

	return suffixed(call.Args[0], stepsOf[name])
}

// suffixed are the points that begin with a literal; nothing if e is none, or the
// name of a file.
func suffixed(e ast.Expr, suffixes []string) (points []string) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return nil
	}
	step, err := strconv.Unquote(literal.Value)
	if err != nil || strings.ContainsAny(step, " /") {
		return nil
	}
	for _, suffix := range suffixes {
		points = append(points, step+suffix)
	}

	return points
}

func TestNamesAreDistinct(t *testing.T) {
	sorted := slices.Sorted(slices.Values(names))
	if n := len(slices.Compact(sorted)); n != len(names) {
		t.Errorf("%d names, %d of them distinct", len(names), n)
	}
}
