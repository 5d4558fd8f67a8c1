package crashtest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
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

// The operation runs with none, then with one more each time, and is looked at when it says that it
// is done.
func TestFewDescriptors(t *testing.T) {
	var said []string
	FewDescriptors(t, func(*testing.T) (op, holds func() error) {
		open := 0
		op = func() error {
			var held []*os.File
			defer func() {
				for _, f := range held {
					f.Close()
				}
			}()
			for open = 0; open < 3; open++ {
				f, err := os.Open(os.DevNull)
				if err != nil {
					said = append(said, fmt.Sprint(open, " ", errors.Is(err, syscall.EMFILE)))
					return err
				}
				held = append(held, f)
			}
			return nil
		}
		return op, func() error {
			said = append(said, fmt.Sprint(open))
			return nil
		}
	})
	if want := []string{"0 true", "1 true", "2 true", "3"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}
