package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"daycare/engine/permission"
	"daycare/engine/redact"
	"daycare/tools/shell/guard"
	"daycare/tools/shell/sandbox"
)

const (
	// grace is the time between SIGTERM and SIGKILL.
	grace = 5 * time.Second
	// drain is how long output is still read after the group was killed: only a
	// process that left the group can hold the pipe longer.
	drain = 500 * time.Millisecond
	// last is how long a supervisor may take to end everything below it.
	last = time.Second
	// markName names the variable by which processes that left the group are
	// found again.
	markName = "DAYCARE_CALL"
)

// process is one command to run.
type process struct {
	commandLine
	isolation
	approval
	stderr  io.Writer             // receives standard error and notes about the command; nil: they go with the output
	secrets *redact.Redactor      // removes secrets from the output
	grace   time.Duration         // between SIGTERM and SIGKILL
	began   func() (ended func()) // is called before it starts; ended when nothing of it is left
	refused func(what string)     // is called with what the guard put aside
}

// A commandLine is what to run, and with what input.
type commandLine struct {
	shell, command string
	argv           []string // run instead of command, without a shell, unless it is nil
	env            []string // NAME=value
	stdin          string   // ignored if keepOpen
	keepOpen       bool     // standard input stays open for more
	mark           string   // id of the call, by which processes that left the group are found; "": none
}

// isolation limits what a command reaches: files, disks, hosts.
type isolation struct {
	runner  *sandbox.Runner
	view    sandbox.View
	watch   *guard.Watch // watches the files that it makes; nil: it is not watched
	room    *room        // on the disks that it writes to
	proxy   *proxy       // its network, closed when it ends; nil: none
	domains []string     // hosts that it can reach through proxy
}

// approval is what permits a command to run.
type approval struct {
	rule    permission.Access         // the right that a user had to give; nil: it needed none
	covered func(permission.Set) bool // reports whether a set of rights still permits it; nil: any set does
}

// confined returns an environment for the inside of the sandbox: with the home and the
// temporary folder of the view.
func (i isolation) confined(env []string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "HOME=") || strings.HasPrefix(kv, "TMPDIR=") })
	return append(env, i.runner.Environment(i.view)...)
}

// ending is how a command ended.
type ending struct {
	code     int
	signal   string // name of the signal that ended it
	timedOut bool
}

// A running command. All its methods may be called from any goroutine.
type running struct {
	pid   int
	stdin io.WriteCloser // nil: closed, or given beforehand
	ended chan struct{}  // closed when the command has ended
	done  chan struct{}  // closed when nothing of it is left and all output is written
	end   ending         // valid when done is closed

	grace   time.Duration
	mu      sync.Mutex
	control *os.File // its end ends everything below the supervisor; nil: no supervisor
	killer  *time.Timer
}

// run runs the command to its end and returns when nothing of it is left. An
// error means that it did not start.
func (p process) run(ctx context.Context, timeout time.Duration, out io.Writer) (ending, error) {
	r, err := p.start(out)
	if err != nil {
		return ending{}, err
	}

	return r.wait(ctx, timeout), nil
}

// wait waits for the end; when the time is up or ctx ends, it brings it about.
func (r *running) wait(ctx context.Context, timeout time.Duration) ending {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.end
	case <-ctx.Done():
		r.terminate()
		<-r.done
		return r.end
	case <-timer.C:
		r.terminate()
		<-r.done
		end := r.end
		end.timedOut = true
		return end
	}
}

// start starts the command. out gets standard output and error; only one
// goroutine writes to it.
func (p process) start(out io.Writer) (_ *running, err error) {
	ended := p.began()
	defer func() {
		if err != nil {
			p.proxy.close()
			ended()
			p.watch.End()
		}
	}()
	argv := []string{p.shell, "-c", p.command}
	if p.argv != nil {
		argv = p.argv
	}
	launch, err := p.runner.Wrap(p.view, argv, p.environment())
	if err != nil {
		return nil, err
	}
	defer launch.Close() // the child has its own
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer write.Close() // the child has its own; the pipe ends with the last of them
	cmd := exec.Command(launch.Argv[0], launch.Argv[1:]...)
	cmd.Dir, cmd.Env = p.view.Dir, append(launch.Env, p.marked()...)
	// One pipe for both keeps what is printed in order.
	cmd.Stdout, cmd.Stderr = write, write
	if p.stderr != nil {
		cmd.Stderr = p.stderr
	}
	cmd.SysProcAttr = attributes(p.runner.Supervised())
	cmd.WaitDelay = last
	r := &running{ended: make(chan struct{}), done: make(chan struct{}), grace: p.grace}
	if err := p.connect(cmd, r, launch.Files); err != nil {
		read.Close()
		return nil, err
	}
	started := make(chan error)
	go p.follow(cmd, r, read, out, started, ended)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}

	return r, nil
}

// environment is what the command gets; the mark must be in it, too.
func (p process) environment() []string {
	return append(append(append([]string(nil), p.env...), "PWD="+p.view.Dir), p.marked()...)
}

// marked returns the environment variable that marks all processes of the call.
func (c commandLine) marked() []string {
	if c.mark == "" {
		return nil
	}
	return []string{markName + "=" + c.mark}
}

// connect gives the command its input and its supervisor.
func (p process) connect(cmd *exec.Cmd, r *running, files []*os.File) (err error) {
	if p.keepOpen {
		if r.stdin, err = cmd.StdinPipe(); err != nil {
			return fmt.Errorf("make pipe: %w", err)
		}
	} else if p.stdin != "" {
		cmd.Stdin = strings.NewReader(p.stdin)
	}
	if !p.runner.Supervised() {
		return nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	cmd.ExtraFiles, r.control = append([]*os.File{theirs}, files...), ours
	return nil
}

// follow starts the command and sees it through.
func (p process) follow(cmd *exec.Cmd, r *running, read *os.File, out io.Writer, started chan<- error, ended func()) {
	defer read.Close()
	// Without a supervisor the kernel signals the child when the thread that
	// started it ends (Pdeathsig), so this thread must live as long.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if len(cmd.ExtraFiles) > 0 {
		cmd.ExtraFiles[0].Close() // the supervisor's end of its pipe
	}
	if err != nil {
		r.release()
		started <- err
		return
	}
	r.pid = cmd.Process.Pid
	started <- nil
	copied := make(chan struct{})
	clean := p.secrets.Writer(out)
	go func() {
		defer close(copied)
		io.Copy(clean, read) // ends with the last writer, or when read is closed
	}()
	go p.room.watch(r.ended, r.kill)
	cmd.Wait() // how it ended is in ProcessState
	close(r.ended)
	r.release()
	p.sweep(r.pid, cmd.ProcessState)
	select {
	case <-copied:
	case <-time.After(drain):
		read.SetReadDeadline(time.Now())
		<-copied
		remaining(clean, read)
	}
	var beside io.Writer = clean
	if p.stderr != nil {
		beside = p.stderr
	}
	p.settle(beside)
	p.room.report(beside)
	clean.Close() // what keeps output never fails
	p.proxy.close()
	ended()
	r.end = endOf(cmd)
	close(r.done)
}

// maxPipe is how much a pipe holds at most, unless root says otherwise.
const maxPipe = 1 << 20

// remaining copies what is in a pipe, without waiting for more: where a machine has too much to do, what a command
// printed may still be there when the time for it is up.
func remaining(out io.Writer, pipe *os.File) {
	pipe.SetReadDeadline(time.Time{})
	conn, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for range maxPipe / len(buf) {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf) // less than 1: there is nothing
			return true
		})
		if err != nil || n < 1 {
			return
		}
		out.Write(buf[:n]) // what keeps output never fails
	}
}

// maxHeld bounds how many things that were put aside are named.
const maxHeld = 20

// settle has what the command left behind put aside that runs later, and says so.
func (p process) settle(out io.Writer) {
	all := p.watch.End()
	if more := len(all) - maxHeld; more > 0 {
		all = all[:maxHeld]
		what := fmt.Sprintf("%d more were put aside, or could not be", more)
		defer func() {
			p.refused(what)
			fmt.Fprintf(out, "\n[%s]\n", what)
		}()
	}
	for _, held := range all {
		what := fmt.Sprintf("%s was put aside as %s: "+
			"it runs something later, or tells programs of your user what to run", held.Path, held.Aside)
		if errors.Is(held.Err, guard.ErrTooMany) {
			fmt.Fprintf(out, "\n[what runs later was not looked for: %v]\n", held.Err)
			p.refused(fmt.Sprintf("what a command made that runs later was not looked for: %v", held.Err))
			continue
		}
		if held.Err != nil {
			what = fmt.Sprintf("%s runs something later and could not be put aside: %v", held.Path, held.Err)
		}
		p.refused(what)
		fmt.Fprintf(out, "\n[%s. To have it there, ask with request_permission for %s, then make it again]\n", what,
			permission.Write{Path: held.Path}.Tag())
	}
}

// terminate asks the command to end, and makes it after the grace.
func (r *running) terminate() {
	if syscall.Kill(-r.pid, syscall.SIGTERM) != nil {
		return // it is gone
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killer == nil {
		r.killer = time.AfterFunc(r.grace, r.kill)
	}
}

// kill ends the command at once.
func (r *running) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.control == nil {
		syscall.Kill(-r.pid, syscall.SIGKILL) // an error means that it is gone
		return
	}
	r.control.Close() // a supervisor sees to it that nothing is left
	r.control = nil
	pid, done := r.pid, r.done
	r.killer = time.AfterFunc(last, func() {
		select {
		case <-done:
		default:
			syscall.Kill(-pid, syscall.SIGKILL)
		}
	})
}

// release gives up what belongs to the running command.
func (r *running) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killer != nil {
		r.killer.Stop()
	}
	if r.control != nil {
		r.control.Close()
		r.control = nil
	}
}

// sweep ends what the shell left behind: its group, and what left the group. The latter is looked for among all
// processes of the machine, so not where a supervisor has seen to it.
func (p process) sweep(group int, end *os.ProcessState) {
	syscall.Kill(-group, syscall.SIGKILL) // an error means that nothing is left
	if p.mark != "" && !p.leftNothing(end) {
		killMarked(markName + "=" + p.mark)
	}
}

// leftNothing reports whether a supervisor ended because nothing was below it any more: not by a signal, which its command
// may have sent, and not with the code of a Go program that gets no memory or thread.
func (i isolation) leftNothing(end *os.ProcessState) bool {
	const crashed = 2
	return i.runner.Supervised() && end != nil && end.Exited() && end.ExitCode() != crashed
}

func endOf(cmd *exec.Cmd) ending {
	if cmd.ProcessState == nil {
		return ending{code: -1}
	}
	e := ending{code: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal().String()
	}

	return e
}
