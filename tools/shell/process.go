package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// grace is the time between SIGTERM and SIGKILL.
	grace = 5 * time.Second
	// drain is how long output is still read after the group was killed: only a
	// process that left the group can hold the pipe longer.
	drain = 500 * time.Millisecond
	// markName names the variable by which processes that left the group are
	// found again.
	markName = "DAYCARE_CALL"
)

// process is one command to run.
type process struct {
	shell, command, dir string
	env                 []string
	stdin               string
	mark                string // id of the call
}

// ending is how a command ended.
type ending struct {
	code     int
	signal   string // name of the signal that ended it
	timedOut bool
}

// run runs the command to its end and returns when nothing of it is left. An
// error means that it did not start.
func (p process) run(ctx context.Context, timeout time.Duration, out *capture) (ending, error) {
	// The kernel signals the child when the thread that started it ends
	// (Pdeathsig), so this thread must live as long as the command.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		return ending{}, fmt.Errorf("make pipe: %w", err)
	}
	defer read.Close()
	cmd := exec.CommandContext(timed, p.shell, "-c", p.command)
	cmd.Dir = p.dir
	cmd.Env = append(p.env, "PWD="+p.dir)
	if p.mark != "" {
		cmd.Env = append(cmd.Env, markName+"="+p.mark)
	}
	if p.stdin != "" {
		cmd.Stdin = strings.NewReader(p.stdin)
	}
	// One pipe for both keeps what is printed in order.
	cmd.Stdout, cmd.Stderr = write, write
	cmd.SysProcAttr = attributes()
	var kill *time.Timer
	cmd.Cancel = func() error {
		group := cmd.Process.Pid
		kill = time.AfterFunc(grace, func() { syscall.Kill(-group, syscall.SIGKILL) })
		if err := syscall.Kill(-group, syscall.SIGTERM); err != syscall.ESRCH {
			return err
		}
		return os.ErrProcessDone
	}
	cmd.WaitDelay = grace + time.Second
	err = cmd.Start()
	write.Close()
	if err != nil {
		return ending{}, fmt.Errorf("start %s: %w", p.shell, err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		io.Copy(out, read) // ends with the last writer, or when read is closed
	}()
	err = cmd.Wait()
	if kill != nil {
		kill.Stop()
	}
	p.sweep(cmd.Process.Pid)
	select {
	case <-copied:
	case <-time.After(drain):
		read.Close()
		<-copied
	}
	out.finish()
	return endOf(cmd, err, timed.Err() != nil && ctx.Err() == nil), nil
}

// sweep ends what the shell left behind: its group, and what left the group.
func (p process) sweep(group int) {
	syscall.Kill(-group, syscall.SIGKILL) // an error means that nothing is left
	if p.mark != "" {
		killMarked(markName + "=" + p.mark)
	}
}

// endOf reads the end of a command; late: its time was up.
func endOf(cmd *exec.Cmd, err error, late bool) ending {
	e := ending{timedOut: late && err != nil}
	if cmd.ProcessState == nil {
		e.code = -1
		return e
	}
	e.code = cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal().String()
	}
	return e
}
