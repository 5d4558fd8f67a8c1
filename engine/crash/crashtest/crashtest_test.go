package crashtest

import (
	"errors"
	"testing"

	"daycare/engine/crash"
)

// Each step fails once, and the last run is the one in which none does.
func TestEachStepFails(t *testing.T) {
	var failed []string
	EachStepFails(t, "eio", func(*testing.T) func() error {
		return func() error {
			write := crash.Do("state.write", func() error { return nil })
			if write != nil {
				failed = append(failed, "write")
			}
			sync := crash.Do("state.sync", func() error { return nil })
			if sync != nil {
				failed = append(failed, "sync")
			}
			if err := crash.Do("hints.write", func() error { return nil }); err != nil {
				failed = append(failed, "hints")
			}

			return errors.Join(write, sync)
		}
	}, "hints.write")

	if len(failed) != 3 || failed[0] != "write" || failed[1] != "sync" || failed[2] != "hints" {
		t.Errorf("failed were %v, want each step once, in order", failed)
	}
}
