package chaos

import (
	"testing"
	"testing/synctest"
	"time"
)

// Where a machine makes daemons late, a scenario idles as much longer, so that what has to happen by then can, and what
// is judged is not excused. Where it does so all the time, the scenario is played all the same.
func TestIdle(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{
		0: 1500 * time.Millisecond, 200 * time.Millisecond: 1500*time.Millisecond + 200*time.Millisecond*stallShare, time.Hour: mostIdle,
	} {
		synctest.Test(t, func(t *testing.T) {
			u := &user{world: &world{stalls: &stallClock{stalls: []stall{{time.Now(), late}}}}}
			began := time.Now()
			if err := idle(1500*time.Millisecond)(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < want || took > want+4*poll {
				t.Errorf("with a machine that is late by %s it took %s, want %s", late, took, want)
			}
		})
	}
}
