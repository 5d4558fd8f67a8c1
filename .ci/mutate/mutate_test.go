package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `package sample

func sum(list []int) (n int, err error) {
	for _, v := range list {
		if v < 0 && n != 0 {
			report()
			s.log.Warn("odd", "n", n)
			return n, err
		}
		n += v
	}
	if err := check(n); err != nil {
		return 0, err
	}
	return n, nil
}

func even(n int) bool { return true }

func odd(n int) (bool, error) {
	if err := check(n); err != nil {
		return false, err
	}
	return true, nil
}
`

// Each kind of change is made where it can be, and what comes out is still a Go file.
func TestMutants(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sample.go"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := mutants(dir)
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]string{
		"comparison swapped": "v >= 0 && n != 0", "&& for ||": "v < 0 || n != 0", "condition never true": "if false && (v < 0 && n != 0) {",
		"call left out": "{\n\t\t\t\n\t\t\ts.log", "sign turned": "n -= v", "error swallowed": "return n, nil",
		"return inverted": "return false",
	}
	for _, m := range made {
		if _, err := parser.ParseFile(token.NewFileSet(), "x.go", m.source, 0); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if text, ok := want[m.what]; ok && strings.Contains(string(m.source), text) {
			delete(want, m.what)
		}
		if m.what == "call left out" && strings.Contains(m.before, "log.") {
			t.Errorf("%s: a line of a log is left out, which no test should see", m)
		}
		if m.what == "return inverted" && strings.Contains(string(m.source), "true, err") {
			t.Errorf("%s: beside an error nobody looks at it", m)
		}
		if string(m.source) == sample {
			t.Errorf("%s: nothing was changed", m)
		}
	}
	for what := range want {
		t.Errorf("no mutant of the kind %q as wanted among %d", what, len(made))
	}
}
