package fit

import (
	"os"
	"syscall"
	"unsafe"
)

// Width returns how many columns a terminal has; 0: f is not one, or does not say. It asks the system itself, as a package
// that does so would have package early initialised after most others.
func Width(f *os.File) int {
	var size struct{ rows, columns, width, height uint16 } // struct winsize of ioctl_tty(2)
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0
	}

	return int(size.columns)
}
