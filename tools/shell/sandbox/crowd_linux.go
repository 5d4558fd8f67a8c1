package sandbox

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
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

// many processes are so many that what counts them may have to wait for a processor.
const many = MaxProcesses / 8

// limitThreads has the kernel refuse more than so many threads and processes to the
// process that is started next, until lift is called with its id: this one must be able
// to work when there are no more. The kernel counts all of a user's and never refuses
// root any, so it is not the only limit.
func limitThreads(most int) (lift func(pid int)) {
	uid := os.Getuid()
	if uid == 0 {
		return func(int) {}
	}
	have := uint64(most) + threadsOf(uint32(uid))
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &now) != nil || have >= now.Cur ||
		unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: have, Max: now.Max}) != nil {
		return func(int) {}
	}

	return func(pid int) {
		unix.Setrlimit(unix.RLIMIT_NPROC, &now)
		unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: have, Max: have}, nil) // or it is what it can raise
	}
}

// threadsOf counts the threads of a user. It is done before each command, so no folder but that of all processes is read.
func threadsOf(uid uint32) (all uint64) {
	for _, pid := range processes() {
		if n, of := threads(pid); of == uid {
			all += n
		}
	}

	return all
}

// threads is how many a process has, and whose they are. Its folder of threads has a link for each of them, beside the
// two that every folder has.
func threads(pid int) (n uint64, uid uint32) {
	var st unix.Stat_t
	if unix.Stat("/proc/"+strconv.Itoa(pid)+"/task", &st) != nil || st.Nlink < 2 {
		return 0, st.Uid
	}

	return uint64(st.Nlink) - 2, st.Uid
}

// processes are the ids of all processes of the system.
func processes() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // those that it could read
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}

	return pids
}

// A crowd is too many processes below this one, or too much memory of theirs.
type crowd struct {
	most  bounds
	pid   int   // what the supervisor started
	how   shape // of what is below it
	group *group
	had   atomic.Int64  // how many there were; 0: never too many
	used  atomic.Int64  // how many bytes; 0: never too many
	still chan struct{} // closed when it was one of these, and all of them are stopped

	hurried bool // all threads of this process are urgent
}

// hurry puts this process before a command that has many processes: all of its threads, because one that works may have to
// wait for another.
func (c *crowd) hurry(processes int) {
	if c.hurried || processes < many {
		return
	}
	c.hurried = true
	for range 2 { // a thread may come from one that was not urgent yet
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, task := range tasks {
			if tid, err := strconv.Atoi(task.Name()); err == nil {
				urgent(tid)
			}
		}
	}
}

// watch counts until there are too many, and stops them. It does so on a thread that
// what it counts cannot starve, and without memory being collected in between, which
// would need the other threads.
func (c *crowd) watch() {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	urgent(unix.Gettid())

	for begun := time.Now(); ; {
		pause := countOften
		if time.Since(begun) > youngFor {
			pause = countRarely
		}
		t := unix.NsecToTimespec(int64(pause))
		unix.Nanosleep(&t, nil) // not time.Sleep: that takes another thread to end

		// With a group that bounds both, that is all there is to read.
		if n := c.group.has(); n <= c.most.processes && c.group.holdsMemory() {
			c.hurry(n)
			continue
		}
		// One more than there may be is enough: whoever counts while they multiply is outrun.
		pids := below(os.Getpid(), c.most.processes+1)
		c.hurry(len(pids))
		if len(pids) > c.most.processes {
			c.had.Store(int64(len(pids)))
		} else if used := memoryOf(pids, c.most.memory); used > c.most.memory && !c.group.holdsMemory() {
			c.used.Store(used)
		} else {
			continue
		}

		c.group.close()
		freeze(c.pid, c.how) // at once: the other threads may be starved
		close(c.still)
		return
	}
}

// freeze stops everything below this process. What is stopped starts nothing more, so
// when the children of all that were seen to be stopped are stopped themselves, there
// are no others. Each process is looked at about twice, however many there are.
func freeze(pid int, how shape) {
	first := []int{pid} // with the first process of a namespace all the others end
	for range how.above() - 1 {
		first = childrenOf(first[0])
	}
	if how.above() > 0 && len(first) > 0 {
		syscall.Kill(first[0], syscall.SIGKILL)
	}

	seen := map[int]bool{}
	stop := func(children []int) (fresh []int) {
		for _, c := range children {
			if !seen[c] {
				seen[c] = true
				syscall.Kill(c, syscall.SIGSTOP)
				fresh = append(fresh, c)
			}
		}

		return fresh
	}
	quiet := 0 // a list of children that changes may miss some: it counts when nothing is new again
	var moving []int
	for end := time.Now().Add(20 * time.Second); quiet < 2 && time.Now().Before(end); {
		began := time.Now()
		fresh := stop(childrenOf(os.Getpid())) // and orphans
		for _, p := range moving {
			state, _ := status(p)
			fresh = append(fresh, stop(childrenOf(p))...)
			if state != 'T' && state != 'Z' && state != 'X' {
				fresh = append(fresh, p) // the signal has not reached it yet
			}
		}

		moving = fresh
		if quiet++; len(moving) > 0 {
			quiet = 0
			time.Sleep(time.Since(began)) // what is to be stopped needs a processor, too
		}
	}
}

// memoryOf is how many bytes of memory processes have, files not counted. What they
// share counts for each of them, unless that is more than enough: then it is looked at
// more closely.
func memoryOf(pids []int, enough int64) int64 {
	sum := func(one func(pid int) int64) (all int64) {
		for _, pid := range pids {
			all += one(pid)
		}
		return all
	}
	if roughly := sum(resident); roughly <= enough {
		return roughly
	}

	return sum(proportional)
}

// resident is the memory of a process that belongs to no file.
func resident(pid int) int64 {
	data, err := about(pid, "statm")
	if err != nil {
		return 0 // it ended
	}
	var size, all, shared int64
	if _, err := fmt.Sscan(string(data), &size, &all, &shared); err != nil {
		return 0
	}

	return (all - shared) * int64(os.Getpagesize())
}

// proportional is its memory with its part of what it shares.
func proportional(pid int) int64 {
	data, err := about(pid, "smaps_rollup")
	if err != nil {
		return resident(pid)
	}

	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss_Anon:" {
			kb, _ := strconv.ParseInt(fields[1], 10, 64) // 0 if it is not a number, as if it had ended
			return kb << 10
		}
	}

	return resident(pid)
}

// machineMemory is how many bytes this machine has.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return math.MaxInt64
	}

	return int64(info.Totalram) * int64(info.Unit)
}

// urgent puts a thread of this process before what it watches, where the system lets it. Threads that it starts from now on
// inherit that.
func urgent(tid int) {
	if unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0) != nil {
		unix.Setpriority(unix.PRIO_PROCESS, tid, -10) // or as it is
	}
}

// below are the living descendants of a process, so many at the most.
func below(pid, most int) []int {
	children := childrenOf
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		children = byParent() // a kernel without these lists
	}
	var all []int
	for next := []int{pid}; len(next) > 0 && len(all) < most; next = next[1:] {
		children := children(next[0])
		all = append(all, children...)
		next = append(next, children...)
	}

	return all
}

// childrenOf asks each thread of a process for its children.
func childrenOf(pid int) []int {
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil // it ended
	}

	var children []int
	for _, task := range tasks {
		data, err := about(pid, "task/"+task.Name()+"/children")
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

// about is what the kernel says of a process in one of its files.
func about(pid int, file string) ([]byte, error) {
	return os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
}

// byParent asks every process of the system for its parent.
func byParent() func(pid int) []int {
	children := map[int][]int{}
	for _, pid := range processes() {
		if _, parent := status(pid); alive(pid) {
			children[parent] = append(children[parent], pid)
		}
	}

	return func(pid int) []int { return children[pid] }
}

// alive is false for what ended and waits for its parent to notice: it has no memory any more. One whose first thread alone
// has ended looks the same, and has others.
func alive(pid int) bool {
	data, err := about(pid, "statm")
	if err != nil || !strings.HasPrefix(string(data), "0 ") {
		return err == nil
	}
	n, _ := threads(pid)

	return n > 1
}

// status returns the state and the parent of a process; X: it does not exist. The file stat has them, too, but
// whoever reads it waits while the process begins another program, and that may wait for a processor.
func status(pid int) (state byte, parent int) {
	data, err := about(pid, "status")
	if err != nil {
		return 'X', 0
	}

	state = 'X'
	for line := range strings.Lines(string(data)) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "State": // "S (sleeping)"
			if value = strings.TrimSpace(value); value != "" {
				state = value[0]
			}
		case "PPid":
			parent, _ = strconv.Atoi(strings.TrimSpace(value)) // 0 if it is not a number: nobody's child
			return state, parent
		}
	}

	return 'X', 0
}
