package control

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the user of the process at the other end, as the kernel knows it.
func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	uid := -1
	var cerr error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); cerr == nil {
			uid = int(cred.Uid)
		}
	})
	if err == nil {
		err = cerr
	}

	return uid, err
}
