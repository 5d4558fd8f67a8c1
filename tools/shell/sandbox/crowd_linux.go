package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How often the processes of a command are counted: often at its start, when
// a script that went wrong multiplies, then now and then.
const (
	countOften  = 20 * time.Millisecond
	countRarely = 250 * time.Millisecond
	youngFor    = 10 * time.Second
)

// limitProcesses has the kernel refuse more processes. It counts all of a user's
// threads and never refuses root any, so it is not the only limit.
func limitProcesses(most int) {
	uid := os.Getuid()
	if uid == 0 {
		return
	}
	have := uint64(most)
	tasks, err := filepath.Glob("/proc/[0-9]*/task/*")
	if err != nil {
		return
	}
	for _, task := range tasks {
		if info, err := os.Stat(task); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == uid {
				have++
			}
		}
	}
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &now) == nil && have < now.Cur {
		unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: have, Max: now.Max}) // the count below stays if this fails
	}
}

// count reports on crowd when there are more than most processes below this one.
// It does so on a thread that what it counts cannot starve, and without memory
// being collected in between, which would need the other threads.
func count(most int, crowd chan<- int) {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	urgent()
	for begun := time.Now(); ; {
		pause := countOften
		if time.Since(begun) > youngFor {
			pause = countRarely
		}
		t := unix.NsecToTimespec(int64(pause))
		unix.Nanosleep(&t, nil) // not time.Sleep: that takes another thread to end
		pids := below(os.Getpid())
		if len(pids) <= most {
			continue
		}
		for _, p := range pids { // at once: whoever reads crowd may be starved
			syscall.Kill(p, syscall.SIGSTOP)
		}
		select {
		case crowd <- len(pids):
		default:
		}
	}
}

// urgent puts this thread before what it watches, where the system lets it. What it
// starts does not inherit that.
func urgent() {
	tid := unix.Gettid()
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}
	if unix.SchedSetAttr(tid, &attr, 0) != nil {
		unix.Setpriority(unix.PRIO_PROCESS, tid, -10) // or as it is
	}
}

// below are the living descendants of a process.
func below(pid int) []int {
	children := childrenOf
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		children = byParent() // a kernel without these lists
	}
	var all []int
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		children := children(next[0])
		all = append(all, children...)
		next = append(next, children...)
	}
	return all
}

// childrenOf asks each thread of a process for its children.
func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil // it ended
	}
	var children []int
	for _, task := range tasks {
		data, err := os.ReadFile(dir + task.Name() + "/children")
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(data)) {
			if p, err := strconv.Atoi(field); err == nil && alive(p) {
				children = append(children, p)
			}
		}
	}
	return children
}

// byParent asks every process of the system for its parent.
func byParent() func(pid int) []int {
	children := map[int][]int{}
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return func(int) []int { return nil }
	}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if state, parent := stat(pid); state != 'Z' && state != 'X' {
			children[parent] = append(children[parent], pid)
		}
	}
	return func(pid int) []int { return children[pid] }
}

// alive is false for what ended and waits for its parent to notice.
func alive(pid int) bool {
	state, _ := stat(pid)
	return state != 'Z' && state != 'X'
}

// stat is the state and the parent of a process; X is none.
func stat(pid int) (state byte, parent int) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 'X', 0
	}
	// "12 (name) S 1 …": a name may hold anything, also a parenthesis.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 2 {
		return 'X', 0
	}
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return 'X', 0
	}
	return fields[0][0], parent
}
