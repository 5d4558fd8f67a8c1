package crash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// arming is one clause of DAYCARE_FAILPOINT.
type arming struct {
	action  string
	point   string
	k       int
	stays   bool
	percent int
	jump    time.Duration // of action clock
}

// faults are the actions that make an operation fail.
var faults = map[string]syscall.Errno{
	"enospc": syscall.ENOSPC, "eio": syscall.EIO, "erofs": syscall.EROFS, "short": syscall.ENOSPC,
	"einval": syscall.EINVAL, // what a file system answers that cannot sync folders
	"emfile": syscall.EMFILE, "enfile": syscall.ENFILE, "enomem": syscall.ENOMEM,
	"eacces": syscall.EACCES, "eintr": syscall.EINTR, "estale": syscall.ESTALE,
}

// Message is what the fault says that a clause of DAYCARE_FAILPOINT arms.
func Message(clause string) string {
	action, _, _ := strings.Cut(clause, "@")
	return faults[action].Error()
}

// unopened are the faults that a system call returns before there is a file to sync: where
// a step opens its file first, it is the opening that fails.
var unopened = []string{"emfile", "enfile", "enomem", "eacces", "estale"}

// deadly reports whether an action ends the process.
func deadly(action string) bool { return action == "kill" || action == "stall" }

// harmless reports whether an action lets the operation be done.
func harmless(action string) bool { return action == "slow" || action == "clock" }

func parse(clause string) (arming, error) {
	a := arming{}
	action, rest, ok := strings.Cut(clause, "@")
	point, count, ok2 := strings.Cut(rest, "#")
	if !ok || !ok2 {
		return a, fmt.Errorf("%q is not ACTION@POINT#K[:PERCENT]", clause)
	}

	a.action, a.point = action, point
	if by, ok := strings.CutPrefix(action, "clock"); ok {
		jump, err := time.ParseDuration(by)
		if err != nil {
			return a, fmt.Errorf("%q: clock must be followed by a duration with its sign, as in clock+72h", clause)
		}
		a.action, a.jump = "clock", jump
	}
	if _, known := faults[a.action]; !known && !deadly(a.action) && !harmless(a.action) {
		return a, fmt.Errorf("%q: unknown action %q", clause, action)
	}
	if point != "" && !slices.Contains(names, point) {
		return a, fmt.Errorf("%q: unknown point %q", clause, point)
	}

	count, percent, hasPercent := strings.Cut(count, ":")
	if a.stays = strings.HasSuffix(count, "+"); a.stays {
		count = strings.TrimSuffix(count, "+")
	}
	k, err := strconv.Atoi(count)
	if err != nil || k < 1 {
		return a, fmt.Errorf("%q: K must be a number from 1", clause)
	}

	a.k = k
	if hasPercent {
		if a.percent, err = strconv.Atoi(percent); err != nil || a.percent < 0 || a.percent > 100 {
			return a, fmt.Errorf("%q: PERCENT must be a number from 0 to 100", clause)
		}
	}

	return a, nil
}

// matches reports whether the clause is for this passing of a point: the n-th of the point,
// the total-th of all.
func (a arming) matches(name string, n, total int) bool {
	if a.point == "" {
		n = total
	} else if a.point != name {
		return false
	}

	return n == a.k || a.stays && n > a.k
}
