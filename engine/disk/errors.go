package disk

import (
	"errors"
	"slices"
	"syscall"
)

// transient are errors of a moment, of a machine or of rights that someone can give.
var transient = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EACCES, syscall.EPERM, syscall.EINTR,
	syscall.EAGAIN, syscall.EBUSY, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENXIO, syscall.ENODEV, syscall.EROFS,
	syscall.ENOSPC, syscall.EDQUOT, ErrFull, ErrFailed,
}

// Transient reports whether an error says nothing about what is in a file: too many
// files are open, the disk does not answer, the rights are missing. Whoever has to
// decide permanently about the file tries again instead.
func Transient(err error) bool {
	return slices.ContainsFunc(transient, func(t error) bool { return errors.Is(err, t) })
}

// isFull reports whether an error says that there is no room.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// unsupported reports whether an error of a sync says that the file system has none
// for such a file. Network file systems and those in user space (9p, SMB, many of
// FUSE) know none for folders; there a name lasts as long as their server says.
func unsupported(err error) bool {
	return slices.ContainsFunc([]error{syscall.EINVAL, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS},
		func(u error) bool { return errors.Is(err, u) })
}
