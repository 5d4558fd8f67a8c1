package sandbox

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A group is a control group that one command runs in: the kernel gives all of it
// together no more than so many threads, root's too. nil: this process may make none,
// which is usual for people that are not root.
type group struct{ dir, above string }

// groupName begins the name of a group; the process id of its supervisor follows.
const groupName = "daycare-"

// newGroup makes the group of this supervisor's command, beneath its own.
func newGroup(most int) *group {
	above := ownGroup()
	if above == "" {
		return nil
	}
	g := &group{filepath.Join(above, groupName+strconv.Itoa(os.Getpid())), above}
	if os.Mkdir(g.dir, 0o755) != nil {
		return nil
	}
	limit := filepath.Join(g.dir, "pids.max")
	if !exists(limit) { // version 2 counts only where the group above says so
		os.WriteFile(filepath.Join(above, "cgroup.subtree_control"), []byte("+pids"), 0)
	}
	if os.WriteFile(limit, []byte(strconv.Itoa(most)), 0) != nil {
		g.remove()
		return nil
	}
	g.tidy()
	return g
}

// Uncounted says why the kernel does not bound how many processes a command has; ""
// where it does. They are then only counted.
func Uncounted() string {
	if os.Getuid() != 0 {
		return "" // RLIMIT_NPROC does
	}
	g := newGroup(MaxThreads)
	g.remove()
	if g == nil {
		return "daycare runs as root, whom the kernel gives any number of processes, and it can make no control groups"
	}
	return ""
}

// ownGroup is the folder of the control group of this process in which processes are
// counted: version 1 has one of its own for that, version 2 one for everything.
func ownGroup() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	whole := ""
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kinds, path, _ := strings.Cut(rest, ":")
		switch kinds {
		case "pids":
			return filepath.Join("/sys/fs/cgroup/pids", path)
		case "":
			whole = filepath.Join("/sys/fs/cgroup", path)
		}
	}
	return whole
}

// enter puts this process into the group, so that what it starts next is in it; leave
// takes it out again, because it must be able to work when the group is full.
func (g *group) enter() {
	if g != nil {
		g.move(g.dir)
	}
}

func (g *group) leave() {
	if g != nil {
		g.move(g.above)
	}
}

func (g *group) move(dir string) {
	// Where this fails the command runs in the group that it was started in.
	os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// has is how many threads are in the group; more than any limit where that is not known.
func (g *group) has() int {
	if g == nil {
		return math.MaxInt
	}
	data, err := os.ReadFile(filepath.Join(g.dir, "pids.current"))
	n, nerr := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || nerr != nil {
		return math.MaxInt
	}
	return n
}

// close has the kernel refuse whatever the group would start from now on.
func (g *group) close() {
	if g != nil {
		os.WriteFile(filepath.Join(g.dir, "pids.max"), []byte("0"), 0)
	}
}

// refused reports whether the kernel refused the group a thread.
func (g *group) refused() bool {
	if g == nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join(g.dir, "pids.events"))
	return err == nil && !strings.Contains(string(data), "max 0\n")
}

// remove takes the group away when its last process has gone.
func (g *group) remove() {
	if g != nil {
		os.Remove(g.dir)
	}
}

// tidy removes the groups of supervisors that were killed.
func (g *group) tidy() {
	left, err := filepath.Glob(filepath.Join(g.above, groupName+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		if pid := strings.TrimPrefix(filepath.Base(dir), groupName); !exists("/proc/" + pid) {
			os.Remove(dir)
		}
	}
}
