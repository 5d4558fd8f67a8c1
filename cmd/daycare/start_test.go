package main

import (
	"regexp"
	"testing"
)

// The heap is not collected while a daemon starts: the first time is when what the start needed is given back.
func TestAStartCollectsNothing(t *testing.T) {
	t.Parallel()
	d := &process{t: t, workspace: t.TempDir(), env: []string{"GODEBUG=gctrace=1", "GOGC="}}
	d.start()
	defer d.kill()
	first := regexp.MustCompile(`(?m)^gc 1 @.*$`)
	waitFor(t, "a collection", func() bool { return first.MatchString(d.said.String()) })
	if line := first.FindString(d.said.String()); !regexp.MustCompile(`\(forced\)$`).MatchString(line) {
		t.Errorf("the start needed so much that it was collected: %s", line)
	}
}
