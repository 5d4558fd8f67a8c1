package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"daycare/cmd/daycare/chaos/child"
	"daycare/cmd/daycare/chaos/platforms"
)

// A daemon is one life of the process under test.
type daemon struct {
	cmd      *exec.Cmd
	trace    string
	stderr   string
	exited   chan struct{}
	killed   bool // by this process
	killedAt time.Time
}

// launch says how a life begins.
type launch struct {
	binary    string
	workspace string
	arguments []string // none: start
	dir       string   // of the case: traces and what was said go here
	life      int
	failpoint string
	mirror    string
	bug       string
	secret    string
	ahead     time.Duration // of its clock
	limit     limit
	collects  bool // garbage, as ever; others do so only when it gets much
}

// muchGarbage is when a daemon collects it that need not before: most lives are over
// long before that, and a tenth of the processor would go there.
const muchGarbage = "256MiB"

func (l launch) environment(trace string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.dir, "XDG_STATE_HOME=" + os.DevNull, "TZ=UTC", "GOTRACEBACK=all",
		secretEnv + "=" + l.secret, "DAYCARE_FAILPOINT_TRACE=" + trace,
	}
	env = append(env, platforms.Environment()...)
	if !l.collects {
		env = append(env, "GOGC=off", "GOMEMLIMIT="+muchGarbage)
	}
	if race := os.Getenv("GORACE"); race != "" { // how a test has the race detector work
		env = append(env, "GORACE="+race)
	}

	ahead := ""
	if l.ahead != 0 {
		ahead = l.ahead.String()
	}

	for name, value := range map[string]string{
		"DAYCARE_FAILPOINT_CLOCK": ahead, "DAYCARE_FAILPOINT": l.failpoint, "DAYCARE_FAILPOINT_MIRROR": l.mirror, "DAYCARE_BUG": l.bug,
	} {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}

	return env
}

// start starts the daemon. It is ready when it answers; who talks to it tries until
// then.
func (l launch) start() (*daemon, error) {
	d := &daemon{exited: make(chan struct{}),
		trace:  filepath.Join(l.dir, fmt.Sprintf("trace-%03d", l.life)),
		stderr: filepath.Join(l.dir, fmt.Sprintf("stderr-%03d", l.life))}
	out, err := os.Create(d.stderr)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	arguments := l.arguments
	if len(arguments) == 0 {
		arguments = []string{"start"}
	}

	command := l.limit.command(append([]string{l.binary, "--workspace", l.workspace, "--no-input"}, arguments...))
	d.cmd = exec.Command(command[0], command[1:]...)
	d.cmd.Env, d.cmd.Dir = l.environment(d.trace), l.workspace
	d.cmd.Stdout, d.cmd.Stderr = out, out
	d.cmd.SysProcAttr = child.Attributes()
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start daemon: %w", err)
	}

	go func() {
		d.cmd.Wait()
		close(d.exited)
	}()
	return d, nil
}

// condemn notes when the end of it began.
func (d *daemon) condemn() {
	if !d.killed {
		d.killed, d.killedAt = true, time.Now()
	}
}

// kill ends it as nothing can prevent.
func (d *daemon) kill() {
	d.condemn()
	d.cmd.Process.Kill()
	<-d.exited
}

// stop ends it in order; false: it did not end.
func (d *daemon) stop(patience time.Duration) bool {
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.exited:
		return true
	case <-time.After(patience):
		return false
	}
}

// stuck ends a daemon that does nothing any more, and has it say where it hangs.
func (d *daemon) stuck() {
	d.condemn()
	d.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-d.exited:
	case <-time.After(2 * time.Second):
		d.kill()
	}
}

func (d *daemon) alive() bool {
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// code is its exit code; -1: a signal ended it, which is what killing looks like.
func (d *daemon) code() int { return d.cmd.ProcessState.ExitCode() }

// died reports whether SIGKILL ended it.
func (d *daemon) died() bool {
	status, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// said is the end of what it wrote for users.
func (d *daemon) said() string {
	data, err := os.ReadFile(d.stderr)
	if err != nil {
		return ""
	}

	return strings.TrimSpace(string(data[max(0, len(data)-2000):]))
}

// endedAt is when it died. The harness may see that late on a busy machine, or mirror the disk
// before: one that died at a step did nothing after it had noted that step, and one that was
// killed nothing after that.
func (d *daemon) endedAt(armed Death) time.Time {
	if d.killed {
		return d.killedAt
	}
	if info, err := os.Stat(d.trace); err == nil && armed.Failpoint != "" && d.died() {
		return info.ModTime()
	}

	return time.Now()
}

// passed lists the failpoints it passed, in order.
func (d *daemon) passed() []string {
	data, err := os.ReadFile(d.trace)
	if err != nil {
		return nil
	}

	return strings.Fields(string(data))
}

// ports hands out addresses for daemons to listen at. They lie below the range
// from which systems take the near end of connections, and on Linux, where all of 127/8 is
// this machine, each harness has a host of its own.
type ports struct {
	host string
	mu   sync.Mutex
	next int
}

func newPorts() *ports {
	pid := os.Getpid()
	p := &ports{host: "127.0.0.1", next: 20_000 + pid%5_000}
	if runtime.GOOS == "linux" {
		p.host = fmt.Sprintf("127.%d.%d.%d", 1+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
	}

	return p
}

func (p *ports) take(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ctx.Err() == nil {
		if p.next++; p.next > 32_000 {
			p.next = 20_000
		}
		address := fmt.Sprintf("%s:%d", p.host, p.next)
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", err
		}
	}

	return "", ctx.Err()
}
