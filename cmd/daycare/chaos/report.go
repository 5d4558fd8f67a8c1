package chaos

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"daycare/engine/crash"
)

// A Result is what one case came to.
type Result struct {
	Case       string   `json:"case"`
	Repeat     string   `json:"repeat"` // the flags that play it again
	Dir        string   `json:"dir"`
	Violations []string `json:"violations,omitempty"`

	Totals
	way     string
	Passed  []string        `json:"-"` // failpoints of the first life, in order
	Reached map[string]bool `json:"-"`
	DiedAt  map[string]int  `json:"-"`
}

// Totals are one row of the table.
type Totals struct {
	Cases     int `json:"cases"`
	Deaths    int `json:"deaths"`
	GaveUp    int `json:"gaveUp"` // ended by itself, because storage failed
	Messages  int `json:"messages"`
	ToolCalls int `json:"toolCalls"`
	Effects   int `json:"effects"`
	Broken
	Again       int     `json:"answersAgain"` // sent again, in the window between sending and recording
	Torn        int     `json:"tornRepaired"`
	Interrupted int     `json:"interrupted"`
	Seconds     float64 `json:"seconds"`
}

// Broken counts what must never happen.
type Broken struct {
	Lost       int `json:"lost"`
	Duplicated int `json:"duplicated"`
	Reordered  int `json:"reordered"`
	Wrong      int `json:"wrong"` // contents, senders, chats, agents
	Repeated   int `json:"repeatedEffects"`
}

func (b *Broken) add(o Broken) {
	b.Lost, b.Duplicated, b.Reordered = b.Lost+o.Lost, b.Duplicated+o.Duplicated, b.Reordered+o.Reordered
	b.Wrong, b.Repeated = b.Wrong+o.Wrong, b.Repeated+o.Repeated
}

func newResult(c Case) *Result {
	return &Result{Case: c.String(), Repeat: c.flags(), way: c.Way, Reached: map[string]bool{}, DiedAt: map[string]int{},
		Totals: Totals{Cases: 1}}
}

// mostViolations bounds what is kept of one case: the first ones say it all.
const mostViolations = 10

func (r *Result) violate(format string, args ...any) {
	if strings.HasPrefix(format, "wrong ") {
		r.Wrong++
	}
	if len(r.Violations) < mostViolations {
		r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
	}
}

// tally counts what the files say at the end.
func (r *Result) tally(v view) {
	r.Messages, r.Effects = len(v.said), len(v.effects)
	for _, a := range v.agents {
		r.Torn += a.torn
		for _, l := range a.history {
			if l.Type == "tool_result" {
				r.ToolCalls++
				if l.Status == "interrupted" {
					r.Interrupted++
				}
			}
		}
	}
}

func (f *Totals) add(o Totals) {
	f.Cases, f.Deaths, f.GaveUp = f.Cases+o.Cases, f.Deaths+o.Deaths, f.GaveUp+o.GaveUp
	f.Messages, f.ToolCalls, f.Effects = f.Messages+o.Messages, f.ToolCalls+o.ToolCalls, f.Effects+o.Effects
	f.Broken.add(o.Broken)
	f.Again, f.Torn = f.Again+o.Again, f.Torn+o.Torn
	f.Interrupted, f.Seconds = f.Interrupted+o.Interrupted, f.Seconds+o.Seconds
}

// A Report is what a run came to.
type Report struct {
	mu       sync.Mutex
	ways     map[string]*Totals
	reached  map[string]bool
	diedAt   map[string]int
	Failures []*Result
	// LateOnce are the cases in which something was late, and was not when they were played
	// again, alone.
	LateOnce []*Result
	Skipped  []string
	Bugs     []Caught
	Soak     []Tenth
	Seconds  float64
	// Processor is the processor time of the harness and of what it started, in seconds.
	Processor float64
	Coverage
}

// Coverage says how much of what could be played was played.
type Coverage struct {
	// Points are the failpoints that the scenarios pass, each counted once for each
	// scenario that passes it; PointsPlayed those of them that were died at, with each tear.
	Points, PointsPlayed int
	// Planned are the cases beside those of real file systems, Unplayed those of them that
	// an interruption, or enough failures, kept from being played to their end.
	Planned, Unplayed int
	LeftOut           string // what a longer run plays
}

func newReport() *Report {
	return &Report{ways: map[string]*Totals{}, reached: map[string]bool{}, diedAt: map[string]int{}}
}

func (r *Report) add(one *Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ways[one.way] == nil {
		r.ways[one.way] = &Totals{}
	}

	r.ways[one.way].add(one.Totals)
	maps.Copy(r.reached, one.Reached)
	for name, n := range one.DiedAt {
		r.diedAt[name] += n
	}

	if len(one.Violations) > 0 {
		r.Failures = append(r.Failures, one)
	}
}

// ways to die, in the order in which the table lists them.
var ways = []string{"peace", "kill", "kill twice", "power cut", "kill, then power", "disk fault",
	"slow disk", "clock jump", "full inotify table", "few descriptors", "standing still", "random kill -9",
	"random power cut", "power cut of ext4", "power cut of xfs", "full disk", "soak"}

// order lists the ways to die that were played.
func (r *Report) order() []string {
	return slices.SortedFunc(maps.Keys(r.ways), func(a, b string) int {
		return cmp.Or(slices.Index(ways, a)-slices.Index(ways, b), cmp.Compare(a, b))
	})
}

// enough reports whether so much went wrong that more of it would tell nothing new.
func (r *Report) enough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.Failures) >= shownFailures
}

func (r *Report) skip(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Skipped = append(r.Skipped, fmt.Sprintf(format, args...))
}

// OK reports whether nothing that was promised was broken.
func (r *Report) OK() bool {
	return len(r.Failures) == 0 && !slices.ContainsFunc(r.Bugs, func(c Caught) bool { return c.By == "" })
}

// Total is the sum of all ways to die.
func (r *Report) Total() Totals {
	var sum Totals
	for _, f := range r.ways {
		sum.add(*f)
	}

	return sum
}

// Unreached lists the failpoints that are compiled in and were never passed.
func (r *Report) Unreached() (names []string) {
	for _, name := range crash.Names() {
		if !r.reached[name] {
			names = append(names, name)
		}
	}

	return names
}

// Print writes the report for users.
func (r *Report) Print(w io.Writer) error {
	if len(r.Bugs) > 0 {
		return r.printBugs(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "WAY TO DIE\tCASES\tDEATHS\tMESSAGES\tTOOL CALLS\tLOST\tDUPLICATED\tREORDERED\tWRONG\tREPEATED "+
		"EFFECTS\tANSWERS AGAIN\tTORN REPAIRED\tINTERRUPTED\tSECONDS\tFAILED\t")
	for _, way := range r.order() {
		r.row(t, way, *r.ways[way])
	}

	r.row(t, "all", r.Total())
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Soak) > 0 {
		return errors.Join(r.printSoak(w), r.printFailures(w))
	}

	fmt.Fprintf(w, "\nfailpoints: %d of %d compiled in were reached, %d were died at\n", len(r.reached), len(crash.Names()), len(r.diedAt))
	if r.Points > 0 && r.Unplayed == 0 {
		fmt.Fprintf(w, "%d of %d failpoints of scenarios (each once for each scenario that passes it) were died at\n",
			r.PointsPlayed, r.Points)
	}

	fmt.Fprintf(w, "time: %.0f s, %.0f s of processor on %d\n", r.Seconds, r.Processor, runtime.GOMAXPROCS(0))
	if r.Unplayed > 0 {
		fmt.Fprintf(w, "NOT PLAYED: %d of %d cases, because it was ended before\n", r.Unplayed, r.Planned)
	}
	if r.LeftOut != "" {
		fmt.Fprintf(w, "left out: %s\n", r.LeftOut)
	}
	if names := r.Unreached(); len(names) > 0 {
		fmt.Fprintf(w, "not reached: %s\n", strings.Join(names, " "))
	}

	for _, s := range r.Skipped {
		fmt.Fprintf(w, "SKIPPED: %s\n", s)
	}

	return r.printFailures(w)
}

// printSoak writes how memory and descriptors were over time.
func (r *Report) printSoak(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nFROM SECOND\tRSS LEAST\tMEDIAN\tMOST\tDESCRIPTORS LEAST\tMEDIAN\tMOST\tACCEPTED\t")
	for _, one := range r.Soak {
		fmt.Fprintf(t, "%.0f\t%.1f MiB\t%.1f MiB\t%.1f MiB\t%d\t%d\t%d\t%d\t\n", one.From, mebibytes(one.RSS[0]),
			mebibytes(one.RSS[1]), mebibytes(one.RSS[2]),
			one.Open[0], one.Open[1], one.Open[2], one.Accepted)
	}

	fmt.Fprintf(t, "\n")

	return t.Flush()
}

func mebibytes(kib int64) float64 { return float64(kib) / 1024 }

func (r *Report) row(w io.Writer, name string, f Totals) {
	failed := 0
	for _, one := range r.Failures {
		if name == "all" || one.way == name {
			failed++
		}
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.0f\t%d\t\n", name, f.Cases, f.Deaths, f.Messages, f.ToolCalls,
		f.Lost, f.Duplicated, f.Reordered, f.Wrong, f.Repeated, f.Again, f.Torn, f.Interrupted, f.Seconds, failed)
}

// shownFailures bounds what is printed; the folders of all are kept.
const shownFailures = 20

// printFailures writes the cases that failed, and before them those that were late once.
func (r *Report) printFailures(w io.Writer) error {
	for _, one := range r.LateOnce {
		fmt.Fprintf(w, "LATE ONCE, and not when played again %d times: %s: %s\n", playedAgain, one.Case, one.Violations[0])
	}
	for i, one := range r.Failures {
		if i == shownFailures {
			fmt.Fprintf(w, "\n… and %d more\n", len(r.Failures)-i)
			break
		}
		fmt.Fprintf(w, "\nFAILED %s\n", one.Case)
		for _, v := range one.Violations {
			fmt.Fprintf(w, "  %s\n", v)
		}

		fmt.Fprintf(w, "  kept in %s\n", one.Dir)
		if one.Repeat != "" {
			fmt.Fprintf(w, "  again: daycare chaos %s\n", one.Repeat)
		}
	}

	return nil
}

// PrintJSON writes one object.
func (r *Report) PrintJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]any{
		"ok": r.OK(), "ways": r.ways, "total": r.Total(), "seconds": r.Seconds,
		"processor": r.Processor, "leftOut": r.LeftOut, "planned": r.Planned, "unplayed": r.Unplayed,
		"reached": len(r.reached), "points": len(crash.Names()), "unreached": r.Unreached(),
		"scenarioPoints": r.Points, "scenarioPointsPlayed": r.PointsPlayed,
		"soak": r.Soak, "skipped": r.Skipped, "failures": r.Failures, "lateOnce": r.LateOnce, "bugs": r.Bugs,
	})
}
