// Shape measures how the code is built: lines, functions, types with many methods,
// structs with many fields, crowded folders. It compares the figures with the limits
// below and exits with 1 where one is passed. A limit may only be lowered.
//
//	go run ./.ci/shape          the figures, and what is over a limit
//	go run ./.ci/shape -v       also every place that the figures count
//	go run ./.ci/shape -dirs    lines by folder
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// What is called many, and wide.
const (
	manyMethods = 20
	manyFields  = 12
	manyFiles   = 40
	wide        = 140 // columns, a tab being four
)

// limits are what the figures may be at most.
var limits = map[string]int{
	"types over 20 methods":   0,
	"methods of one type":     20,
	"structs over 12 fields":  16,
	"lines over 140 columns":  0,
	"folders over 40 files":   1,
	"lines of one function":   60,
	"lines of cmd/daycare":    620,
	"lines of one file":       500,
	"functions over 60 lines": 0,
}

// A place is something that a figure counts, largest first.
type place struct {
	where string
	n     int
}

type figures struct {
	lines, blank int
	functions    []place
	methods      map[string]int // "folder.Type"
	structs      []place        // over manyFields
	wide         []place
	files        map[string]int // by folder, without doc.go, which has no code
	dirs         map[string]int // lines by folder
	longest      []place        // files
}

func main() {
	log.SetFlags(0)
	verbose := flag.Bool("v", false, "print every place that a figure counts")
	dirs := flag.Bool("dirs", false, "print the lines of each folder")
	flag.Parse()
	f := &figures{methods: map[string]int{}, files: map[string]int{}, dirs: map[string]int{}}
	if err := filepath.WalkDir(".", f.visit); err != nil {
		log.Fatal(err)
	}
	if *dirs {
		for _, d := range sorted(f.dirs) {
			fmt.Printf("%7d  %s\n", d.n, d.where)
		}
		return
	}
	if f.print(*verbose) > 0 {
		os.Exit(1)
	}
}

// visit measures one file that is part of the program, and the lines of one that is a test.
func (f *figures) visit(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if d.IsDir() {
		if name := d.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
			return fs.SkipDir
		}
		return nil
	}
	if !strings.HasSuffix(path, ".go") {
		return nil
	}

	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f.columns(path, string(source))
	if strings.HasSuffix(path, "_test.go") {
		return nil
	}

	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	f.text(path, string(source))
	dir := filepath.ToSlash(filepath.Dir(path))
	for _, decl := range tree.Decls {
		f.decl(fset, dir, decl)
	}

	return nil
}

// text counts lines.
func (f *figures) text(path, source string) {
	dir := filepath.ToSlash(filepath.Dir(path))
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	if filepath.Base(path) != "doc.go" {
		f.files[dir]++
	}
	f.dirs[dir] += len(lines)
	f.lines += len(lines)
	f.longest = append(f.longest, place{filepath.ToSlash(path), len(lines)})

	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			f.blank++
		}
	}
}

// columns finds the lines that are too wide.
func (f *figures) columns(path, source string) {
	for i, line := range strings.Split(source, "\n") {
		if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > wide {
			f.wide = append(f.wide, place{fmt.Sprintf("%s:%d", filepath.ToSlash(path), i+1), n})
		}
	}
}

// decl counts functions, methods and fields.
func (f *figures) decl(fset *token.FileSet, dir string, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		at := fset.Position(decl.Pos())
		f.functions = append(f.functions, place{fmt.Sprintf("%s:%d %s", filepath.ToSlash(at.Filename), at.Line, decl.Name.Name),
			fset.Position(decl.End()).Line - at.Line + 1})
		if decl.Recv != nil {
			f.methods[dir+"."+receiver(decl.Recv.List[0].Type)]++
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if s, ok := t.Type.(*ast.StructType); ok && s.Fields.NumFields() > manyFields {
				f.structs = append(f.structs, place{dir + "." + t.Name.Name, s.Fields.NumFields()})
			}
		}
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}

	return "?"
}

// print shows the figures and returns how many are over their limit.
func (f *figures) print(verbose bool) (over int) {
	slices.SortFunc(f.functions, largest)
	slices.SortFunc(f.wide, largest)
	slices.SortFunc(f.structs, largest)
	slices.SortFunc(f.longest, largest)
	types := sorted(f.methods)
	at := func(percent int) int { return f.functions[len(f.functions)*(100-percent)/100].n }

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "lines\t%d\t\n", f.lines)
	fmt.Fprintf(w, "blank lines\t%.1f %%\t\n", 100*float64(f.blank)/float64(f.lines))
	fmt.Fprintf(w, "functions\t%d\tlines p50 %d, p99 %d\n", len(f.functions), at(50), at(99))

	for _, row := range []struct {
		name   string
		n      int
		places []place
	}{
		{"types over 20 methods", 0, above(types, manyMethods)},
		{"methods of one type", types[0].n, types[:1]},
		{"structs over 12 fields", 0, f.structs},
		{"functions over 60 lines", 0, above(f.functions, 60)},
		{"lines of one function", f.functions[0].n, f.functions[:1]},
		{"lines of one file", f.longest[0].n, f.longest[:1]},
		{"lines over 140 columns", 0, f.wide},
		{"folders over 40 files", 0, above(sorted(f.files), manyFiles)},
		{"lines of cmd/daycare", f.dirs["cmd/daycare"], nil},
	} {
		n := row.n
		if n == 0 {
			n = len(row.places)
		}
		note := fmt.Sprintf("limit %d", limits[row.name])
		if n > limits[row.name] {
			over++
			note = fmt.Sprintf("OVER THE LIMIT of %d", limits[row.name])
		}
		if len(row.places) > 0 {
			note += fmt.Sprintf("; largest %s (%d)", row.places[0].where, row.places[0].n)
		}

		fmt.Fprintf(w, "%s\t%d\t%s\n", row.name, n, note)
		if verbose || n > limits[row.name] {
			for _, p := range row.places {
				fmt.Fprintf(w, "\t\t  %5d  %s\n", p.n, p.where)
			}
		}
	}

	w.Flush()
	return over
}

func largest(a, b place) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.where, b.where)) }

func sorted(counts map[string]int) (list []place) {
	for where, n := range counts {
		list = append(list, place{where, n})
	}
	slices.SortFunc(list, largest)
	return list
}

// above are the places with more than n, of a list that is sorted.
func above(list []place, n int) []place {
	i := slices.IndexFunc(list, func(p place) bool { return p.n <= n })
	if i < 0 {
		return list
	}

	return list[:i]
}
