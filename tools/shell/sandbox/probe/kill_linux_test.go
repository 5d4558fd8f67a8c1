//go:build !race

package probe

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// probesOnly is set in a process of this test that does nothing but probe the sandbox.
const probesOnly = "DAYCARE_TEST_PROBES"

// A daemon that is killed while it probes the sandbox leaves no process, wherever bubblewrap is at this moment.
func TestAKilledProbeLeavesNoProcess(t *testing.T) {
	if os.Getenv(probesOnly) != "" {
		for {
			if _, err := Choose("bwrap", self(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Choose("bwrap", self(t)); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}

	dir := t.TempDir() // is in the arguments of everything that a probe starts
	binary := self(t)
	var daemons errgroup.Group
	daemons.SetLimit(2)
	for range 100 {
		daemons.Go(func() error {
			cmd := exec.Command(binary, "-test.run", "^TestAKilledProbeLeavesNoProcess$")
			cmd.Env = append(os.Environ(), probesOnly+"=1", "TMPDIR="+dir)
			if err := cmd.Start(); err != nil {
				return err
			}
			time.Sleep(30*time.Millisecond + rand.N(20*time.Millisecond))
			err := cmd.Process.Kill()
			_ = cmd.Wait()
			return err
		})
	}
	if err := daemons.Wait(); err != nil {
		t.Fatal(err)
	}

	left := processesWith(t, dir)
	for end := time.Now().Add(10 * time.Second); len(left) > 0 && time.Now().Before(end); left = processesWith(t, dir) {
		time.Sleep(10 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("%d processes are left: %s", len(left), left[0])
	}
	for _, one := range left {
		pid, _, _ := strings.Cut(one, " ")
		_ = exec.Command("kill", "-9", pid).Run()
	}
}

// processesWith are the processes with a word in their arguments, as PID ARGUMENTS.
func processesWith(t *testing.T, word string) (list []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*") // with more behind the id the kernel would list what there is to know of each
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path + "/cmdline")
		if err == nil && bytes.Contains(data, []byte(word)) {
			list = append(list, filepath.Base(path)+" "+string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
		}
	}

	return list
}
