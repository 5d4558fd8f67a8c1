package sandbox

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Threads of a user are counted from the number of links of a folder, which has to be what listing every one of them
// gives. Others may come and go in between, so it is tried until the two agree.
func TestThreadsOfAUser(t *testing.T) {
	uid := uint32(os.Getuid())
	var counted, listed uint64
	for range 200 {
		counted, listed = threadsOf(uid), 0
		tasks, err := filepath.Glob("/proc/[0-9]*/task/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			var st unix.Stat_t
			if unix.Stat(task, &st) == nil && st.Uid == uid {
				listed++
			}
		}
		if counted == listed && counted > 1 {
			return
		}
	}

	t.Errorf("counted are %d threads, listed %d", counted, listed)
}

// What a supervisor reads of the processes below it.
func TestStateOfAProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	becomes := func(want byte) {
		t.Helper()
		var state byte
		var parent int
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if state, parent = status(pid); state == want {
				break
			}
		}
		if state != want || parent != os.Getpid() {
			t.Fatalf("state %q, parent %d; want %q, %d", state, parent, want, os.Getpid())
		}
	}

	becomes('S')
	if !alive(pid) || !slices.Contains(below(os.Getpid(), math.MaxInt), pid) || len(below(os.Getpid(), 0)) != 0 {
		t.Errorf("what sleeps is not below: %v", below(os.Getpid(), math.MaxInt))
	}

	cmd.Process.Signal(syscall.SIGSTOP)
	becomes('T')
	cmd.Process.Kill()
	becomes('Z')
	if alive(pid) || slices.Contains(below(os.Getpid(), math.MaxInt), pid) {
		t.Errorf("what ended is below: %v", below(os.Getpid(), math.MaxInt))
	}

	cmd.Wait()
	if state, parent := status(pid); state != 'X' || parent != 0 || alive(pid) {
		t.Errorf("what is gone has the state %q, the parent %d", state, parent)
	}
}

// A process whose first thread has ended is a zombie by its state, and runs.
func TestAProcessWithoutItsFirstThread(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	cmd := exec.Command(python, "-c", `import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall(`+strconv.Itoa(unix.SYS_EXIT)+`, 0)`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	var state byte
	for end := time.Now().Add(20 * time.Second); state != 'Z' && time.Now().Before(end); time.Sleep(time.Millisecond) {
		state, _ = status(pid)
	}
	if state != 'Z' || !alive(pid) || !slices.Contains(below(os.Getpid(), math.MaxInt), pid) ||
		!slices.Contains(byParent()(os.Getpid()), pid) {
		t.Errorf("its state is %q, below are %v", state, below(os.Getpid(), math.MaxInt))
	}

	cmd.Process.Kill()
	cmd.Wait()
	if alive(pid) {
		t.Error("it lives")
	}
}
