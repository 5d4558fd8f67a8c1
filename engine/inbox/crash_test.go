package inbox_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Failpoints are read from the environment once per process, so a crash or a
// faulty disk is tried in a child: this test binary, told by INBOX_TEST_CHILD in
// which folder to work. What it acknowledges it writes to standard output.
func TestMain(m *testing.M) {
	if dir := os.Getenv("INBOX_TEST_CHILD"); dir != "" {
		if err := child(dir); err != nil {
			fmt.Println("error", err)
		}
		os.Exit(0)
	}
	os.Setenv("TMPDIR", crashtest.Memory())
	os.Exit(m.Run())
}

const childItems = 24

// child accepts items, rotating on the way, and says "accepted N" and "done N".
func child(dir string) error {
	f, _, err := inbox.Open(disk.NewVolume(dir), dir, nil, time.Now)
	if err != nil {
		return err
	}
	defer f.Close()

	for n := range childItems {
		it := inbox.Item{Kind: message.Text, Text: strings.Repeat("x", 70_001), Dedupe: fmt.Sprint("k:", n)}
		r, err := f.Accept(noContext{}, it)
		if errors.Is(err, disk.ErrFull) {
			fmt.Println("full", n)
			continue
		}
		if err != nil {
			return err
		}

		fmt.Println("accepted", n)
		if n%4 > 0 {
			if err := f.Done(r.Item); err != nil {
				return err
			}
			fmt.Println("done", n)
		}
	}

	return nil
}

// noContext is a context without an end, for a process without a test.
type noContext struct{}

func (noContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (noContext) Done() <-chan struct{}       { return nil }
func (noContext) Err() error                  { return nil }
func (noContext) Value(any) any               { return nil }

// run lets a child work under a failpoint and returns what it said.
func run(t *testing.T, dir, failpoint string) (accepted, done map[int]bool, said string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "INBOX_TEST_CHILD="+dir, "DAYCARE_FAILPOINT="+failpoint, "GORACE=atexit_sleep_ms=0")
	out, _ := cmd.Output()
	accepted, done = map[int]bool{}, map[int]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var word string
		var n int
		fmt.Sscan(lines.Text(), &word, &n)
		switch word {
		case "accepted":
			accepted[n] = true
		case "done":
			done[n] = true
		}
	}

	return accepted, done, string(out)
}

// A crash at any durable step loses nothing that was acknowledged, opens nothing
// again that was done before a later accept, and every key is known once.
func TestDeathAtEveryStep(t *testing.T) {
	kills := []string{"inbox.accepted#7", "log.dirsync#1", "log.dirsync#1:100"}
	for _, percent := range []string{"0", "1", "50", "99", "100"} {
		kills = append(kills, "inbox.write#9:"+percent, "inbox.rotate.write#1:"+percent)
	}
	for _, step := range []string{"inbox.sync#6", "inbox.rotate.sync#1", "inbox.rotate.rename#1", "inbox.rotate.dirsync#1"} {
		kills = append(kills, step, step+":100")
	}

	for _, kill := range kills {
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			accepted, done, said := run(t, dir, "kill@"+kill)
			if len(accepted) == childItems || strings.Contains(said, "error") {
				t.Fatalf("the child did not die: %s", said)
			}
			verify(t, dir, accepted, done)
		})
	}
}

// A disk without room, or with a fault, at any step: what was acknowledged is
// there, what was refused is not.
func TestFaultAtEveryStep(t *testing.T) {
	for _, fault := range []string{"enospc@inbox.write#3", "short@inbox.write#3:50", "enospc@inbox.write#3+:30", "eio@inbox.write#5:50",
		"eio@inbox.sync#4", "enospc@inbox.rotate.write#1:50", "eio@inbox.rotate.sync#1", "eio@inbox.rotate.rename#1",
		"erofs@inbox.write#2+"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			accepted, done, said := run(t, dir, fault)
			if strings.HasPrefix(fault, "enospc@inbox.write#3:") && !strings.Contains(said, "full") {
				t.Errorf("nobody was refused: %s", said)
			}

			for line := range strings.Lines(said) {
				if strings.HasPrefix(line, "error") && !strings.Contains(line, disk.ErrFailed.Error()) {
					t.Error(line)
				}
			}
			verify(t, dir, accepted, done)
		})
	}
}

func verify(t *testing.T, dir string, accepted, done map[int]bool) {
	t.Helper()
	f, _ := open(t, dir)
	defer f.Close()
	open := map[string]bool{}
	for _, h := range f.Open() {
		it, err := f.Read(h.ID)
		if err != nil {
			t.Fatal(err)
		}
		if open[it.Dedupe] {
			t.Errorf("%s is open twice", it.Dedupe)
		}
		open[it.Dedupe] = true
	}

	last := 0
	for n := range accepted {
		last = max(last, n)
	}

	for n := range accepted {
		key := fmt.Sprint("k:", n)
		if !open[key] && !done[n] && n != last {
			t.Errorf("item %d was acknowledged and is not there", n)
		}
		if !open[key] && n == last && !done[n] && n%4 == 0 {
			t.Errorf("the last item, %d, was acknowledged and is not there", n)
		}
		if open[key] && done[n] && n != last {
			t.Errorf("item %d is open again after a later one was accepted", n)
		}

		r, err := f.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x", Dedupe: key})
		if err != nil || !r.Duplicate || r.Item == "" {
			t.Errorf("item %d offered again: %+v, %v", n, r, err)
		}
	}

	if left, _ := filepath.Glob(filepath.Join(dir, ".tmp-*")); len(left) > 1 {
		t.Errorf("left behind: %v", left)
	}
}
