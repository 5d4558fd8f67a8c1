package chaos

import (
	"fmt"
	"strings"
)

// cutCases are a power cut at each third operation (Full: each, of every kind): half
// of them leave only what was synced, the others are of all kinds in turn. The disk is one
// that keeps what was synced and, of the rest, what the cut says; see crash.Mirror. It
// needs no rights, and unlike killing it finds a barrier that is missing.
func (h *harness) cutCases(s *Scenario, passed []string) (cases []Case) {
	for i, o := range h.operations(s, passed) {
		n := i + 1
		if h.Length == Default && n%3 != 1 || !o.aim {
			continue
		}
		kinds := []Cut{cuts[n/2%len(cuts)]}
		if n%6 == 1 {
			kinds = []Cut{Nothing}
		}
		if h.Length == Full {
			kinds = cuts
		}
		for _, cut := range kinds {
			cases = append(cases, Case{Way: "power cut", Scenario: s,
				Deaths: []Death{{Failpoint: fmt.Sprintf("kill@#%d:%d", o.k, tearOf(cut)), Cut: cut}}})
		}
		if strings.HasSuffix(o.name, ".sync") && (h.Length == Full || n%6 == 1) {
			// What the barrier is for must not happen while the disk is busy with it.
			cases = append(cases, Case{Way: "power cut", Scenario: s,
				Deaths: []Death{{Failpoint: fmt.Sprintf("stall@#%d:0", o.k), Cut: Nothing}}})
		}
		if h.Length == Full || n%thenPowerEvery == 1 {
			step := n
			if h.Length != Full {
				step = n / thenPowerEvery
			}
			first := Death{Failpoint: fmt.Sprintf("kill@#%d:100", o.k)}
			second := Death{Failpoint: fmt.Sprintf("kill@#%d:0", 1+step%recoverySteps), Cut: Nothing}
			cases = append(cases, Case{Way: "kill, then power", Scenario: s, Deaths: []Death{first, second}})
		}
	}
	return cases
}

// thenPowerEvery is how far the operations lie apart that the default length kills at
// before it cuts the power of what comes after.
const thenPowerEvery = 9

// tearOf is how much of a write comes before the cut: all of it where the cut
// leaves bytes that were not synced.
func tearOf(c Cut) int {
	if c == Nothing || c == Names {
		return 0
	}
	return 100
}
