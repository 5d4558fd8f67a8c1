//go:build !race

package disk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk/disktest"
)

// A writer lives once for each step here: with the race detector the other tests of replicas run the same.

// A fault of the disk at any step leaves the replica as it was before the operation, or as
// it is after it.
func TestReplicaAtEveryFault(t *testing.T) {
	t.Setenv("TMPDIR", crashtest.Memory())
	want := lives(t)
	for _, fault := range []string{"eio", "enospc", "short"} {
		for k, more := 1, true; more; k++ {
			t.Run(fmt.Sprintf("%s at step %d", fault, k), func(t *testing.T) {
				dir := t.TempDir()
				r := disktest.New(dir, replicated, nil)
				met := crash.Arm(t, fmt.Sprintf("%s@#%d:50", fault, k))
				done := live(dir, r, nil)
				more = len(met()) > 0
				if more == (done == len(works)) && fault == "eio" {
					t.Fatalf("%d of %d operations succeeded, steps hit: %q", done, len(works), met())
				}
				oneOf(t, r.Files(), want, done)
			})
		}
	}
}

// A process that dies at any step leaves what it had reported as done in the replica.
func TestReplicaAtEveryDeath(t *testing.T) {
	if dir := os.Getenv("DISK_REPLICA_CHILD"); dir != "" {
		liveAndKeep(t, dir)
		return
	}
	t.Setenv("TMPDIR", crashtest.Memory())
	want := lives(t)
	for _, percent := range []int{0, 100} {
		for k, died := 1, true; died; k++ {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=^TestReplicaAtEveryDeath$")
			cmd.Env = append(os.Environ(), "DISK_REPLICA_CHILD="+dir, fmt.Sprintf("DAYCARE_FAILPOINT=kill@#%d:%d", k, percent),
				"GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if died = errors.As(err, &exit) && exit.ExitCode() < 0; err != nil && !died {
				t.Fatalf("step %d: %v\n%s", k, err, out)
			}
			done, there := kept(t, dir)
			if !died && done != len(works) {
				t.Fatalf("step %d: the process lived, and did %d operations", k, done)
			}
			oneOf(t, there, want, done)
		}
	}
}
