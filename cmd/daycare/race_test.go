//go:build race

package main

import "testing"

// TestSomeScripts plays a part of what TestScripts plays whole, so that commands and daemons
// run with the race detector as users run them. The sample of chaos is not in it: it starts a hundred daemons, each of
// which does what other tests have it do. chaos_case.txtar has the harness and its daemons in a few of its cases.
func TestSomeScripts(t *testing.T) {
	t.Parallel()
	playScripts(t, "abilities", "chaos_case", "cron", "doctor", "hooks", "logs", "models", "permission", "undo", "worktree")
}

// TestSomeBackgroundAgents is a part of TestBackgroundAgentsAtTheDefaultLimits, which need not reach the limits.
func TestSomeBackgroundAgents(t *testing.T) {
	t.Parallel()
	atTheDefaultLimits(t, 8)
}

// TestOneFirstAnswerWins is a part of TestFirstAnswerWins: one pair of decisions, by each pair of ways to answer.
func TestOneFirstAnswerWins(t *testing.T) {
	t.Parallel()
	firstAnswerWins(t, [2]string{"once", "deny"})
}
