package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// syncs passes one point so often, and returns which of the passings failed.
func syncs(n int) (failed []int) {
	for i := 1; i <= n; i++ {
		if err := Do("inbox.sync", func() error { return nil }); err != nil {
			failed = append(failed, i)
		}
	}
	return failed
}

// A fault happens at one passing of a point, or from one passing on; where no point is named
// all passings are counted together.
func TestWhichPassingsFail(t *testing.T) {
	for spec, want := range map[string][]int{
		"eio@inbox.sync#1": {1}, "eio@inbox.sync#3": {3}, "eio@inbox.sync#3+": {3, 4}, "eio@#2": {2}, "eio@#4+": {4},
		"eio@inbox.write#1+": nil, "eio@inbox.sync#9": nil, "": nil, ";eio@inbox.sync#2;": {2},
		"slow@inbox.write#1+;eio@inbox.sync#1": {1}, "eio@inbox.sync#1;enospc@inbox.sync#1": {1},
	} {
		met := Arm(t, spec)
		if got := syncs(4); !slices.Equal(got, want) || len(met()) != len(want) {
			t.Errorf("%q fails at %v and met %v, want %v", spec, got, met(), want)
		}
	}

	Arm(t, "eio@#3")
	_ = syncs(1)
	Point("inbox.accepted")
	if got := syncs(2); !slices.Equal(got, []int{1}) {
		t.Errorf("of two after two others %v fail, want the first", got)
	}
}

// The first clause for a point decides, and the error is that of its action.
func TestWhatAFaultSays(t *testing.T) {
	for action, want := range faults {
		spec := action + "@inbox.sync#1;" + "eio@inbox.sync#1"
		Arm(t, spec)
		if err := Do("inbox.sync", func() error { return nil }); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", spec, err, want)
		}
		if got := Message(spec); got != want.Error() {
			t.Errorf("%s says %q, want %q", action, got, want)
		}
	}
}

// An operation that a fault lets happen first may fail by itself; a write that fails by itself
// says how much it wrote.
func TestErrorsOfTheOperationItself(t *testing.T) {
	own := errors.New("own")
	Arm(t, "eio@inbox.sync#1:100;eio@inbox.write#1:50;eio@inbox.write#2:50;eio@inbox.write#3")
	if err := Do("inbox.sync", func() error { return own }); err != own {
		t.Errorf("the operation failed by itself: %v", err)
	}
	if n, err := Write("inbox.write", []byte("0123456789"), func(p []byte) (int, error) { return 2, own }); n != 2 || err != own {
		t.Errorf("the write failed by itself: %d, %v", n, err)
	}

	for _, want := range []int{5, 0} {
		got := ""
		n, err := Write("inbox.write", []byte("0123456789"), func(p []byte) (int, error) { got += string(p); return len(p), nil })
		if n != want || !errors.Is(err, syscall.EIO) || len(got) != want {
			t.Errorf("%d bytes are written and %q is, %v; want %d", n, got, err, want)
		}
	}
}

// A file is missing only for the faults that a process meets when it opens one.
func TestWhichFaultsMeetTheOpening(t *testing.T) {
	for action := range faults {
		opened := 0
		open := func() (*os.File, error) { opened++; return nil, nil }
		met := Arm(t, action+"@inbox.sync#2")
		for range 2 {
			if _, err := Open("inbox.sync", open); err == nil {
				_ = Do("inbox.sync", func() error { return nil })
			}
		}

		want := 2
		if slices.Contains([]string{"emfile", "enfile", "enomem", "eacces", "estale"}, action) {
			want = 1
		}
		if opened != want || len(met()) != 1 {
			t.Errorf("%s: the file was opened %d times and met %v, want %d", action, opened, met(), want)
		}
	}
}

// An opening counts among the passings of all points, too.
func TestAnOpeningIsCountedWithTheOthers(t *testing.T) {
	Arm(t, "emfile@#3")
	for n, want := range []bool{true, true, false, true} {
		_, err := Open("inbox.sync", func() (*os.File, error) { return nil, nil })
		if (err == nil) != want {
			t.Errorf("the opening %d: %v", n+1, err)
		}
		if err == nil {
			Point("inbox.accepted")
		}
	}
}

// Between two steps there is nothing that could fail, and on a slow disk only syncs are slow.
func TestWhatAFaultLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		met := Arm(t, "eio@inbox.accepted#1;slow@#1+")
		begin := time.Now()
		Point("inbox.accepted") // or the test would have ended here
		n, err := Write("inbox.write", []byte("x"), func(p []byte) (int, error) { return len(p), nil })
		if n != 1 || err != nil || time.Since(begin) != 0 || len(met()) != 1 {
			t.Errorf("%d bytes, %v, after %v, met %v", n, err, time.Since(begin), met())
		}
		if failed := syncs(2); failed != nil || time.Since(begin) != 2*slowSync {
			t.Errorf("%v fail, after %v", failed, time.Since(begin))
		}
	})
}

// What a test armed is armed no more when it has ended.
func TestNothingStaysArmed(t *testing.T) {
	t.Run("armed", func(t *testing.T) {
		if Arm(t, "eio@inbox.sync#1+"); !slices.Equal(syncs(2), []int{1, 2}) {
			t.Error("nothing is armed")
		}
	})
	if failed := syncs(2); failed != nil {
		t.Errorf("%v fail after the test", failed)
	}
}

// A point that the list lacks is a mistake of who passes it, and seen at once.
func TestAnUnknownPointPanics(t *testing.T) {
	Arm(t, "eio@inbox.sync#1")
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "no.such") {
			t.Errorf("it said %q", v)
		}
	}()
	Point("no.such")
}

// refused is a test that is told of what cannot be armed.
type refused struct{ said string }

func (*refused) Helper()                             {}
func (*refused) Cleanup(func())                      {}
func (*refused) Setenv(string, string)               {}
func (r *refused) Fatalf(format string, args ...any) { r.said = fmt.Sprintf(format, args...) }

// Each part of a clause is checked, and its meaning kept.
func TestClauses(t *testing.T) {
	for clause, want := range map[string]arming{
		"kill@#1":                    {action: "kill", k: 1},
		"stall@inbox.sync#2+":        {action: "stall", point: "inbox.sync", k: 2, stays: true},
		"enospc@inbox.write#3+:0":    {action: "enospc", point: "inbox.write", k: 3, stays: true},
		"short@inbox.write#1:100":    {action: "short", point: "inbox.write", k: 1, percent: 100},
		"slow@#1":                    {action: "slow", k: 1},
		"clock-90s@inbox.accepted#1": {action: "clock", point: "inbox.accepted", k: 1, jump: -90e9},
	} {
		if got, err := parse(clause); got != want || err != nil {
			t.Errorf("%q is read as %+v, %v; want %+v", clause, got, err, want)
		}
	}

	for _, clause := range []string{"clock@#1", "clocks@#1", "clock+1@#1", "eio@#-1", "eio@#1:-1", "eio@#1:", "@#1", "eio#1", "eio"} {
		if got, err := parse(clause); err == nil || !strings.Contains(err.Error(), strconv.Quote(clause)) {
			t.Errorf("%q is read as %+v, %v", clause, got, err)
		}
	}

	for _, clause := range []string{"eio", "eio@inbox.sync", "eio#1"} {
		if _, err := parse(clause); !strings.Contains(err.Error(), "ACTION@POINT#K") {
			t.Errorf("%q: %v, want how a clause looks", clause, err)
		}
	}
	var r refused
	if Arm(&r, "burn@#1"); !strings.Contains(r.said, "burn") {
		t.Errorf("who arms nonsense is told %q", r.said)
	}

	planned.Store(nil)
	for action, want := range map[string][2]bool{"kill": {true, false}, "stall": {true, false}, "slow": {false, true},
		"clock": {false, true}, "eio": {false, false}} {
		if got := [2]bool{deadly(action), harmless(action)}; got != want {
			t.Errorf("%s is deadly, harmless: %v, want %v", action, got, want)
		}
	}
}

// A process whose failpoints cannot be traced, or whose clock is not set in words, does not
// run: a harness would believe in what it never did.
func TestAWrongEnvironmentExits(t *testing.T) {
	for _, variable := range []string{"DAYCARE_FAILPOINT_TRACE=" + filepath.Join(t.TempDir(), "none", "trace"),
		"DAYCARE_FAILPOINT_CLOCK=tomorrow", "DAYCARE_FAILPOINT=eio"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CRASH_TEST_CLOCK=1", variable)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		name, _, _ := strings.Cut(variable, "=")
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), name) {
			t.Errorf("%s: it ended with %v and said %q", variable, err, out)
		}
	}
}

// What happens meanwhile happens before the step, each time, beside what is armed.
func TestMeanwhile(t *testing.T) {
	var order []string
	step := func(name string) {
		err := Do(name, func() error { order = append(order, "done"); return nil })
		if err != nil {
			order = append(order, "failed")
		}
	}
	t.Run("a test", func(t *testing.T) {
		Arm(t, "eio@state.write#2")
		Meanwhile(t, "state.write", func(k int) { order = append(order, fmt.Sprint("meanwhile ", k)) })
		step("state.write")
		step("state.write")
		step("state.sync")
	})
	t.Run("another", func(t *testing.T) {
		Meanwhile(t, "state.write", func(int) { order = append(order, "alone") })
		step("state.write")
	})
	step("state.write")
	if want := []string{"meanwhile 1", "done", "meanwhile 2", "failed", "done", "alone", "done", "done"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

// What changes points for all tests of a process cannot be used by one that runs beside others.
func TestPointsAreNotChangedBesideOthers(t *testing.T) {
	t.Run("beside", func(t *testing.T) {
		t.Parallel()
		for what, do := range map[string]func(){"Arm": func() { Arm(t, "") }, "Meanwhile": func() { Meanwhile(t, "x", func(int) {}) }} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s is done", what)
					}
				}()
				do()
			}()
		}
	})
}
