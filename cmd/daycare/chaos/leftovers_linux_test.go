package chaos

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a killed harness left goes; what a living one has and what is kept for a user stay.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	left, lock, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close() // as the kernel does for one that is killed
	inside := filepath.Join(left, "small")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}

	mounted := os.Getuid() == 0 && unix.Mount("daycare-chaos", inside, "tmpfs", 0, "size=1m") == nil
	write(t, filepath.Join(inside, "file"), "of a case")
	lives, held, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	kept := filepath.Join(parent, folderPrefix+"kept")
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer
	if err := sweep(parent, &log); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is still there (mounted: %v): %v", left, mounted, err)
	}
	if !strings.Contains(log.String(), left) {
		t.Errorf("what was removed is not named: %q", log.String())
	}

	for _, dir := range []string{lives, kept} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s was taken down, too: %v", dir, err)
		}
	}
}

// A daemon ends with the harness that started it, also if nobody can tell it to.
func TestDaemonEndsWithTheHarness(t *testing.T) {
	if dir := os.Getenv("CHAOS_TEST_HARNESS"); dir != "" {
		d, err := launch{binary: filepath.Join(dir, "daemon"), workspace: dir, dir: dir}.start()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "pid.new"), strconv.Itoa(d.cmd.Process.Pid))
		if err := os.Rename(filepath.Join(dir, "pid.new"), filepath.Join(dir, "pid")); err != nil {
			t.Fatal(err)
		}
		<-d.exited
		return
	}

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "daemon"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	harness := exec.Command(os.Args[0], "-test.run", "^TestDaemonEndsWithTheHarness$")
	harness.Env = append(os.Environ(), "CHAOS_TEST_HARNESS="+dir)
	if err := harness.Start(); err != nil {
		t.Fatal(err)
	}

	var pid int
	eventually(t, "the daemon was not started", func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err == nil {
			pid, err = strconv.Atoi(string(data))
		}
		return err == nil
	})

	harness.Process.Kill()
	harness.Wait()
	eventually(t, "the daemon lives on", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ") // nobody may be there to bury it
	})
}

func eventually(t *testing.T, otherwise string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}
