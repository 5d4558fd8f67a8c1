// Package relay is the helper that passes a command's connections to its proxy: see package sandbox.
package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"daycare/tools/shell/sandbox"
)

func init() {
	if mode, args := sandbox.Mode(os.Args); mode == sandbox.Relay {
		syscall.Exit(run(args))
	}
}

// run passes connections from the socket on file 3 to that at a path, the only argument.
func run(args []string) int {
	if len(args) != 1 {
		return sandbox.Fail("relay", errors.New("no path of a proxy"))
	}
	// What ends the command's group must leave it its network until it has ended.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return sandbox.Fail("relay", err)
	}

	for {
		c, err := l.Accept()
		if err != nil {
			return sandbox.Failed
		}
		go pass(c, args[0])
	}
}

func pass(c net.Conn, proxy string) {
	defer c.Close()
	p, err := net.Dial("unix", proxy)
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
