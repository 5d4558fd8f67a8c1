//go:build race

package main

import "testing"

// TestSomeScripts plays a part of what TestScripts plays whole, so that commands and daemons
// run with the race detector as users run them.
func TestSomeScripts(t *testing.T) {
	t.Parallel()
	playScripts(t, 8)
}
