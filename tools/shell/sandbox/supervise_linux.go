package sandbox

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// countEvery is how often a supervisor counts the processes below it.
const countEvery = 50 * time.Millisecond

// supervise runs argv and returns its exit code when nothing of it is left. Every
// orphan below becomes the supervisor's own child, so what forked twice, made a
// session of its own or closed its files is found all the same.
//
// File 3 is a pipe from the daemon: its end means that the daemon is gone or wants
// an end at once. Other signals are handed on to what runs.
func supervise(most int, argv []string) int {
	runtime.LockOSThread() // the kernel ends the child with the thread that made it
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail("supervise", err)
	}
	asked := make(chan os.Signal, 4)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	path, err := lookPath(argv[0])
	if err != nil {
		return fail("find "+argv[0], err)
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		return fail("run "+path, err)
	}
	gone := make(chan struct{})
	go func() {
		os.NewFile(3, "daemon").Read(make([]byte, 1))
		close(gone)
	}()
	return watchOver(pid, most, asked, gone)
}

func watchOver(pid, most int, asked <-chan os.Signal, gone <-chan struct{}) int {
	ended := make(chan syscall.WaitStatus, 1)
	go reap(pid, ended)
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case status := <-ended:
			endAll()
			return exitCode(status)
		case sig := <-asked:
			for _, p := range below(os.Getpid()) {
				if p != pid || !isBwrap(pid) { // it would die of it, and all inside with it
					syscall.Kill(p, sig.(syscall.Signal))
				}
			}
		case <-gone:
			endAll()
			return failed
		case <-tick.C:
			if n := len(below(os.Getpid())); n > most {
				endAll()
				fmt.Fprintf(os.Stderr, "[ended: it had %d processes; %d are allowed]\n", n, most)
				return failed
			}
		}
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

// endAll ends everything below this process. What is stopped cannot fork, so the
// first pass makes sure that the second one is not outrun.
func endAll() {
	for range 200 {
		pids := below(os.Getpid())
		if len(pids) == 0 {
			return
		}
		for _, p := range pids {
			syscall.Kill(p, syscall.SIGSTOP)
		}
		for _, p := range pids {
			syscall.Kill(p, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// below are the living descendants of a process.
func below(pid int) []int {
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// "12 (name) S 1 …": a name may hold anything, also a parenthesis.
		text := string(data)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		parent, err1 := strconv.Atoi(fields[1])
		p, err2 := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err1 == nil && err2 == nil {
			children[parent] = append(children[parent], p)
		}
	}
	var all []int
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return all
}

func isBwrap(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.TrimSpace(string(name)) == "bwrap"
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
