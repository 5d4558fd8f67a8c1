package sandbox

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A group is a control group that one command runs in: the kernel gives all of it
// together no more than so many threads and so much memory, root's too. nil: this process
// may make none, which is usual for users that are not root.
type group struct {
	threads, memory *part // version 2 has one folder for both; nil: not bounded
}

// A part is the folder of a group, and the one that this process came from.
type part struct{ dir, above string }

// groupName begins the name of a group; the process id of its supervisor follows.
const groupName = "daycare-"

// newGroup makes the group of this supervisor's command, beneath its own.
func newGroup(threads int, memory int64) *group {
	g := &group{threads: newPart("pids", map[string]string{"pids.max": strconv.Itoa(threads)})}
	if g.threads == nil {
		return nil
	}
	bytes := strconv.FormatInt(memory, 10)
	limits := map[string]string{"memory.max": bytes, "memory.swap.max": "0"}
	if ownGroup("memory") != ownGroup("") { // version 1
		limits = map[string]string{"memory.limit_in_bytes": bytes}
	}

	g.memory = newPart("memory", limits)

	return g
}

// newPart makes the folder of one kind of limit and sets the limits. One that this
// kernel does not have is left out, if another can be set.
func newPart(kind string, limits map[string]string) *part {
	above := ownGroup(kind)
	if above == "" {
		return nil
	}
	p := &part{filepath.Join(above, groupName+strconv.Itoa(os.Getpid())), above}
	if os.Mkdir(p.dir, 0o755) != nil && !exists(p.dir) {
		return nil
	}

	set := 0
	for name, value := range limits {
		limit := filepath.Join(p.dir, name)
		if !exists(limit) { // version 2 has them only where the group above says so
			os.WriteFile(filepath.Join(above, "cgroup.subtree_control"), []byte("+"+kind), 0)
		}
		if os.WriteFile(limit, []byte(value), 0) == nil {
			set++
		}
	}

	if set == 0 {
		os.Remove(p.dir)
		return nil
	}
	p.tidy()

	return p
}

// ownGroup is the folder of the control group of this process for a kind of limit:
// version 1 has one of its own for each, version 2 one for everything.
func ownGroup(kind string) string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	whole := ""
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kinds, path, _ := strings.Cut(rest, ":")
		switch {
		case kinds == "":
			whole = filepath.Join("/sys/fs/cgroup", path)
		case slices.Contains(strings.Split(kinds, ","), kind):
			return filepath.Join("/sys/fs/cgroup", kinds, path)
		}
	}

	return whole
}

// enter puts this process into the group, so that what it starts next is in it; leave
// takes it out again, because it must be able to work when the group is full.
func (g *group) enter() {
	for _, p := range g.parts() {
		p.move(p.dir)
	}
}

func (g *group) leave() {
	for _, p := range g.parts() {
		p.move(p.above)
	}
}

// parts are those that the group has.
func (g *group) parts() (parts []*part) {
	if g == nil {
		return nil
	}
	for _, p := range []*part{g.threads, g.memory} {
		if p != nil {
			parts = append(parts, p)
		}
	}

	return parts
}

func (p *part) move(dir string) {
	// Where this fails the command runs in the group that it was started in.
	os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// has is how many threads are in the group; more than any limit where that is not known.
func (g *group) has() int {
	if g == nil {
		return math.MaxInt
	}
	data, err := os.ReadFile(filepath.Join(g.threads.dir, "pids.current"))
	n, nerr := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || nerr != nil {
		return math.MaxInt
	}

	return n
}

// holdsMemory reports whether the kernel bounds the memory of the group.
func (g *group) holdsMemory() bool { return g != nil && g.memory != nil }

// close has the kernel refuse whatever the group would start from now on.
func (g *group) close() {
	if g != nil {
		os.WriteFile(filepath.Join(g.threads.dir, "pids.max"), []byte("0"), 0)
	}
}

// refused reports whether the kernel refused the group a thread.
func (g *group) refused() bool {
	if g == nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join(g.threads.dir, "pids.events"))
	return err == nil && !strings.Contains(string(data), "max 0\n")
}

// killed reports whether the kernel ended processes of the group for their memory.
func (g *group) killed() bool {
	if !g.holdsMemory() {
		return false
	}
	for _, name := range []string{"memory.events", "memory.oom_control"} {
		data, err := os.ReadFile(filepath.Join(g.memory.dir, name))
		if err == nil && strings.Contains(string(data), "oom_kill ") && !strings.Contains(string(data), "oom_kill 0\n") {
			return true
		}
	}

	return false
}

// remove takes the group away when its last process has gone.
func (g *group) remove() {
	for _, p := range g.parts() {
		os.Remove(p.dir)
	}
}

// tidy removes the groups of supervisors that were killed.
func (p *part) tidy() {
	left, err := filepath.Glob(filepath.Join(p.above, groupName+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		if pid := strings.TrimPrefix(filepath.Base(dir), groupName); !exists("/proc/" + pid) {
			os.Remove(dir)
		}
	}
}

// bounded says by what processes and memory of a command are bounded here.
func bounded() []Hold {
	g := newGroup(MaxThreads, machineMemory())
	defer g.remove()
	memory := Hold{"memory", true, "three quarters of the machine's, by counting"}
	if g.holdsMemory() {
		memory.How = "three quarters of the machine's, by a control group"
	}

	processes := Hold{"processes", true, "a limit of the user, and counting"}
	switch {
	case g != nil:
		processes.How = "a control group, and counting"
	case os.Getuid() == 0:
		processes = Hold{"processes", false, "by counting alone"}
	}

	return []Hold{processes, memory}
}
