// Command types checks the types of all packages and their tests as they are on other systems, from the source: what
// does not compile there is found without compiling it, in a tenth of the time. Of packages that are not this
// module's only the declarations are read.
//
//	go run ./.ci/types freebsd/amd64 linux/arm64
//
// Each error is FILE:LINE:COLUMN: MESSAGE. The exit code is 1 with one, and 2 without a target or if the packages cannot
// be listed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "name at least one target, as in: go run ./.ci/types freebsd/amd64")
		os.Exit(2)
	}

	failed := false
	for _, target := range os.Args[1:] {
		sum, found, err := check(target, ".")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for _, f := range found {
			fmt.Fprintf(os.Stderr, "%v (%s)\n", f, target)
		}
		failed = failed || len(found) > 0
		fmt.Printf("%s: the types of %d packages and tests, and the declarations of %d others\n", target, sum.ours, sum.others)
	}

	if failed {
		os.Exit(1)
	}
}

// A listed is a package as go list shows it. That of a test is one of its own, with a name such as "p [p.test]".
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string // what an import in the source means, where that is not its own name
	Module     *struct {
		Main      bool
		GoVersion string
	}

	done  chan struct{}
	types *types.Package // once done is closed
}

func (p *listed) ours() bool { return p.Module != nil && p.Module.Main }

// A tally is how many packages were looked at.
type tally struct{ ours, others int }

// check checks the packages of the module in dir for a target such as linux/arm64, and returns what is wrong.
func check(target, dir string) (sum tally, found []error, err error) {
	system, processor, ok := strings.Cut(target, "/")
	sizes := types.SizesFor("gc", processor)
	if !ok || sizes == nil {
		return sum, nil, fmt.Errorf("%q is no target such as linux/arm64", target)
	}
	all, err := list(system, processor, dir)
	if err != nil {
		return sum, nil, err
	}

	c := &checker{packages: all, sizes: sizes, files: token.NewFileSet(), turn: make(chan struct{}, runtime.GOMAXPROCS(0))}
	var every sync.WaitGroup
	for _, p := range all {
		if p.ours() {
			sum.ours++
		} else {
			sum.others++
		}
		every.Go(func() { c.one(p) })
	}
	every.Wait()
	slices.SortFunc(c.found, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })

	return sum, slices.CompactFunc(c.found, func(a, b error) bool { return a.Error() == b.Error() }), nil
}

// list lists all packages in dir with their tests and what they import.
func list(system, processor, dir string) (map[string]*listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s/%s: %w", system, processor, err)
	}

	all := map[string]*listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &listed{done: make(chan struct{})}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list for %s/%s: %w", system, processor, err)
		}
		if !strings.HasSuffix(p.ImportPath, ".test") && p.ImportPath != "unsafe" { // a test's main is made by go test
			all[p.ImportPath] = p
		}
	}
}

// A checker checks the types of packages, each when those that it imports are done.
type checker struct {
	packages map[string]*listed
	sizes    types.Sizes
	files    *token.FileSet
	turn     chan struct{} // as many at once as there are processors

	mu    sync.Mutex
	found []error
}

func (c *checker) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = append(c.found, err)
}

func (c *checker) one(p *listed) {
	defer close(p.done)
	var files []*ast.File
	c.turn <- struct{}{}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.note(err)
			continue
		}
		files = append(files, f)
	}
	<-c.turn

	for _, f := range files {
		for _, i := range f.Imports {
			if q := c.meant(p, strings.Trim(i.Path.Value, `"`)); q != nil {
				<-q.done
			}
		}
	}

	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	conf := types.Config{Sizes: c.sizes, IgnoreFuncBodies: !p.ours(), Error: c.note,
		Importer: importer(func(path string) (*types.Package, error) {
			if path == "unsafe" {
				return types.Unsafe, nil
			}
			if q := c.meant(p, path); q != nil && q.types != nil {
				return q.types, nil
			}
			return nil, fmt.Errorf("%s is not here", path)
		})}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	name, _, _ := strings.Cut(p.ImportPath, " ")
	p.types, _ = conf.Check(name, c.files, files, nil) // its errors were noted
}

// meant is the package that an import in the source of p means; nil: it is not listed, such as unsafe.
func (c *checker) meant(p *listed, path string) *listed {
	if other, ok := p.ImportMap[path]; ok {
		path = other
	}
	return c.packages[path]
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
