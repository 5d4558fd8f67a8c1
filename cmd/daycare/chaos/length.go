package chaos

import (
	"fmt"
	"syscall"
)

// leftOut says what this length does not play and a longer one does.
func (h *harness) leftOut() string {
	if h.Bugs || h.Kill != "" {
		return ""
	}
	const doubles = "second deaths at 1 of 16 steps of a recovery; --full plays all"
	switch h.Length {
	case Short:
		return fmt.Sprintf("%d of %d operations (each %dth is played, with 2 of 5 tears), 2 of 4 disk faults at each failpoint, "+
			"%d of %d random deaths, most double deaths; the default length plays them", h.unplayed, h.considered, shortEvery,
			normalRandom-h.pick(h.Random, shortRandom, normalRandom, fullRandom), normalRandom)
	case Full:
		return ""
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
