//go:build !linux

package shell

import (
	"testing"

	"daycare/tools/shell/sandbox"
)

func (x *world) tempt() {}

// asEverybody runs a test at each level, as who runs the tests.
func asEverybody(t *testing.T, test func(t *testing.T, level sandbox.Level)) {
	t.Parallel()
	for _, level := range sandboxed {
		t.Run(string(level), func(t *testing.T) { test(t, level) })
	}
}
