package chaos

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
)

// secondsPerCut is what a cut of a real file system takes, one after the other: most
// of it are the journal and the two mounts.
const secondsPerCut = 0.15

// announce says how much there is to play and about how long that takes, by what the
// scenarios take in peace.
func (h *harness) announce(ctx context.Context) error {
	scenarios, err := h.scenarios()
	if err != nil {
		return err
	}
	before := processorSeconds()
	if err := h.learnAll(ctx, scenarios); err != nil {
		return err
	}
	peaceful := 0
	for _, s := range scenarios {
		if peaceful++; len(s.Before) > 0 {
			peaceful++
		}
	}
	each := (processorSeconds() - before) / float64(peaceful)
	cases, lives, tried := 0, 0, map[string]int{}
	for _, s := range scenarios {
		passed := h.learned[s.Name]
		for _, c := range slices.Concat(h.killCases(s, passed, ""), h.cutCases(s, passed, ""), h.faultCases(s, passed, tried)) {
			cases, lives = cases+1, lives+1+len(c.Deaths)
		}
	}
	random, cuts := 0, 0
	if h.Scenario == "" || h.Random >= 0 {
		random = h.pick(h.Random, shortRandom, normalRandom, fullRandom)
	}
	if h.Scenario == "" || h.Power >= 0 {
		cuts = 2 * h.pick(h.Power, shortCuts, normalCuts, fullCuts)
	}
	seconds := float64(lives+random)*each/float64(runtime.GOMAXPROCS(0)) + float64(cuts)*secondsPerCut
	_, err = fmt.Fprintf(h.Log, "%d cases, %d random deaths and %d power cuts of real file systems: about %.0f minutes on %d processors that have nothing else to do\n",
		cases, random, cuts, max(1, seconds/60), runtime.GOMAXPROCS(0))
	return err
}

// leftOut says what this length does not play and a longer one does.
func (h *harness) leftOut() string {
	if h.Bugs || h.Kill != "" {
		return ""
	}
	const doubles = "most second deaths; --full plays more"
	switch h.Length {
	case Short:
		return fmt.Sprintf("%d of %d operations (each %dth is played, with 2 of 5 tears), 2 of 4 disk faults at each failpoint, "+
			"%d of %d random deaths, most double deaths; the default length plays them", h.unplayed, h.considered, shortEvery,
			normalRandom-h.pick(h.Random, shortRandom, normalRandom, fullRandom), normalRandom)
	case Full:
		return "second deaths at 15 of 16 steps of a recovery, another one of them after each first death"
	}
	return fmt.Sprintf("%d of %d operations (most of those that pass a failpoint of their scenario once more), 3 of 5 tears, %s", h.unplayed, h.considered, doubles)
}

// processorSeconds is the time that this process and those that it started used.
func processorSeconds() (sum float64) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
		}
	}
	return sum
}
