package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// connect gives the command the network of its proxy: on its own loopback a relay
// listens, a process that it has nothing to do with.
func (r *task) connect() error {
	if r.View.Proxy == "" {
		return nil
	}
	fd, err := listenAtProxyPort()
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	l := os.NewFile(uintptr(fd), "listener")
	defer l.Close() // the relay has its own
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()

	p, err := os.StartProcess("/proc/self/exe", []string{"daycare", helperWord, "start-relay"},
		&os.ProcAttr{Files: []*os.File{null, null, os.Stderr, l}})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("start the relay: %s", state)
	}

	return err
}

// listenAtProxyPort listens on the loopback. It is what net.Listen does, without package net: see the helper's init.
func listenAtProxyPort() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		unix.Close(fd)
	}

	return fd, err
}

// startRelay leaves the listener on file 3 to a process of its own, which then is not a child of the command, has no right
// that the command has not, and none of its files open.
func startRelay() int {
	runtime.LockOSThread() // rights belong to a thread, and what it starts has the same
	if err := dropCapabilities(); err != nil {
		return Fail("relay", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return Fail("relay", err)
	}

	_, err = syscall.ForkExec("/proc/self/exe", []string{"daycare", helperWord, Relay, proxyInside},
		&syscall.ProcAttr{Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), 3}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return Fail("relay", err)
	}

	return 0
}
