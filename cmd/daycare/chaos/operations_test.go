package chaos

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The default length dies at the first passing of each failpoint, also of those that the
// scenario is not for, and at some that pass one once more; a full run at all.
func TestOperations(t *testing.T) {
	s := &Scenario{Name: "test", Selection: Selection{Only: []string{"inbox."}}}
	passed := []string{"home.dirsync", "inbox.write"}
	for range repeatEvery {
		passed = append(passed, "inbox.write", "turn.taken")
	}
	want := []operation{{1, "home.dirsync", 0, false}, {2, "inbox.write", 0, true}, {4, "turn.taken", 0, false},
		{2*repeatEvery + 1, "inbox.write", repeatEvery, true}}
	h := &harness{planner: planner{report: newReport()}}
	got := h.operations(s, passed)
	if d := cmp.Diff(want, got, cmp.AllowUnexported(operation{})); d != "" {
		t.Errorf("operations to die at (-want +got):\n%s", d)
	}

	h.count(passed, got)
	if h.report.Points != 3 || h.report.PointsPlayed != 3 || h.considered != len(passed) || h.unplayed != len(passed)-len(want) {
		t.Errorf("counted %d of %d points, %d of %d operations left out", h.report.PointsPlayed, h.report.Points, h.unplayed, h.considered)
	}

	// home.dirsync and turn.taken have no parts, two writes can be torn.
	if n := len(h.killCases(s, passed)); n != 1+2*2+1 {
		t.Errorf("%d kills for %d operations", n, len(want))
	}
	h.Length = Full
	if n := len(h.operations(s, passed)); n != len(passed) {
		t.Errorf("a full run dies at %d of %d operations", n, len(passed))
	}
}

// A full run is killed at each passing of a failpoint, has all tears and a cut of power at
// the first one, and what is dear at each fourth later one of what the scenario is for. Each
// failpoint has all faults.
func TestFullRun(t *testing.T) {
	s := &Scenario{Name: "test", Selection: Selection{Only: []string{"inbox."}}}
	passed := []string{"home.dirsync"}
	const rounds = 9 // passings 0 to 8, of which 0, 4 and 8 are dear
	for range rounds {
		passed = append(passed, "inbox.write", "inbox.sync", "history.write")
	}

	h := &harness{planner: planner{Options: Options{Length: Full}, report: newReport(), learned: map[string][]string{"test": passed}}}
	ways, killed, cut, faults := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range slices.Concat(h.killCases(s, passed), h.cutCases(s, passed), h.jumpCases(s, passed),
		h.faultCases(s, passed, map[string]bool{})) {
		ways[c.Way]++
		at, _, _ := strings.Cut(c.Deaths[0].Failpoint, ":")
		switch c.Way {
		case "kill":
			killed[at]++
		case "power cut":
			cut[at]++
		case "disk fault":
			_, at, _ = strings.Cut(at, "@")
			faults[at]++
		}
	}

	firsts := []string{"kill@#1", "kill@#2", "kill@#3", "kill@#4"}
	if len(killed) != len(passed) || killed["kill@#2"] != 5 || killed["kill@#5"] != 1 {
		t.Errorf("died at %d of %d operations: %v", len(killed), len(passed), killed)
	}

	for _, at := range firsts {
		if cut[at] < 3 {
			t.Errorf("%d cuts of power at %s, the first passing of a failpoint; want three", cut[at], at)
		}
	}
	if cut["kill@#5"] != 1 || cut["kill@#7"] != 0 {
		t.Errorf("cuts of power at later passings: %v, want one where the scenario is for it", cut)
	}

	for _, at := range []string{"inbox.write#1", "inbox.sync#1", "history.write#1"} {
		if faults[at] != len(faulty) {
			t.Errorf("%d faults at %s, want all %d", faults[at], at, len(faulty))
		}
	}

	// Four first passings, and two later ones of the two failpoints that the scenario is for;
	// the clock jumps at those of all.
	want := map[string]int{"kill twice": 4 + 2*2, "kill, then power": 4 + 2*2, "clock jump": 4 + 3*2}
	for way, n := range want {
		if ways[way] != n {
			t.Errorf("%d cases of %s, want %d", ways[way], way, n)
		}
	}
}
