package sandbox

import "golang.org/x/sys/unix"

const (
	filtered  = true
	auditArch = unix.AUDIT_ARCH_X86_64
)

// oldByPath are of times before the calls that take a folder.
var oldByPath = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
