// Mutate changes one place of a package at a time and runs the package's own tests: a
// test suite that still passes would not have seen that defect. It prints how many of
// the mutants the tests killed and each one that survived.
//
//	go run ./.ci/mutate [-n 10] [-seed 1] [-p 2] [-timeout 3m] PACKAGE...
//	go run ./.ci/mutate -n 20 -seed 7 ./engine/disk ./engine/inbox
//
// The sources are never written: each mutant is compiled through an overlay of the go
// command. Which places are changed follows from the seed alone. A mutant that does
// not compile is replaced by another. One that makes the tests hang is killed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

type options struct {
	each    int
	seed    uint64
	beside  int
	timeout time.Duration
}

// A report is how the tests of one package did.
type report struct {
	pkg      string
	killed   int
	survived []mutant
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("mutate: ")
	var o options
	flag.IntVar(&o.each, "n", 10, "mutants of each package")
	flag.Uint64Var(&o.seed, "seed", 1, "decides which places are changed")
	flag.IntVar(&o.beside, "p", 2, "mutants tried beside each other")
	flag.DurationVar(&o.timeout, "timeout", 3*time.Minute, "of the tests of one mutant; after it, it counts as killed")
	least := flag.Int("least", 0, "exit with 1 if the tests kill less than this percentage of all mutants")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("name packages, for example: go run ./.ci/mutate ./engine/disk")
	}

	var all []report
	for _, pkg := range flag.Args() {
		r, err := o.try(pkg)
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, r)
		fmt.Printf("%s: %d of %d killed\n", r.pkg, r.killed, r.killed+len(r.survived))
		for _, m := range r.survived {
			fmt.Printf("  survived  %s\n", m)
		}
	}
	if percent := table(all, o.seed); percent < *least {
		log.Fatalf("%d %% killed, at least %d are wanted", percent, *least)
	}
}

// try runs the tests of one package over its mutants.
func (o options) try(pkg string) (report, error) {
	r := report{pkg: pkg}
	dir := filepath.Clean(pkg)
	candidates, err := mutants(dir)
	if err != nil {
		return r, err
	}
	h := fnv.New64a()
	h.Write([]byte(filepath.ToSlash(dir)))
	random := rand.New(rand.NewPCG(o.seed, h.Sum64()))
	random.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	if out, err := o.test(dir, nil); err != nil {
		return r, fmt.Errorf("the tests of %s fail without any change: %w\n%s", pkg, err, out)
	}

	var mu sync.Mutex
	var wg sync.WaitGroup
	next := 0
	for range o.beside {
		wg.Go(func() {
			for {
				mu.Lock()
				if next == len(candidates) || r.killed+len(r.survived) >= o.each {
					mu.Unlock()
					return
				}
				m := candidates[next]
				next++
				mu.Unlock()

				killed, compiled := o.kill(dir, m)
				mu.Lock()
				switch full := r.killed+len(r.survived) >= o.each; {
				case !compiled || full: // what was tried beside the last one is left out
				case killed:
					r.killed++
				default:
					r.survived = append(r.survived, m)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return r, nil
}

// kill reports whether the tests fail with the mutant, and whether it compiles.
func (o options) kill(dir string, m mutant) (killed, compiled bool) {
	out, err := o.test(dir, &m)
	if bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) {
		return false, false
	}
	return err != nil, true
}

// test runs the tests of a package, with a mutant in place of one of its files.
func (o options) test(dir string, m *mutant) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	args := []string{"test", "-vet=off", "-count=1", "-failfast", "-timeout", o.timeout.String()}
	if m != nil {
		overlay, remove, err := m.overlay()
		if err != nil {
			return nil, err
		}
		defer remove()
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+filepath.ToSlash(dir))...)
	cmd.WaitDelay = 5 * time.Second
	return cmd.CombinedOutput()
}

// overlay writes the changed file and the description of it that the go command reads.
func (m mutant) overlay() (path string, remove func(), err error) {
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(tmp) }
	real, err := filepath.Abs(m.file)
	changed, list := filepath.Join(tmp, filepath.Base(m.file)), filepath.Join(tmp, "overlay.json")
	data, merr := json.Marshal(map[string]map[string]string{"Replace": {real: changed}})
	err = errors.Join(err, merr, os.WriteFile(changed, m.source, 0o600), os.WriteFile(list, data, 0o600))
	if err != nil {
		remove()
	}
	return list, remove, err
}

// table prints the figures of all packages and returns the percentage that was killed.
func table(all []report, seed uint64) int {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nPACKAGE\tMUTANTS\tKILLED\tSURVIVED\t%%\tseed %d\n", seed)
	killed, tried := 0, 0
	line := func(name string, killed, tried int) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name, tried, killed, tried-killed, 100*killed/max(tried, 1))
	}
	for _, r := range all {
		n := r.killed + len(r.survived)
		killed, tried = killed+r.killed, tried+n
		line(strings.TrimPrefix(r.pkg, "./"), r.killed, n)
	}
	line("all", killed, tried)
	w.Flush()
	return 100 * killed / max(tried, 1)
}
