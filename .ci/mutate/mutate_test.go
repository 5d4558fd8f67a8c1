package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

import "log/slog"

type list []int

var limit, longest = 2 + same(one), "a" + "b"

const one = 1 + 0

func (l list) sum() (n int, err error) {
	for _, v := range l {
		if v < 0 && n != 0 || v > limit+1 {
			report(v)
			log.Warn("odd", "n", n)
			return n, err
		}
		n += v
	}
	if err := check(n); err != nil {
		return 0, err
	}
	return n - one, nil
}

func even(n int) bool {
	if n%2 == 1 {
		log.Warn("odd", "n", n)
	}
	return true
}

func odd(n int) (bool, error) {
	if err := check(n); err != nil {
		return false, err
	}
	return true, nil
}

func kind(n int) int {
	says.Warn("odd", "n", n)
	switch {
	case n > 7 && crash.Bug("a kind"):
		return n + 8
	}
	return n
}

var (
	log   logger
	says  = slog.Default()
	crash bugs
)

type logger struct{}

type bugs struct{}

func (bugs) Bug(string) bool { return longest == "" }

func (logger) Warn(string, ...any) {}

func check(n int) error { return nil }

func same(n int) int { return n }

func report(int) {}
`

// sampleTest sees what sum returns, and not that it reports.
const sampleTest = `package sample

import "testing"

func TestSum(t *testing.T) {
	if n, err := (list{1, 2, 3}).sum(); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	if n, _ := (list{3, 4, 5}).sum(); n != 7 {
		t.Fatal(n)
	}
}

func TestOdd(t *testing.T) {
	if ok, err := odd(3); !ok || err != nil {
		t.Fatal(ok, err)
	}
}
`

// sampleModule is a folder with the sample as a module.
func sampleModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module sample\n\ngo 1.26\n", "sample.go": sample, "sample_test.go": sampleTest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)

	return dir
}

// Each kind of change is made where it can be, and all of them together compile.
func TestMutants(t *testing.T) {
	sampleModule(t)
	b, err := options{beside: 1}.build(".")
	if err != nil {
		t.Fatal(err)
	}
	defer b.remove()
	made := map[string]bool{}
	for _, m := range b.mutants {
		made[m.what+": "+m.text] = true
		if strings.Contains(m.text, "log.") || strings.Contains(m.text, "says.") || strings.Contains(m.text, "n%2") {
			t.Errorf("%s: a line of a log is left out, which no test should see", m)
		}
		if strings.Contains(m.text, "n > 7") || strings.Contains(m.text, "n + 8") {
			t.Errorf("%s: a seeded bug, which is never switched on", m)
		}
	}

	for _, want := range []string{
		"comparison swapped: v < 0", "comparison swapped: n != 0", "|| for &&: v < 0 && n != 0",
		"&& for ||: v < 0 && n != 0 || v > limit+1", "condition never true: v < 0 && n != 0 || v > limit+1",
		"sign turned: limit+1", "sign turned: 2 + same(one)", "sign turned: n += v", "sign turned: n - one", "call left out: report(v)",
		"error swallowed: err != nil", "error swallowed: err", "return inverted: true",
	} {
		if !made[want] {
			t.Errorf("no mutant %q", want)
		}
	}

	for _, not := range []string{"return inverted: false", "sign turned: 1 + 0", `sign turned: "a" + "b"`} {
		if made[not] {
			t.Errorf("a mutant %q, which no test could see or which does not compile", not)
		}
	}
}

// The mutants of some places are tried, and no others.
func TestPlaces(t *testing.T) {
	b := &binary{mutants: []mutant{{file: "x/a.go", line: 7}, {file: "x/a.go", line: 77}, {file: "x/b.go", line: 7}, {file: "x/ba.go", line: 7}}}
	for at, want := range map[string][]int{"a.go:7": {0}, "b.go,a.go:77": {1, 2}, "a.go": {0, 1}, "": {0, 1, 2, 3}, "c.go": nil} {
		got := b.choose("x", 1, options{at: at})
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("at %q there are %v, want %v", at, got, want)
		}
	}
}

// What the tests of the sample see is killed, and what they do not see survives.
func TestKill(t *testing.T) {
	dir := sampleModule(t)
	o := options{beside: 2}
	b, err := o.build(".")
	if err != nil {
		t.Fatal(err)
	}
	defer b.remove()
	if err := o.reach(b); err != nil {
		t.Fatal(err)
	}

	killed := map[int]bool{}
	var list []int
	for i := range b.mutants {
		list = append(list, i)
	}
	o.tryAll(b, list, killed)

	for i, m := range b.mutants {
		want := map[string]bool{
			"comparison swapped: v > limit+1": true, "sign turned: n += v": true, "sign turned: n - one": true,
			"return inverted: true": b.reaching(i) != nil, "call left out: report(v)": false, "error swallowed: err": false,
		}
		if w, ok := want[m.what+": "+m.text]; ok && killed[i] != w {
			t.Errorf("%s: killed %v, want %v", m, killed[i], w)
		}
	}

	if now, err := os.ReadFile(filepath.Join(dir, "sample.go")); err != nil || string(now) != sample {
		t.Errorf("the source was written: %v", err)
	}
}
