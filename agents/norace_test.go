//go:build !race

package agents

import (
	"fmt"
	"testing"

	"daycare/engine/crash/crashtest"
)

// What follows lives an agent's life thousands of times. race_test.go does the same a few
// times, with the race detector.

// An agent whose disk fails at any step of any piece of work says so and stops: nothing
// leaves it and nothing runs that is not recorded. Its next life finishes the work, once.
func TestEachFailedStepEndsTheAgentAndNothingIsLost(t *testing.T) {
	for name := range jobs(t) {
		endsAtEachFailedStep(t, name)
	}
}

// The same where the life before was cut by a disk that failed: the steps of recovery
// fail, too.
func TestEachFailedStepOfARecoveryIsReported(t *testing.T) {
	stride := 2
	if testing.Short() {
		stride = 7
	}

	for _, name := range []string{"a call of a tool", "a request", "a right for good", "a reset"} {
		j := jobs(t)[name]
		for step := 1; ; step += stride {
			_, _, _, met, was := j.cut(t, step)
			if len(met) == 0 {
				break // it has no more steps
			}
			if !was {
				continue
			}

			t.Run(fmt.Sprintf("%s, cut at step %d", name, step), func(t *testing.T) {
				crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
					b, tool, item, _, _ := j.cut(t, step)
					return func() error { return j.fail(b, tool, item) }
				}, excused...)
			})
		}
	}
}

func TestLongConversationNeverOverflows(t *testing.T) {
	t.Parallel()
	turns := 400
	if testing.Short() {
		turns = 60
	}
	longConversation(t, turns)
}
