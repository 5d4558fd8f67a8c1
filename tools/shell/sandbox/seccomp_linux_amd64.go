package sandbox

import "golang.org/x/sys/unix"

const (
	filtered  = true
	auditArch = unix.AUDIT_ARCH_X86_64
)

// oldByPath are of times before the calls that take a folder.
var oldByPath = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}

// oldModes and oldOpens are the older forms of calls that give a file its mode.
var (
	oldModes = []struct{ nr, arg uint32 }{{unix.SYS_CHMOD, offArg1}, {unix.SYS_MKNOD, offArg1}, {unix.SYS_CREAT, offArg1}}
	oldOpens = []struct{ nr, flags, mode uint32 }{{unix.SYS_OPEN, offArg1, offArg2}}
)
