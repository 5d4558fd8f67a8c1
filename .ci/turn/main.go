// Turn prints which functions one message of a webhook runs, from its arrival to the
// record of its delivery: a turn with two calls of a model, a tool and an answer.
//
//	go run ./.ci/turn          how many functions and files of each package
//	go run ./.ci/turn -v       also every function, in the order of their first calls
//	go run ./.ci/turn -C DIR   the same for another checkout
//
// It builds the program with a counter at the beginning of each function, through an
// overlay of the go command, so the sources are never written. The agent sleeps when the
// message arrives; this is repeated, and what runs every time counts, in the order of the
// last one. It fails if a function of package main runs, or if docs/architecture.md names
// a function, in the table of a message's way, that does not run.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// rounds is how often the message is sent.
const rounds = 5

func main() {
	log.SetFlags(0)
	log.SetPrefix("turn: ")
	tree := flag.String("C", ".", "the checkout")
	verbose := flag.Bool("v", false, "print every function, in order")
	flag.Parse()

	scratch, err := os.MkdirTemp("", "daycare-turn-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(scratch)

	ran, err := trace(*tree, scratch)
	if err != nil {
		os.RemoveAll(scratch)
		log.Fatal(err)
	}

	if *verbose {
		for _, f := range ran {
			fmt.Println(f)
		}
		fmt.Println()
	}
	summary(ran)
	if wrong := judge(*tree, ran); len(wrong) > 0 {
		os.RemoveAll(scratch)
		log.Fatal(strings.Join(wrong, "\n"))
	}
}

// trace builds the program of a checkout with counters and returns the functions that
// every round ran, in the order of the last.
func trace(tree, scratch string) ([]function, error) {
	tree, err := filepath.Abs(tree)
	if err != nil {
		return nil, err
	}
	all, err := instrument(tree, scratch)
	if err != nil {
		return nil, err
	}

	binary := filepath.Join(scratch, "daycare")
	build := exec.Command("go", "build", "-buildvcs=false", "-overlay", filepath.Join(scratch, "overlay.json"),
		"-o", binary, "./cmd/daycare")
	build.Dir, build.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}

	always := map[int]int{}
	var last []int
	w, err := newWorld(scratch, binary)
	if err != nil {
		return nil, err
	}
	defer w.close()
	for range rounds {
		if last, err = w.round(); err != nil {
			return nil, err
		}
		for _, id := range last {
			always[id]++
		}
	}

	var ran []function
	for _, id := range last {
		if always[id] == rounds {
			ran = append(ran, all[id])
		}
	}

	return ran, nil
}

// summary prints the functions and files of each package, most functions first.
func summary(ran []function) {
	functions, files := map[string]int{}, map[string]map[string]bool{}
	for _, f := range ran {
		functions[f.pkg]++
		if files[f.pkg] == nil {
			files[f.pkg] = map[string]bool{}
		}
		files[f.pkg][f.file] = true
	}

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	total := 0
	for _, pkg := range slices.SortedFunc(maps.Keys(functions), func(a, b string) int {
		return cmp.Or(cmp.Compare(functions[b], functions[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(w, "%s\t%d functions\t%d files\n", pkg, functions[pkg], len(files[pkg]))
		total += len(files[pkg])
	}
	fmt.Fprintf(w, "all\t%d functions\t%d files\n", len(ran), total)
	w.Flush()
}

// judge returns what should not be.
func judge(tree string, ran []function) (wrong []string) {
	for _, f := range ran {
		if f.pkg == "cmd/daycare" {
			wrong = append(wrong, f.String()+" runs in a turn")
		}
	}

	text, err := os.ReadFile(filepath.Join(tree, "docs", "architecture.md"))
	if err != nil {
		return append(wrong, err.Error())
	}
	for _, name := range named(string(text)) {
		if !slices.ContainsFunc(ran, func(f function) bool { return f.is(name) }) {
			wrong = append(wrong, "docs/architecture.md names "+name+", which does not run")
		}
	}

	return wrong
}

// named returns the functions in the table of docs/architecture.md: of a row with a step, a
// package and functions, what is in backticks in the last column and is not a folder.
func named(text string) (names []string) {
	_, table, _ := strings.Cut(text, "| step | package | functions |\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			break
		}
		for i, name := range strings.Split(cells[3], "`") {
			if i%2 == 1 && !strings.Contains(name, "/") {
				names = append(names, name)
			}
		}
	}

	return names
}
