// Mutate changes one place of a package at a time and runs the package's own tests: a
// test suite that still passes would not have seen that defect. It prints how many of
// the mutants the tests killed, and each one that survived.
//
//	go run ./.ci/mutate [-n 10] [-seed 1,2] [-p 2] [-short] [-v] PACKAGE...
//	go run ./.ci/mutate -n 20 -seed 7 ./engine/disk ./engine/inbox
//	go run ./.ci/mutate -at log.go:91,name.go ./engine/disk
//
// All mutants of a package are compiled into one test binary, through an overlay of the
// go command, and a variable of the environment switches one of them on. So the sources
// are never written, and a mutant costs no compilation. Each test is run once alone to
// see which places it reaches, in processes that it starts too: a mutant is tried with
// those tests only, the quick ones first, and one that no test reaches survives.
//
// Which mutants are tried follows from the seed and the package alone. One that makes
// the tests hang, or use up the memory, counts as killed. A test that fails is run once
// more: one that passes then has not killed the mutant, the machine was slow.
package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

type options struct {
	each    int
	seeds   []uint64
	beside  int
	short   bool
	verbose bool
	only    bool          // list what no test reaches, try nothing
	at      string        // try the mutants of these places alone; "": any
	timeout time.Duration // 0: three times what the tests take without a change
}

// maxMemory bounds the data of the go command and of each process that it starts, in bytes.
const maxMemory = 4 << 30

// A report is how the tests of one package did with the mutants of one seed.
type report struct {
	pkg           string
	seed          uint64
	killed, tried int
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("mutate: ")
	var o options
	flag.IntVar(&o.each, "n", 10, "mutants of each package and seed; 0: all")
	seeds := flag.String("seed", "1", "decides which mutants are tried; several with commas")
	flag.IntVar(&o.beside, "p", 2, "mutants tried beside each other")
	flag.BoolVar(&o.short, "short", false, "run the tests with -short")
	flag.BoolVar(&o.verbose, "v", false, "print what killed each mutant, too")
	flag.BoolVar(&o.only, "unreached", false, "only list the mutants that no test reaches")
	flag.StringVar(&o.at, "at", "", "try all mutants of these files or `lines`, such as log.go:91,name.go, and no others")
	flag.DurationVar(&o.timeout, "timeout", 0,
		"stop the tests of one mutant after this `time`: it counts as killed (default 10 s and three times what they take)")
	least := flag.Int("least", 0, "exit with 1 if the tests kill less than this percentage of all mutants")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("name packages, for example: go run ./.ci/mutate ./engine/disk")
	}

	for text := range strings.SplitSeq(*seeds, ",") {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			log.Fatalf("-seed: %v", err)
		}
		o.seeds = append(o.seeds, seed)
	}

	// A loop that no longer ends may append forever.
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: maxMemory, Max: maxMemory}); err != nil {
		log.Fatal(err)
	}

	var all []report
	for _, pkg := range flag.Args() {
		reports, err := o.try(pkg)
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, reports...)
	}

	if o.only {
		return
	}
	if percent := table(all); percent < *least {
		log.Fatalf("%d %% killed, at least %d are wanted", percent, *least)
	}
}

// try runs the tests of one package over its mutants, for each seed.
func (o options) try(pkg string) ([]report, error) {
	begin := time.Now()
	b, err := o.build(pkg)
	if err != nil {
		return nil, err
	}
	defer b.remove()
	if err := o.reach(b); err != nil {
		return nil, err
	}

	never := 0
	for i := range b.mutants {
		if len(b.reaching(i)) == 0 {
			never++
			if o.only {
				fmt.Printf("  unreached  %s\n", b.mutants[i])
			}
		}
	}

	fmt.Printf("%s: %d mutants, %d of them reached by no test, %d tests, ready after %v\n",
		pkg, len(b.mutants), never, len(b.tests), time.Since(begin).Round(time.Second))

	if o.only {
		return nil, nil
	}

	tried := map[int]bool{} // a mutant of several seeds is tried once
	var reports []report
	for _, seed := range o.seeds {
		chosen := b.choose(pkg, seed, o)
		var fresh []int
		for _, i := range chosen {
			if _, ok := tried[i]; !ok {
				fresh = append(fresh, i)
			}
		}

		o.tryAll(b, fresh, tried)
		r := report{pkg: strings.TrimPrefix(pkg, "./"), seed: seed, tried: len(chosen)}
		for _, i := range chosen {
			if tried[i] {
				r.killed++
			}
		}

		reports = append(reports, r)
		fmt.Printf("%s: seed %d: %d of %d killed, after %v\n", pkg, seed, r.killed, r.tried,
			time.Since(begin).Round(time.Second))
	}

	return reports, nil
}

// choose picks mutants by a seed, or those of some places. Packages of one length do not get the same ones.
func (b *binary) choose(pkg string, seed uint64, o options) []int {
	h := fnv.New64a()
	h.Write([]byte(pkg))
	order := rand.New(rand.NewPCG(seed, h.Sum64())).Perm(len(b.mutants))
	if o.at != "" {
		return slices.DeleteFunc(order, func(i int) bool { return !b.mutants[i].in(o.at) })
	}
	if o.each == 0 {
		return order
	}

	return order[:min(o.each, len(order))]
}

// tryAll tries mutants beside each other and notes in killed which the tests have seen.
func (o options) tryAll(b *binary, list []int, killed map[int]bool) {
	var mu sync.Mutex
	o.parallel(len(list), func(n int) {
		i := list[n]
		by := o.kill(b, i)
		mu.Lock()
		defer mu.Unlock()
		killed[i] = by != ""

		switch {
		case by == "" && len(b.reaching(i)) == 0:
			fmt.Printf("  survived  %s  (no test reaches it)\n", b.mutants[i])
		case by == "":
			fmt.Printf("  survived  %s\n", b.mutants[i])
		case o.verbose:
			fmt.Printf("  killed    %s  by %s\n", b.mutants[i], by)
		}
	})
}

// parallel calls do for 0 to n-1, some of them beside each other.
func (o options) parallel(n int, do func(int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range o.beside {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}

	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// table prints the figures of all packages and returns the percentage that was killed.
func table(all []report) int {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nPACKAGE\tSEED\tMUTANTS\tKILLED\tSURVIVED\t%\t")
	killed, tried := 0, 0
	line := func(pkg, seed string, killed, tried int) {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t\n", pkg, seed, tried, killed, tried-killed, 100*killed/max(tried, 1))
	}
	for _, r := range all {
		killed, tried = killed+r.killed, tried+r.tried
		line(r.pkg, strconv.FormatUint(r.seed, 10), r.killed, r.tried)
	}

	line("all", "", killed, tried)
	w.Flush()
	return 100 * killed / max(tried, 1)
}
