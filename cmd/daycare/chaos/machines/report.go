package machines

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Row is what one way to die came to.
type Row struct {
	Way     string `json:"way"`
	Servers int    `json:"servers"` // in its world
	Ends
	Messages int `json:"messages"`
	Effects  int `json:"effects"`
	Broken
	Longest    float64  `json:"longestAccept"` // seconds until a message was accepted, at most
	Seconds    float64  `json:"seconds"`
	Violations []string `json:"violations,omitempty"`
}

// Ends count what was done to machines and servers.
type Ends struct {
	Deaths       int `json:"deaths"`       // of machines
	ServerDeaths int `json:"serverDeaths"` // of servers
	Stops        int `json:"stops"`        // of machines that stood still, or were cut off
}

// Broken counts what must never happen.
type Broken struct {
	Lost       int `json:"lost"`
	Doubled    int `json:"doubled"`
	Disordered int `json:"outOfOrder"`
	Repeated   int `json:"effectsTwice"`
}

// mostViolations bounds what is kept of one row: the first ones say it all.
const mostViolations = 10

func (r *Row) violate(format string, args ...any) {
	if len(r.Violations) < mostViolations {
		r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
	}
}

func (r *Row) add(o Row) {
	r.Deaths, r.ServerDeaths, r.Stops = r.Deaths+o.Deaths, r.ServerDeaths+o.ServerDeaths, r.Stops+o.Stops
	r.Messages, r.Effects = r.Messages+o.Messages, r.Effects+o.Effects
	r.Lost, r.Doubled, r.Disordered, r.Repeated = r.Lost+o.Lost, r.Doubled+o.Doubled, r.Disordered+o.Disordered, r.Repeated+o.Repeated
	r.Longest = max(r.Longest, o.Longest)
	r.Seconds += o.Seconds
}

// A Report is what a run came to.
type Report struct {
	Rows    []Row
	Bugs    []Caught
	Seconds float64
	Dir     string // where what failed was kept
}

// OK reports whether nothing that was promised was broken.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Rows, func(one Row) bool { return len(one.Violations) > 0 }) &&
		!slices.ContainsFunc(r.Bugs, func(c Caught) bool { return c.By == "" })
}

// Total is the sum of all rows.
func (r *Report) Total() Row {
	sum := Row{Way: "all"}
	for _, one := range r.Rows {
		sum.add(one)
	}

	return sum
}

// Print writes the report for users.
func (r *Report) Print(w io.Writer) error {
	if len(r.Bugs) > 0 {
		return r.printBugs(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "WAY TO DIE\tSERVERS\tDEATHS\tOF SERVERS\tSTOPPED\tMESSAGES\tEFFECTS\tLOST\tDOUBLED\tOUT OF ORDER\t"+
		"EFFECTS TWICE\tLONGEST ACCEPT\tSECONDS\t")
	rows := slices.SortedFunc(slices.Values(r.Rows), func(a, b Row) int {
		return cmp.Or(a.Servers-b.Servers, strings.Compare(a.Way, b.Way))
	})
	for _, one := range append(rows, r.Total()) {
		servers := strings.TrimSuffix(fmt.Sprint(one.Servers), "0")
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f s\t%.0f\t\n", one.Way, servers, one.Deaths,
			one.ServerDeaths, one.Stops, one.Messages, one.Effects, one.Lost, one.Doubled, one.Disordered, one.Repeated,
			one.Longest, one.Seconds)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, one := range r.Rows {
		for _, v := range one.Violations {
			fmt.Fprintf(w, "FAILED %s: %s\n", one.Way, v)
		}
	}
	if r.Dir != "" {
		fmt.Fprintf(w, "kept in %s\n", r.Dir)
	}
	_, err := fmt.Fprintf(w, "time: %.0f s\n", r.Seconds)

	return err
}

func (r *Report) printBugs(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEEDED BUG\tWHAT IT DOES\tCAUGHT BY\tTRIES\tSEEN AS")
	caught := 0
	for _, c := range r.Bugs {
		by := c.By
		if by == "" {
			by = "NOT CAUGHT"
		} else {
			caught++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.90s\n", c.Bug, c.Does, by, c.Tries, c.Saw)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d of %d caught; time: %.0f s\n", caught, len(r.Bugs), r.Seconds)

	return err
}

// PrintJSON writes one object.
func (r *Report) PrintJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]any{"ok": r.OK(), "ways": r.Rows, "total": r.Total(), "bugs": r.Bugs, "seconds": r.Seconds,
		"dir": r.Dir})
}
