package control

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"daycare/engine/apitoken"
)

// SocketName is the name of the socket in a .daycare directory.
const SocketName = "daycare.sock"

// maxSocketPath is what fits into sockaddr_un everywhere: 104 bytes on macOS,
// 108 on Linux, with the final zero.
const maxSocketPath = 100

// A Listener is one way to connect: it accepts connections and knows who may make requests on them.
type Listener struct {
	net.Listener
	URL    string // where browsers find it: http://127.0.0.1:7331; "" of a socket
	caller Caller
	guard  func(http.Handler) http.Handler
}

// ListenUnix opens the socket of a .daycare directory, mode 0600, for the user of the process (and
// root). The caller holds daycare.lock, so a socket that is left at the path belongs to a process
// that died.
func ListenUnix(root string, log *slog.Logger) (*Listener, error) {
	path := filepath.Join(root, SocketName)
	if conn, err := dialUnix(path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %s: another process already does", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}

	l, err := bindUnix(path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}

	// .daycare is 0700, so nobody gets at the socket before this.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protect socket: %w", err)
	}

	return &Listener{
		Listener: &peerListener{UnixListener: l, path: path, log: log, uid: peerUID, me: os.Getuid()},
		caller:   Caller{Name: osUser(), Local: true, Rights: apitoken.Everything},
		guard:    func(h http.Handler) http.Handler { return h },
	}, nil
}

// SocketLeft reports whether there is a socket in a .daycare directory. Without a daemon it is that of one which was killed: one that
// is stopped removes it.
func SocketLeft(root string) bool {
	_, err := os.Lstat(filepath.Join(root, SocketName))
	return err == nil
}

// bindUnix listens at a path of any length.
func bindUnix(path string) (*net.UnixListener, error) {
	var l *net.UnixListener
	err := shortPath(path, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err == nil {
		l.SetUnlinkOnClose(false) // it would look for the short path, which is gone
	}

	return l, err
}

// dialUnix connects to the socket at a path of any length; nobody there is
// ErrNotRunning.
func dialUnix(path string) (net.Conn, error) {
	var conn net.Conn
	err := shortPath(path, func(short string) (err error) {
		conn, err = net.DialTimeout("unix", short, dialTimeout)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("connect to %s: %w", path, ErrNotRunning)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}

	return conn, nil
}

// shortPath calls f with a path to the same socket that fits into a socket
// address. A longer one is reached through a symbolic link to its folder, made
// for the moment of the call in a private temporary folder. (Changing the
// working directory instead would change it for the whole process;
// /proc/self/fd exists on Linux only.)
func shortPath(path string, f func(string) error) error {
	if len(path) <= maxSocketPath {
		return f(path)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return err
	}

	temp, err := os.MkdirTemp("", "dc")
	if err == nil && len(temp)+len(path)-len(dir) > maxSocketPath-2 {
		os.Remove(temp)
		temp, err = os.MkdirTemp("/tmp", "dc")
	}
	if err != nil {
		return fmt.Errorf("make folder for a short path: %w", err)
	}
	defer os.RemoveAll(temp)
	link := filepath.Join(temp, "d")
	if err := os.Symlink(dir, link); err != nil {
		return fmt.Errorf("make short path: %w", err)
	}

	return f(filepath.Join(link, filepath.Base(path)))
}

// A peerListener accepts only connections of this user and of root, whose
// processes could read everything anyway.
type peerListener struct {
	*net.UnixListener
	path string
	log  *slog.Logger
	uid  func(*net.UnixConn) (int, error)
	me   int
	once sync.Once
}

func (l *peerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := l.uid(conn)
		if err == nil && (uid == l.me || uid == 0) {
			return conn, nil
		}

		conn.Close()
		if l.log != nil {
			l.log.Warn("refused connection of another user", "uid", uid, "err", err)
		}
	}
}

// Close stops listening and removes the socket.
func (l *peerListener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		os.Remove(l.path)
		err = l.UnixListener.Close()
	})

	return err
}
