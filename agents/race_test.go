//go:build race

package agents

import "testing"

// What norace_test.go does thousands of times, a few times with the race detector.

func TestFailedStepsOfACall(t *testing.T) {
	endsAtEachFailedStep(t, "a call of a tool")
}

func TestConversationNeverOverflows(t *testing.T) { longConversation(t, 20) }
