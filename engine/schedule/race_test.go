//go:build race

package schedule

import "testing"

// What norace_test.go does for longer, with the race detector.

func TestSlotsOnceInSomeDays(t *testing.T) { everySlotOnce(t, 0, 4, 20, []string{"Europe/Berlin"}) }
