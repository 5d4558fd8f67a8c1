package crashtest

import (
	"fmt"
	"slices"
	"testing"

	"daycare/engine/crash"
)

// EachStepFails runs an operation once for each failpoint that it passes, on which this
// fault happens, and fails the test where the operation reports no error. begin prepares
// the operation, with no fault, and returns it. Steps on which nothing rests are excused
// by their names.
func EachStepFails(t *testing.T, fault string, begin func(t *testing.T) (op func() error), excused ...string) {
	t.Helper()
	for k, more := 1, true; more; k++ {
		t.Run(fmt.Sprintf("%s at step %d", fault, k), func(t *testing.T) {
			op := begin(t)
			met := crash.Arm(t, fmt.Sprintf("%s@#%d", fault, k))
			err := op()
			steps := met()
			switch more = len(steps) > 0; {
			case !more && k == 1:
				t.Error("the operation has no durable step")
			case !more && err != nil:
				t.Errorf("without a fault: %v", err)
			case more && err == nil && !slices.Contains(excused, steps[0]):
				t.Errorf("%s failed, and nothing is reported", steps[0])
			}
		})
	}
}
