package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A function of the program, without closures: those belong to it.
type function struct {
	pkg, file string // the folder, and the name of the file in it
	receiver  string // name of its type; "" is a function without one
	name      string
}

func (f function) String() string {
	if f.receiver == "" {
		return f.pkg + "." + f.name
	}
	return f.pkg + "." + f.receiver + "." + f.name
}

// is reports whether name means f: its name alone, or after its receiver, its package, or both.
func (f function) is(name string) bool {
	full := path.Base(f.pkg) + "." + f.name
	if f.receiver != "" {
		full = path.Base(f.pkg) + "." + f.receiver + "." + f.name
	}

	return name == full || strings.HasSuffix(full, "."+name) || name == path.Base(f.pkg)+"."+f.name
}

// counters is the folder of the package that counts, which only the overlay has.
const counters = "engine/zzcounters"

// instrument writes copies of all files of the program with a counter at the beginning of each
// function, and the overlay that names them, and returns the functions by number.
func instrument(tree, scratch string) (all []function, err error) {
	module, err := moduleOf(tree)
	if err != nil {
		return nil, err
	}

	replace := map[string]string{}
	put := func(file string, text []byte) error {
		to := filepath.Join(scratch, fmt.Sprintf("%d.go", len(replace)))
		replace[filepath.Join(tree, file)] = to
		return os.WriteFile(to, text, 0o600)
	}
	err = filepath.WalkDir(tree, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != tree && (strings.HasPrefix(name, ".") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}

		rel, err := filepath.Rel(tree, file)
		if err != nil {
			return err
		}
		text, found, err := counted(tree, filepath.ToSlash(rel), module, len(all))
		if err != nil || len(found) == 0 {
			return err
		}
		all = append(all, found...)

		return put(rel, text)
	})
	if err != nil {
		return nil, err
	}

	if err := put(filepath.Join(counters, "counters.go"), fmt.Appendf(nil, counter, len(all))); err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}

	return all, os.WriteFile(filepath.Join(scratch, "overlay.json"), overlay, 0o600)
}

// moduleOf returns the path of the module of a checkout.
func moduleOf(tree string) (string, error) {
	text, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")

	return strings.TrimSpace(strings.TrimPrefix(first, "module")), nil
}

// counted returns the text of a file with counters, of which the first has the number next. No
// line is added, so the positions in errors of the compiler hold.
func counted(tree, rel, module string, next int) (text []byte, found []function, err error) {
	text, err = os.ReadFile(filepath.Join(tree, filepath.FromSlash(rel)))
	if err != nil {
		return nil, nil, err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}

	type insertion struct {
		at   int
		text string
	}
	insertions := []insertion{{fset.Position(parsed.Name.End()).Offset, fmt.Sprintf("; import zzcounters %q", module+"/"+counters)}}
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		insertions = append(insertions, insertion{fset.Position(f.Body.Lbrace).Offset + 1,
			fmt.Sprintf(" zzcounters.At(%d);", next+len(found))})
		found = append(found, function{pkg: path.Dir(rel), file: path.Base(rel), receiver: receiver(f), name: f.Name.Name})
	}

	for _, in := range slices.Backward(insertions) {
		text = slices.Insert(text, in.at, []byte(in.text)...)
	}

	return text, found, nil
}

// receiver is the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	for e := f.Recv.List[0].Type; ; {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return "?"
		}
	}
}

// counter is the package that counts: a signal makes it write the numbers of the functions that
// ran since the last one, in the order of their first calls.
const counter = `package zzcounters

import (
	"bytes"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

var (
	ran   [%d]atomic.Bool
	mu    sync.Mutex
	order []int
)

func At(id int) {
	if ran[id].Load() || ran[id].Swap(true) {
		return
	}
	mu.Lock()
	order = append(order, id)
	mu.Unlock()
}

func init() {
	file := os.Getenv("DAYCARE_TURN")
	if file == "" {
		return
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	go func() {
		for range asked {
			mu.Lock()
			var out bytes.Buffer
			for _, id := range order {
				out.WriteString(strconv.Itoa(id) + "\n")
				ran[id].Store(false)
			}
			order = nil
			mu.Unlock()
			os.WriteFile(file+".new", out.Bytes(), 0o600)
			os.Rename(file+".new", file)
		}
	}()
}
`
