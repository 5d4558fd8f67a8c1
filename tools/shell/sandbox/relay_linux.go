package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// connect gives the command the network of its proxy: on its own loopback a relay
// listens, a process that it has nothing to do with.
func (r *task) connect() error {
	if r.View.Proxy == "" {
		return nil
	}
	l, err := net.Listen("tcp", proxyAddress)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer l.Close() // the relay has its own
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return fmt.Errorf("hand over the socket: %w", err)
	}
	defer f.Close()
	cmd := exec.Command("/proc/self/exe", helperWord, "relay", "start")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{f}, os.Stderr

	return cmd.Run()
}

// relay passes connections from the socket on file 3 to the proxy. "start" leaves
// that to a process of its own, which then is not a child of the command, has no right
// that the command has not, and none of its files open.
func relay(args []string) int {
	if len(args) == 1 && args[0] == "start" {
		runtime.LockOSThread() // rights belong to a thread, and what it starts has the same
		if err := dropCapabilities(); err != nil {
			return fail("relay", err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return fail("relay", err)
		}

		_, err = syscall.ForkExec("/proc/self/exe", []string{"daycare", helperWord, "relay", "run"},
			&syscall.ProcAttr{Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), 3}, Sys: &syscall.SysProcAttr{Setsid: true}})
		if err != nil {
			return fail("relay", err)
		}
		return 0
	}

	// What ends the command's group must leave it its network until it has ended.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return fail("relay", err)
	}

	for {
		c, err := l.Accept()
		if err != nil {
			return failed
		}
		go pass(c)
	}
}

func pass(c net.Conn) {
	defer c.Close()
	p, err := net.Dial("unix", proxyInside)
	if err != nil {
		return
	}
	defer p.Close()
	ended := make(chan struct{})
	go func() {
		io.Copy(p, c)
		p.(*net.UnixConn).CloseWrite()
		close(ended)
	}()

	io.Copy(c, p)
	c.(*net.TCPConn).CloseWrite()
	<-ended
}
