package control

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A second process that looks whether someone listens leaves no connection behind, and takes
// no socket away.
func TestWhoFindsAListenerLetsGoOfIt(t *testing.T) {
	root := t.TempDir()
	first, err := net.Listen("unix", filepath.Join(root, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()

	for name, look := range map[string]func() error{
		"listen": func() error {
			l, err := ListenUnix(root, nil)
			return errors.Join(err, unless(err == nil, func() error { return l.Close() }))
		},
		"dial": func() error {
			c, err := Dial(root)
			return errors.Join(err, unless(err == nil, func() error { c.Close(); return nil }))
		},
	} {
		err := look()
		if (err != nil) != (name == "listen") {
			t.Errorf("%s: %v", name, err)
		}
		conn, err := first.Accept()
		if err != nil {
			t.Fatal(err)
		}

		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays open: %v", name, err)
		}
		conn.Close()
	}
}

// unless calls f if ok.
func unless(ok bool, f func() error) error {
	if ok {
		return f()
	}
	return nil
}

// What is in the place of the socket and is none is not removed unasked.
func TestAFolderInThePlaceOfTheSocket(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, SocketName)
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if l, err := ListenUnix(root, nil); err == nil {
		l.Close()
		t.Error("it is listened on")
	} else if !strings.Contains(err.Error(), "remove old socket") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(path, "x")); err != nil {
		t.Error("it is gone")
	}
	if l, err := ListenUnix(filepath.Join(root, "none"), nil); err == nil {
		l.Close()
		t.Error("a folder that is not there is listened in")
	}
}

// A path that is too long for a socket is reached by a short one, of which nothing is left.
func TestShortPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, SocketName)
	if err := os.WriteFile(path, []byte("here"), 0o600); err != nil {
		t.Fatal(err)
	}

	temps := map[string]string{"short": t.TempDir(), "long": dir}
	for name, temp := range temps {
		t.Setenv("TMPDIR", temp)
		var used string
		err := shortPath(path, func(short string) error {
			used = short
			if data, err := os.ReadFile(short); string(data) != "here" || len(short) > maxSocketPath {
				t.Errorf("%s temporary folder: by %s (%d bytes) there is %q, %v", name, short, len(short), data, err)
			}
			return errEnough
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(filepath.Dir(used)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s is left: %v", name, filepath.Dir(used), err)
		}
		if left, _ := filepath.Glob(filepath.Join(temp, "dc*")); len(left) > 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}

	if err := shortPath(filepath.Join(dir, "none", SocketName), func(string) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	short := "/" + strings.Repeat("x", maxSocketPath-1)
	if err := shortPath(short, func(got string) error { return unless(got != short, func() error { return errEnough }) }); err != nil {
		t.Error("a path that fits is made shorter")
	}
}

// A request from the network that is refused is logged, and told how to ask.
func TestRefusedRequestsAreLogged(t *testing.T) {
	var log bytes.Buffer
	l, err := ListenTCP(TCP{Addr: "127.0.0.1:0", Token: "s3cret", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, stop := daemon(t, &fake{}, l)

	for token, want := range map[string]int{"s3cret": 200, "wrong": 401} {
		resp := dial(t, "GET", "http://"+l.Addr().String()+"/v1/status", token)
		resp.Body.Close()
		if asks := resp.Header.Get("WWW-Authenticate") != ""; resp.StatusCode != want || asks != (want == http.StatusUnauthorized) {
			t.Errorf("%s: %s, asks for a token: %v", token, resp.Status, asks)
		}
	}

	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "code=unauthorized") {
		t.Errorf("log:\n%s", text)
	}
}
