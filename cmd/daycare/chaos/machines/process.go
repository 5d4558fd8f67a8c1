package machines

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"daycare/cmd/daycare/chaos/child"
)

// A process is a program that is started again and again.
type process struct {
	command []string
	env     []string
	said    string // file with what it printed
	cmd     *exec.Cmd
	exited  chan struct{}
}

// start starts the process; what it prints goes to a file of its own.
func (p *process) start() error {
	out, err := os.Create(p.said)
	if err != nil {
		return err
	}
	defer out.Close()
	p.cmd = exec.Command(p.command[0], p.command[1:]...)
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.said), "XDG_STATE_HOME=" + os.DevNull, "TZ=UTC"},
		p.env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = child.Attributes()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.command[0], err)
	}
	exited := make(chan struct{})
	p.exited = exited
	go func() {
		_ = p.cmd.Wait() // however it ends
		close(exited)
	}()

	return nil
}

func (p *process) alive() bool {
	if p.exited == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// wait waits until the process is ready.
func (p *process) wait(what string, ready func() bool) error {
	for end := time.Now().Add(readyFor); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ready() {
			return nil
		}
		if !p.alive() {
			return fmt.Errorf("%s ended: %s", what, p.says())
		}
	}

	return fmt.Errorf("%s is not ready after %v: %s", what, readyFor, p.says())
}

// log is what the process printed.
func (p *process) log() string {
	data, err := os.ReadFile(p.said)
	if err != nil {
		return err.Error()
	}

	return string(data)
}

// says is the end of it.
func (p *process) says() string {
	all := p.log()
	return strings.TrimSpace(all[max(0, len(all)-2000):])
}

func (p *process) kill() {
	if p.alive() {
		_ = p.cmd.Process.Kill() // else it has just ended
		<-p.exited
	}
}

// stand suspends the process, or resumes it.
func (p *process) stand(still bool) error {
	s := syscall.SIGCONT
	if still {
		s = syscall.SIGSTOP
	}

	return p.cmd.Process.Signal(s)
}

// terminate ends the process in order.
func (p *process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(readyFor):
		return fmt.Errorf("%s does not end after %v: %s", p.command[0], readyFor, p.says())
	}
	if state := p.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("%s ended with %v: %s", p.command[0], state, p.says())
	}

	return nil
}
