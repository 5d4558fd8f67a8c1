package sandbox

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are system calls that no command needs and that have led out of sandboxes,
// or past Landlock: new mounts and namespaces, the kernel's own keys and modules,
// files by handle, and io_uring, whose operations no filter sees.
var denied = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_CHROOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// absent are answered as by a kernel that does not have them, so that libraries
// take the older call. (Of openat2 and clone3, no filter sees the arguments.)
var absent = []uint32{unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3}

// byPath change what a file is, not what is in it. Landlock does not hold them (as
// of version 7), so where it is alone they are refused for every path; the ones for
// open files stay, and a file is only opened where that is granted.
var byPath = append([]uint32{unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR}, oldByPath...)

// watches tell what happens in a folder or to a file, whether it was granted or not:
// Landlock does not hold them either.
var watches = []uint32{unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_FANOTIFY_MARK}

// attributes read what is attached to a file by its path, another thing that Landlock does
// not hold. They are answered as by a file system without attributes, which programs that
// list and copy files expect.
var attributes = []uint32{unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR}

// ofOthers change limits, priority or processors of a process. Where no namespace
// keeps other processes out of sight, they are refused for all but the caller
// itself (0): Landlock holds signals, not these, and a command could starve the
// daemon or lower its limits. The value is the argument that names the process.
var ofOthers = []struct{ nr, arg uint32 }{
	{unix.SYS_PRLIMIT64, offArg0}, {unix.SYS_SCHED_SETAFFINITY, offArg0}, {unix.SYS_SCHED_SETSCHEDULER, offArg0},
	{unix.SYS_SCHED_SETPARAM, offArg0}, {unix.SYS_SCHED_SETATTR, offArg0},
	{unix.SYS_SETPRIORITY, offArg1}, {unix.SYS_IOPRIO_SET, offArg1},
}

// ofUsers are those of them that can mean all processes of a user, by the value of their
// first argument: then 0 is not the caller.
var ofUsers = []struct{ nr, user uint32 }{{unix.SYS_SETPRIORITY, unix.PRIO_USER}, {unix.SYS_IOPRIO_SET, ioprioWhoUser}}

const ioprioWhoUser = 3

// shared are the ways of processes to one another that no path leads to, so that
// Landlock does not hold them. A namespace of its own makes them harmless.
var shared = []uint32{unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK}

// typed are requests to a terminal that put input into it, as if a user had typed.
var typed = []uint32{unix.TIOCSTI, unix.TIOCLINUX}

// modes are the calls that give a file its mode, with the argument that it is: a file
// that runs with the rights of its owner or group outlives the sandbox.
var modes = append([]struct{ nr, arg uint32 }{
	{unix.SYS_FCHMOD, offArg1}, {unix.SYS_FCHMODAT, offArg2}, {unix.SYS_FCHMODAT2, offArg2}, {unix.SYS_MKNODAT, offArg2},
}, oldModes...)

// opens are the calls that give one to a new file only, with their flags and mode.
var opens = append([]struct{ nr, flags, mode uint32 }{{unix.SYS_OPENAT, offArg2, offArg3}}, oldOpens...)

// newCalls are all from this number on: what they can do is not known yet, or is
// one more way for one of the above.
const newCalls = 463

// Where the kernel puts the parts of a call for a filter to read.
const (
	offNr, offArch = 0, 4
	offArg0        = 16 // the lower half, on the little-endian machines that filtered allows
	offArg1        = 24
	offArg2        = 32
	offArg3        = 40
)

const (
	allow    = unix.SECCOMP_RET_ALLOW
	notHere  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	refuse   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	none     = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
	ld       = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpEq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpGe   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jumpSet  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ret      = unix.BPF_RET | unix.BPF_K
	setID    = unix.S_ISUID | unix.S_ISGID
	creates  = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	newSpace = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
)

// families are the sockets that can be made where the network is a private one.
// Others, such as the ones to a virtual machine's host, know no namespaces.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// program is the filter. Without private (no namespace keeps the network away) it
// lets no socket be made at all: also those to a path lead to whoever listens.
func program(private bool) []unix.SockFilter {
	p := []unix.SockFilter{
		{Code: ld, K: offArch},
		{Code: jumpEq, Jt: 1, K: auditArch}, {Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: ld, K: offNr},
	}
	p = append(p, unix.SockFilter{Code: jumpGe, Jf: 1, K: newCalls}, unix.SockFilter{Code: ret, K: notHere})
	refused := denied
	if !private {
		refused = slices.Concat(denied, byPath, shared, watches)
		for _, nr := range attributes {
			p = append(p, unix.SockFilter{Code: jumpEq, Jf: 1, K: nr}, unix.SockFilter{Code: ret, K: none})
		}
		p = append(p, timesByPath...)
		for _, c := range ofUsers {
			p = append(p, refusing(c.nr, offArg0, c.user)...)
		}
		for _, c := range ofOthers {
			p = append(p, unix.SockFilter{Code: jumpEq, Jf: 4, K: c.nr},
				unix.SockFilter{Code: ld, K: c.arg}, unix.SockFilter{Code: jumpEq, Jf: 1},
				unix.SockFilter{Code: ret, K: allow}, unix.SockFilter{Code: ret, K: refuse})
		}
	}

	for _, nr := range refused {
		p = append(p, unix.SockFilter{Code: jumpEq, Jf: 1, K: nr}, unix.SockFilter{Code: ret, K: refuse})
	}
	p = append(p, marks()...)
	for _, nr := range absent {
		p = append(p, unix.SockFilter{Code: jumpEq, Jf: 1, K: nr}, unix.SockFilter{Code: ret, K: notHere})
	}

	var sockets []unix.SockFilter
	if private {
		for _, f := range families {
			sockets = append(sockets, unix.SockFilter{Code: jumpEq, Jf: 1, K: f}, unix.SockFilter{Code: ret, K: allow})
		}
	}

	sockets = append(sockets, unix.SockFilter{Code: ret, K: refuse})
	p = append(p, unix.SockFilter{Code: jumpEq, Jf: uint8(len(sockets) + 1), K: unix.SYS_SOCKET}, unix.SockFilter{Code: ld, K: offArg0})
	p = append(p, sockets...)
	return append(p,
		unix.SockFilter{Code: jumpEq, Jf: 3, K: unix.SYS_CLONE}, unix.SockFilter{Code: ld, K: offArg0},
		unix.SockFilter{Code: jumpSet, Jf: 1, K: newSpace}, unix.SockFilter{Code: ret, K: refuse},
		unix.SockFilter{Code: ret, K: allow})
}

// marks refuse what gives a file the rights of its owner, input to a terminal, and leases.
func marks() (p []unix.SockFilter) {
	for _, c := range modes {
		p = append(p, unix.SockFilter{Code: jumpEq, Jf: 4, K: c.nr},
			unix.SockFilter{Code: ld, K: c.arg}, unix.SockFilter{Code: jumpSet, Jf: 1, K: setID},
			unix.SockFilter{Code: ret, K: refuse}, unix.SockFilter{Code: ld, K: offNr})
	}

	for _, c := range opens {
		p = append(p, unix.SockFilter{Code: jumpEq, Jf: 6, K: c.nr},
			unix.SockFilter{Code: ld, K: c.flags}, unix.SockFilter{Code: jumpSet, Jf: 3, K: creates},
			unix.SockFilter{Code: ld, K: c.mode}, unix.SockFilter{Code: jumpSet, Jf: 1, K: setID},
			unix.SockFilter{Code: ret, K: refuse}, unix.SockFilter{Code: ld, K: offNr})
	}

	p = append(p, refusing(unix.SYS_IOCTL, offArg1, typed...)...)
	// A lease holds up every program that opens the file, the daemon included, for most of a minute, and then again.
	return append(p, refusing(unix.SYS_FCNTL, offArg1, unix.F_SETLEASE)...)
}

// refusing refuses a call that has one of the values as an argument.
func refusing(nr, arg uint32, values ...uint32) []unix.SockFilter {
	p := []unix.SockFilter{{Code: jumpEq, Jf: uint8(2*len(values) + 2), K: nr}, {Code: ld, K: arg}}
	for _, v := range values {
		p = append(p, unix.SockFilter{Code: jumpEq, Jf: 1, K: v}, unix.SockFilter{Code: ret, K: refuse})
	}

	return append(p, unix.SockFilter{Code: ld, K: offNr})
}

// timesByPath refuses utimensat unless its path is a null pointer: then it is for an
// open file.
var timesByPath = []unix.SockFilter{
	{Code: jumpEq, Jf: 6, K: unix.SYS_UTIMENSAT},
	{Code: ld, K: offArg1}, {Code: jumpEq, Jf: 3},
	{Code: ld, K: offArg1 + 4}, {Code: jumpEq, Jf: 1},
	{Code: ret, K: allow}, {Code: ret, K: refuse},
}

// filter applies it to this thread and what it becomes.
func filter(private bool) error {
	if !filtered {
		return nil // landlockABI has seen to it that this is the second wall at most
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}

	p := program(private)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}

	return nil
}
