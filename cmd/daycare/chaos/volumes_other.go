//go:build !linux

package chaos

import "context"

// volumes needs file systems that can be cut off.
func (h *harness) volumes(context.Context) error {
	if h.powerCuts() == 0 {
		return nil
	}
	h.report.skip("power cuts of real file systems and full disks: only on Linux")
	return nil
}

// unmountBelow: nothing is mounted here.
func unmountBelow(string) error { return nil }
