package disk

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A holder that has ended does not live, also while its parent has not collected it: in many containers none ever does.
func TestAHolderThatWasNotCollected(t *testing.T) {
	cmd := exec.Command("cat")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	h := Holder{PID: cmd.Process.Pid}
	if !h.Alive() {
		t.Error("a process that runs does not live")
	}

	input.Close()
	if err := unix.Waitid(unix.P_PID, h.PID, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if h.Alive() {
		t.Error("a process lives that has ended")
	}
}
