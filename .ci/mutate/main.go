// Mutate changes one place of a package at a time and runs the package's own tests: a
// test suite that still passes would not have seen that defect. It prints how many of
// the mutants the tests killed and each one that survived.
//
//	go run ./.ci/mutate [-n 10] [-seed 1] [-p 2] [-short] [-timeout 3m] PACKAGE...
//	go run ./.ci/mutate -n 20 -seed 7 ./engine/disk ./engine/inbox
//
// The sources are never written: each mutant is compiled through an overlay of the go
// command. Which places are changed follows from the seed alone. A mutant that does
// not compile is replaced by another. One that makes the tests hang, or eat the memory
// of the machine, counts as killed.
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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

type options struct {
	each    int
	seed    uint64
	beside  int
	short   bool
	timeout time.Duration // 0: by how long the tests take without a change
}

// maxMemory bounds the data of the go command and of each process that it starts, in bytes.
const maxMemory = 4 << 30

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
	flag.BoolVar(&o.short, "short", false, "run the tests with -short")
	flag.DurationVar(&o.timeout, "timeout", 0,
		"stop the tests of one mutant after this `time`: it counts as killed (default 10 s and five times what they take without it)")
	least := flag.Int("least", 0, "exit with 1 if the tests kill less than this percentage of all mutants")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("name packages, for example: go run ./.ci/mutate ./engine/disk")
	}

	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: maxMemory, Max: maxMemory}); err != nil {
		log.Fatal(err) // a loop that no longer ends may append for ever
	}

	var all []report
	for _, pkg := range flag.Args() {
		r, err := o.try(pkg)
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, r)
		fmt.Printf("%s: %d of %d killed\n", r.pkg, r.killed, r.killed+len(r.survived))
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
	if o.timeout, err = o.normal(dir); err != nil {
		return r, err
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
					fmt.Printf("  survived  %s\n", m)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return r, nil
}

// normal runs the tests without a change and returns how long a mutant's may take.
func (o options) normal(dir string) (time.Duration, error) {
	given := o.timeout
	if o.timeout == 0 {
		o.timeout = 10 * time.Minute
	}
	begin := time.Now()
	if out, err := o.test(dir, nil); err != nil {
		return 0, fmt.Errorf("the tests of %s fail without any change: %w\n%s", dir, err, out)
	}
	if given == 0 {
		given = 10*time.Second + 5*time.Since(begin)
	}
	return given, nil
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
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout+time.Minute) // it is compiled, too
	defer cancel()
	args := []string{"test", "-vet=off", "-count=1", "-failfast", "-short=" + strconv.FormatBool(o.short), "-timeout", o.timeout.String()}
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what tests that were cut short have left running
	}
	return out, err
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
