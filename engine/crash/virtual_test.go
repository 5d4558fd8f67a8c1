package crash

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// rang reports whether a channel got a time, and which.
func rang(c <-chan time.Time) (at time.Time, ok bool) {
	select {
	case at = <-c:
		return at, true
	default:
		return at, false
	}
}

// A virtual clock stands still until it is moved, and then wakes all whose time has come.
func TestAVirtualClockIsMoved(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v := Simulate(begin)
	defer v.Stop()
	if at, ok := v.Next(); ok || v.Busy() || v.Sleeping() != 0 || !Now().Equal(begin) || !v.Now().Equal(begin) {
		t.Errorf("at first: next %v, %v, busy %v, %d sleep, it is %v and %v", at, ok, v.Busy(), v.Sleeping(), Now(), v.Now())
	}

	late, early := Wait("late", 2*time.Minute, time.Second), Wait("early", time.Minute, time.Second)
	if at, ok := v.Next(); !ok || !at.Equal(begin.Add(time.Minute)) || !v.Waits("late") || !v.Waits("early") || v.Waits("other") {
		t.Errorf("the next is %v, %v", at, ok)
	}
	v.Move(begin.Add(time.Minute - 1))
	if _, ok := rang(early); ok || v.Busy() {
		t.Error("a loop was woken before its time")
	}
	v.Move(begin.Add(time.Minute))
	if at, ok := rang(early); !ok || !at.Equal(begin.Add(time.Minute)) || !v.Busy() || v.Waits("early") || !v.Waits("late") {
		t.Errorf("at its time a loop got %v, %v; busy: %v", at, ok, v.Busy())
	}
	if _, ok := rang(late); ok {
		t.Error("another one was woken, too")
	}
	v.Move(begin)
	if !v.Now().Equal(begin.Add(time.Minute)) {
		t.Errorf("time went back to %v", v.Now())
	}

	// A loop that waits anew does not wait for its earlier time.
	early = Wait("early", 5*time.Minute, time.Second)
	again := Wait("late", 3*time.Minute, time.Second)
	if v.Busy() {
		t.Error("a loop that waits again is at work")
	}
	v.Move(begin.Add(3 * time.Minute))
	if _, ok := rang(late); ok {
		t.Error("a loop was woken at the time that it waited for before")
	}
	v.Move(begin.Add(time.Hour))
	for name, c := range map[string]<-chan time.Time{"early": early, "late": again} {
		if at, ok := rang(c); !ok || !at.Equal(begin.Add(time.Hour)) {
			t.Errorf("%s got %v, %v", name, at, ok)
		}
	}
}

// A loop whose time is now, or has been, is woken at once; one that waits for no time is not.
func TestAVirtualClockWithoutATime(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v := Simulate(begin)
	defer v.Stop()
	for _, d := range []time.Duration{0, -time.Hour} {
		Wait("loop", time.Minute, time.Minute)
		if at, ok := rang(Wait("loop", d, time.Minute)); !ok || !at.Equal(begin) || !v.Busy() || v.Waits("loop") {
			t.Errorf("in %v: %v, %v, busy: %v, waits: %v", d, at, ok, v.Busy(), v.Waits("loop"))
		}
	}
	if c := Never("loop"); c != nil || v.Busy() {
		t.Errorf("a loop that waits for no time has %v, busy: %v", c, v.Busy())
	}
	Wait("loop", time.Minute, time.Minute)
	if Never("loop"); v.Waits("loop") {
		t.Error("it waits for the time from before")
	}

	Wait("loop", 0, time.Minute)
	Wait("other", time.Minute, time.Minute)
	if v.Forget(); v.Busy() || v.Waits("other") {
		t.Errorf("loops are not forgotten: busy %v, other waits %v", v.Busy(), v.Waits("other"))
	}
}

// Sleep ends at the time of the clock, at the end of its context, and when the simulation stops.
func TestSleepOnAVirtualClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		v := Simulate(begin)
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := map[string]chan error{"short": make(chan error, 1), "canceled": make(chan error, 1), "long": make(chan error, 1)}
		go func() { ended["short"] <- Sleep(t.Context(), time.Minute) }()
		go func() { ended["canceled"] <- Sleep(ctx, time.Hour) }()
		go func() { ended["long"] <- Sleep(t.Context(), time.Hour) }()
		synctest.Wait()
		if at, ok := v.Next(); v.Sleeping() != 3 || !ok || !at.Equal(begin.Add(time.Minute)) {
			t.Errorf("%d sleep, the next until %v, %v", v.Sleeping(), at, ok)
		}

		v.Move(begin.Add(time.Minute))
		synctest.Wait()
		if v.Sleeping() != 2 || len(ended["short"]) != 1 || <-ended["short"] != nil {
			t.Errorf("%d sleep at the time of the first", v.Sleeping())
		}
		cancel(why)
		synctest.Wait()
		if v.Sleeping() != 1 || len(ended["canceled"]) != 1 || !errors.Is(<-ended["canceled"], why) {
			t.Errorf("%d sleep after the end of a context", v.Sleeping())
		}

		loop := Wait("loop", time.Hour, time.Hour)
		v.Stop()
		synctest.Wait()
		if _, ok := rang(loop); !ok || v.Waits("loop") || v.Sleeping() != 0 || len(ended["long"]) != 1 || <-ended["long"] != nil {
			t.Errorf("after the end a loop was woken: %v, it waits: %v, %d sleep", ok, v.Waits("loop"), v.Sleeping())
		}
		if v.Stop(); Now().Equal(v.Now()) || Now().Before(time.Now().Add(-time.Minute)) {
			t.Errorf("the clock of the machine does not apply: %v", Now())
		}
	})
}

// Without a simulation the time passes by itself, in no more than the longest wait.
func TestTheClockOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		<-Wait("loop", time.Hour, time.Minute)
		if d := time.Since(begin); d != time.Minute {
			t.Errorf("a loop waited %v, want a minute at most", d)
		}
		<-Wait("loop", -time.Hour, time.Minute)
		if err := Sleep(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d != time.Hour+time.Minute {
			t.Errorf("after both %v have passed", d)
		}
		if c := Never("loop"); c != nil {
			t.Errorf("Never is %v", c)
		}

		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := Sleep(ctx, time.Hour); !errors.Is(err, why) {
			t.Errorf("a sleep without a context ends with %v", err)
		}
	})
}
