//go:build !race

package mcp

import "testing"

// What does the same for each of many servers. race_test.go has fewer of them, with the race detector.

func TestManyServersAreMetAFewAtATime(t *testing.T) { metAFewAtATime(t, 500) }
