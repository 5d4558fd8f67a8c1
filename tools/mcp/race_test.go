//go:build race

package mcp

import "testing"

// What norace_test.go does with more servers.

func TestServersAreMetAFewAtATime(t *testing.T) { metAFewAtATime(t, 150) }
