package sandbox

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervise runs argv and returns its exit code when nothing of it is left. Every
// orphan below becomes the supervisor's own child, so what forked twice, made a
// session of its own or closed its files is found all the same.
//
// File 3 is a pipe from the daemon: its end means that the daemon is gone or wants
// an end at once. Other signals are handed on to what runs.
func supervise(most bounds, how shape, argv []string) int {
	runtime.LockOSThread() // the kernel ends the child with the thread that made it
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return Fail("supervise", err)
	}
	limits := newGroup(MaxThreads, most.memory)
	asked := make(chan os.Signal, 4)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	path, err := lookPath(argv[0])
	if err != nil {
		return Fail("find "+argv[0], err)
	}

	limits.enter()
	lift := limitThreads(MaxThreads)
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attributesOf(how)}
	if how != bare {
		self, err := os.Open("/proc/self/exe")
		if err != nil {
			return Fail("open daycare", err)
		}
		defer self.Close()
		attr.Files = append(attr.Files, self.Fd(), taskFile)
	}

	pid, err := syscall.ForkExec(path, argv, attr)
	lift(pid)
	limits.leave()
	if err != nil {
		limits.remove()
		return Fail("run "+path, err)
	}

	gone := make(chan struct{})
	go func() {
		os.NewFile(3, "daemon").Read(make([]byte, 1))
		close(gone)
	}()

	c := &crowd{most: most, pid: pid, how: how, group: limits, still: make(chan struct{})}
	go c.watch()

	return watchOver(pid, how, asked, gone, c)
}

func watchOver(pid int, how shape, asked <-chan os.Signal, gone <-chan struct{}, c *crowd) int {
	ended := make(chan syscall.WaitStatus, 1)
	go reap(pid, ended)
	code := func() int { return Failed }
	for running := true; running; {
		select {
		case status := <-ended:
			code, running = func() int { return exitCode(status) }, false
		case sig := <-asked:
			passOn(pid, how, sig.(syscall.Signal))
		case <-gone:
			running = false
		case <-c.still:
			running = false
		}
	}

	if !endAll() {
		syscall.Kill(os.Getpid(), syscall.SIGKILL) // so that the daemon looks for what is left
	}
	refused, killed := c.group.refused(), c.group.killed()
	c.group.remove()
	if had := c.had.Load(); had > 0 {
		fmt.Fprintf(os.Stderr, "[ended: it had %d processes at once; a command may have %d]\n", had, c.most.processes)
		return 128 + int(syscall.SIGKILL)
	}
	if used := c.used.Load(); used > 0 {
		fmt.Fprintf(os.Stderr, "[ended: it used %d MB of memory; a command may use %d]\n", used>>20, c.most.memory>>20)
		return 128 + int(syscall.SIGKILL)
	}
	if killed {
		fmt.Fprintf(os.Stderr, "[the kernel ended processes: a command may use %d MB of memory]\n", c.most.memory>>20)
	}
	if refused {
		fmt.Fprintf(os.Stderr, "[it was refused more than %d threads and processes at once]\n", MaxThreads)
	}

	return code()
}

// passOn hands a signal on: what asks for an end goes to all processes, as from a
// keyboard, the rest to the first one. What makes the view does not get it: it would
// die of it, and all inside with it.
func passOn(pid int, how shape, sig syscall.Signal) {
	first := []int{pid}
	var spared []int
	for range how.above() {
		spared = append(spared, first[0])
		if first = childrenOf(first[0]); len(first) == 0 {
			return
		}
	}

	all := first[:1]
	if sig == syscall.SIGTERM || sig == syscall.SIGINT {
		all = append(all, below(first[0], math.MaxInt)...)
		for _, p := range below(os.Getpid(), math.MaxInt) {
			if !slices.Contains(all, p) && !slices.Contains(spared, p) {
				all = append(all, p)
			}
		}
	}

	for _, p := range all {
		syscall.Kill(p, sig)
	}
}

// reap takes leave of every child, so that none stays as a zombie.
func reap(pid int, ended chan<- syscall.WaitStatus) {
	for {
		var status syscall.WaitStatus
		p, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			time.Sleep(10 * time.Millisecond) // no child at the moment; an orphan may come
		case p == pid && (status.Exited() || status.Signaled()):
			ended <- status
		}
	}
}

// endAll ends everything below this process, and reports whether it could. What is stopped cannot fork, so the
// first pass makes sure that the second one is not outrun.
func endAll() bool {
	for end := time.Now().Add(20 * time.Second); !childless(); {
		began := time.Now()
		if began.After(end) {
			return false
		}
		pids := below(os.Getpid(), math.MaxInt)
		for _, p := range pids {
			syscall.Kill(p, syscall.SIGSTOP)
		}

		for _, p := range pids {
			syscall.Kill(p, syscall.SIGKILL)
		}
		time.Sleep(max(time.Millisecond, time.Since(began))) // what is to end needs a processor, too
	}

	return true
}

// childless reports that nothing is below this process: what is left by others becomes its
// child at once. The kernel knows, where a list of children that change may miss some.
func childless() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD
}

// above is how many processes are above the command and make its view.
func (s shape) above() int {
	switch s {
	case bwrapped:
		return 2
	case ownSpace:
		return 1
	}

	return 0
}

// exitCode passes on how the command ended. A signal ends the supervisor, too, so
// that the daemon sees it.
func exitCode(status syscall.WaitStatus) int {
	if !status.Signaled() {
		return status.ExitStatus()
	}
	switch sig := status.Signal(); sig {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGALRM:
		signal.Reset(sig)
		syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second)
	}

	return 128 + int(status.Signal())
}

func lookPath(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	return "", fmt.Errorf("%s is not absolute", name)
}

// attributesOf is how what has a shape is started: in a session of its own, so that no
// command has the terminal of a user.
func attributesOf(how shape) *syscall.SysProcAttr {
	if how == ownSpace {
		return ownSpaces()
	}
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
