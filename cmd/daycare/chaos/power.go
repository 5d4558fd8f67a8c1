package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// cutCases are a power cut at each third operation (Full: each): half of them leave only
// what was synced, the others are of all kinds in turn. The disk is one
// that keeps what was synced and, of the rest, what the cut says; see crash.Mirror. It
// needs no rights, and unlike killing it finds a barrier that is missing.
func (h *planner) cutCases(s *Scenario, passed []string) (cases []Case) {
	add := func(way string, deaths ...Death) {
		cases = append(cases, Case{Way: way, Scenario: s, Deaths: deaths})
	}
	for i, o := range h.operations(s, passed) {
		n := i + 1
		if !o.aim {
			continue
		}
		if strings.HasSuffix(o.name, ".sync") && (h.Length == Full || n%stallEvery == 1) {
			// What the barrier is for must not happen while the disk is busy with it. It is
			// counted by its name: a step more or less before it must not spare the barrier.
			add("power cut", Death{Failpoint: fmt.Sprintf("stall@%s#%d:0", o.name, o.before+1), Cut: Nothing})
		}
		if h.Length == Default && n%3 != 1 {
			continue
		}

		for _, cut := range h.cutsAt(n, o) {
			add("power cut", Death{Failpoint: fmt.Sprintf("kill@#%d:%d", o.k, tearOf(cut)), Cut: cut})
		}
		step := 0
		switch {
		case h.Length == Full && o.dear():
			step = 1 + n%recoverySteps
		case h.Length != Full && n%thenPowerEvery == 1:
			step = 1 + n/thenPowerEvery%recoverySteps
		}

		if step > 0 {
			add("kill, then power", o.kill(100), Death{Failpoint: fmt.Sprintf("kill@#%d:0", step), Cut: Nothing})
		}
	}

	for _, n := range restsOn(passed, "history.write") {
		add("kill, then power", Death{Failpoint: fmt.Sprintf("kill@history.write#%d:100", n)},
			Death{Failpoint: "kill@send.after#1", Cut: Nothing})
	}
	if slices.Contains(passed, "waiting.rename") {
		// The next process finds a place in a chat, and reads on from there, before the name of its file is durable.
		add("kill, then power", Death{Failpoint: "kill@waiting.rename#1:100"}, Death{Failpoint: "kill@inbox.write#1:0", Cut: Nothing})
	}
	for _, n := range restsOn(passed, "history.sync") {
		add("power cut", Death{Failpoint: fmt.Sprintf("stall@history.sync#%d:0", n), Cut: Nothing})
	}

	return cases
}

// cutsAt are the kinds of cut that are played at the n-th operation of this length. A full
// run plays three where the scenario passes a failpoint first.
func (h *planner) cutsAt(n int, o operation) []Cut {
	switch others := cuts[1:]; {
	case h.Length == Full && o.before == 0:
		return []Cut{Nothing, others[n%len(others)], others[(n+2)%len(others)]}
	case n%6 == 1:
		return []Cut{Nothing}
	}

	return []Cut{cuts[n/2%len(cuts)]}
}

// stallEvery is how far the operations lie apart of which those that are barriers are
// stalled.
const stallEvery = 2

// restsOn are the operations of a name on which answers rest: the last ones before each answer
// leaves. A process that dies right after such a write to a history leaves bytes that the next
// one reads and sends, and that are not durable before it syncs them; during such a sync no answer
// may leave. They are counted among the operations of their name: a step more or less before one
// of them must not move the death behind it.
func restsOn(passed []string, operation string) (which []int) {
	n, last := 0, 0
	for _, name := range passed {
		switch {
		case name == operation:
			n++
			last = n
		case name == "send.before" && last > 0:
			which, last = append(which, last), 0
		}
	}

	return which[:min(len(which), mostRests)]
}

// mostRests bounds how many of them are played of one scenario.
const mostRests = 2

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
