package control

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
)

// daemon serves a fake over listeners; the returned function ends it and gives
// the error of Serve.
func daemon(t *testing.T, f *fake, listeners ...*Listener) (b Backend, stop func() error) {
	t.Helper()
	b = f.backend()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, Handler(b, Options{}), nil, listeners...) }()
	ended := false
	stop = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()

		select {
		case err := <-served:
			return err
		case <-time.After(2 * grace):
			t.Fatal("Serve does not end")
			return nil
		}
	}
	t.Cleanup(func() { _ = stop() })

	return b, stop
}

func listenUnix(t *testing.T, root string) *Listener {
	t.Helper()
	l, err := ListenUnix(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestUnixSocket(t *testing.T) {
	for name, root := range map[string]string{
		"short path": t.TempDir(),
		"long path":  filepath.Join(t.TempDir(), strings.Repeat("long", 30), strings.Repeat("longer", 20)),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(root, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := Dial(root); !errors.Is(err, ErrNotRunning) {
				t.Fatalf("Dial without a daemon: %v", err)
			}

			f := &fake{}
			_, stop := daemon(t, f, listenUnix(t, root))
			info, err := os.Stat(filepath.Join(root, SocketName))
			if err != nil || info.Mode().Perm() != 0o600 || info.Mode()&os.ModeSocket == 0 {
				t.Errorf("socket: %v, %v", info.Mode(), err)
			}
			if _, err := ListenUnix(root, nil); err == nil || !strings.Contains(err.Error(), "another process already does") {
				t.Errorf("a second listener: %v", err)
			}

			c, err := Dial(root)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if s, err := c.Status(t.Context()); err != nil || !s.Running {
				t.Errorf("Status: %+v, %v", s, err)
			}

			// The caller is local: it may name paths.
			if _, err := c.Send(t.Context(), "alpha", Message{Text: "x", Files: []File{{Path: "/x"}}}); err != nil {
				t.Error(err)
			}
			if from := f.delivered()[0].From; from != (message.Address{Connector: "api", ChannelID: "api", UserID: osUser()}) {
				t.Errorf("From is %+v", from)
			}
			if o, err := c.Stream(t.Context(), "alpha", Message{Text: "x"}, nil); err != nil || o.Text != "the answer" {
				t.Errorf("Stream: %+v, %v", o, err)
			}
			if err := stop(); err != nil {
				t.Errorf("Serve: %v", err)
			}
			if _, err := os.Stat(filepath.Join(root, SocketName)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is still there: %v", err)
			}
			if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
				t.Errorf("Status of a daemon that ended: %v", err)
			}
		})
	}
}

// A listener that fails ends all of them, and it is said which one failed.
func TestAListenerThatFailsEndsTheServer(t *testing.T) {
	root := t.TempDir()
	failing, err := ListenTCP(TCP{Addr: "127.0.0.1:0", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	socket, served := listenUnix(t, root), make(chan error, 1)
	go func() { served <- Serve(t.Context(), Handler((&fake{}).backend(), Options{}), nil, socket, failing) }()
	failing.Close()
	select {
	case err := <-served:
		if err == nil || !strings.Contains(err.Error(), "serve on "+failing.Addr().String()) {
			t.Errorf("%v, want the listener that failed", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server does not end")
	}
	if _, err := Dial(root); !errors.Is(err, ErrNotRunning) {
		t.Errorf("the other listener: %v", err)
	}
}

func TestStaleSocket(t *testing.T) {
	root := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(root, SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close() // as after kill -9: the file stays
	if _, err := Dial(root); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial: %v", err)
	}
	listenUnix(t, root).Close()
}

// TestWhoIsHeard: this user and root, whoever this user is.
func TestWhoIsHeard(t *testing.T) {
	unknown := errors.New("the kernel does not say")
	for _, c := range []struct {
		me, uid int
		err     error
		heard   bool
	}{
		{1000, 1000, nil, true},
		{1000, 0, nil, true},
		{0, 0, nil, true},
		{1000, 1001, nil, false},
		{0, 1000, nil, false},
		{1000, 0, unknown, false},
		{1000, 1000, unknown, false},
	} {
		root := t.TempDir()
		peer := listenUnix(t, root).Listener.(*peerListener)
		peer.me = c.me
		turn := 0 // the second caller is root, so that Accept ends
		peer.uid = func(*net.UnixConn) (int, error) {
			if turn++; turn == 1 {
				return c.uid, c.err
			}

			return 0, nil
		}
		for range 2 {
			conn, err := net.Dial("unix", peer.path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		conn, err := peer.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		peer.Close()
		if heard := turn == 1; heard != c.heard {
			t.Errorf("%+v: heard %v", c, heard)
		}
	}
}

// TestOtherUser: the kernel says that someone else is at the other end.
func TestOtherUser(t *testing.T) {
	root := t.TempDir()
	l := listenUnix(t, root)
	peer := l.Listener.(*peerListener)
	if uid, err := peer.myUID(t, root); err != nil || uid != os.Getuid() {
		t.Errorf("the kernel says uid %d, %v; want %d", uid, err, os.Getuid())
	}

	var log bytes.Buffer
	peer.log = slog.New(slog.NewTextHandler(&log, nil))
	peer.me, peer.uid = 1000, func(*net.UnixConn) (int, error) { return 1001, nil }
	f := &fake{}
	_, stop := daemon(t, f, l)
	c, err := Dial(root) // connecting works, being heard does not
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Send(t.Context(), "alpha", Message{Text: "x"}); err == nil || len(f.delivered()) > 0 {
		t.Errorf("another user was heard: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "uid=1001") {
		t.Errorf("log: %s", log.String())
	}
}

// myUID asks the kernel about a connection of this very process.
func (l *peerListener) myUID(t *testing.T, root string) (int, error) {
	t.Helper()
	conn, err := dialUnix(filepath.Join(root, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()

	return peerUID(in)
}

func TestAConnectionWithoutARequestDoesNotDelayTheEnd(t *testing.T) {
	root := t.TempDir()
	_, stop := daemon(t, &fake{}, listenUnix(t, root))
	c, err := Dial(root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	silent, err := dialUnix(filepath.Join(root, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := c.Status(t.Context()); err != nil { // so the server has taken the other one, too
		t.Fatal(err)
	}

	start := time.Now()
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if took := time.Since(start); took > grace/2 {
		t.Errorf("the end took %s", took)
	}
}

// TestShutdown: streams end at once, a request in progress gets its answer.
func TestShutdown(t *testing.T) {
	root := t.TempDir()
	entered, release := make(chan struct{}), make(chan struct{})
	f := &fake{deliver: func(_ context.Context, in message.Incoming) (message.Receipt, error) {
		if in.Text == "slow" {
			close(entered)
			<-release
		}
		return message.Receipt{Agent: alpha, Item: "item1"}, nil
	}, await: func(ctx context.Context, _, _ string) (event.Outcome, error) {
		<-ctx.Done()
		return event.Outcome{}, ctx.Err()
	}}
	b, stop := daemon(t, f, listenUnix(t, root))
	c, err := Dial(root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	type result struct {
		what string
		err  error
	}
	results := make(chan result, 3)
	go func() {
		results <- result{"events", c.Events(t.Context(), Filter{}, "", func(RawEvent) error { return nil })}
	}()

	go func() {
		o, err := c.Stream(t.Context(), "alpha", Message{Text: "waits"}, nil)
		if o.Item != "item1" {
			t.Errorf("a stream that is cut names the item: %+v", o)
		}
		results <- result{"stream", err}
	}()

	go func() {
		_, err := c.Send(t.Context(), "alpha", Message{Text: "slow"})
		results <- result{"send", err}
	}()
	<-entered
	soon(t, "both streams watch", func() bool { return b.Events.Watched(alpha) && len(f.delivered()) == 2 })
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	start := time.Now()
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if took := time.Since(start); took > grace {
		t.Errorf("the end took %s", took)
	}
	for range 3 {
		r := <-results
		switch {
		case r.what == "send" && r.err != nil,
			r.what == "events" && !errors.Is(r.err, ErrNotRunning),
			r.what == "stream" && !errors.Is(r.err, ErrCut):
			t.Errorf("%s: %v", r.what, r.err)
		}
	}
}

func TestServeFailure(t *testing.T) {
	l, other := listenUnix(t, t.TempDir()), listenUnix(t, t.TempDir())
	l.Listener.Close()
	_, stop := daemon(t, &fake{}, l, other)
	time.Sleep(20 * time.Millisecond)
	if err := stop(); err == nil || !strings.Contains(err.Error(), "serve on") {
		t.Errorf("Serve on a listener that fails: %v", err)
	}
}

// certificate writes a self-signed one for localhost names into files.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"daycare.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}

	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(os.WriteFile(certFile, certPEM, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600)); err != nil {
		t.Fatal(err)
	}

	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pool
}

func TestTCPGuard(t *testing.T) {
	l, err := ListenTCP(TCP{Addr: "127.0.0.1:0", Token: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	f := &fake{}
	daemon(t, f, l)
	for _, c := range []struct {
		name, method, path, host, token string
		header                          map[string]string
		status                          int
		code                            string
	}{
		{"right", "GET", "/v1/status", addr, "Bearer s3cret", nil, 200, ""},
		{"by name", "GET", "/v1/status", "localhost:" + port, "Bearer s3cret", nil, 200, ""},
		{"own page", "POST", "/v1/agents/alpha/messages", addr, "Bearer s3cret",
			map[string]string{"Origin": "http://" + addr, "Sec-Fetch-Site": "same-origin"}, 202, ""},
		{"no token", "GET", "/v1/status", addr, "", nil, 401, "unauthorized"},
		{"wrong token", "GET", "/v1/status", addr, "Bearer s3cres", nil, 401, "unauthorized"},
		{"empty token", "GET", "/v1/status", addr, "Bearer ", nil, 401, "unauthorized"},
		{"token of another kind", "GET", "/v1/status", addr, "Basic s3cret", nil, 401, "unauthorized"},
		{"health without token", "GET", "/healthz", addr, "", nil, 401, "unauthorized"},
		{"rebound name", "GET", "/v1/status", "evil.example:" + port, "Bearer s3cret", nil, 403, "forbidden"},
		{"other port", "GET", "/v1/status", "127.0.0.1:1", "Bearer s3cret", nil, 403, "forbidden"},
		{"no port", "GET", "/v1/status", "127.0.0.1", "Bearer s3cret", nil, 403, "forbidden"},
		{"other page", "POST", "/v1/shutdown", addr, "Bearer s3cret", map[string]string{"Origin": "http://evil.example"}, 403, "forbidden"},
		{"other page reads", "GET", "/v1/events", addr, "Bearer s3cret",
			map[string]string{"Origin": "http://evil.example"}, 403, "forbidden"},
		{"other port's page", "GET", "/v1/status", addr, "Bearer s3cret",
			map[string]string{"Origin": "http://127.0.0.1:1"}, 403, "forbidden"},
		{"null page", "GET", "/v1/status", addr, "Bearer s3cret", map[string]string{"Origin": "null"}, 403, "forbidden"},
		{"https page", "GET", "/v1/status", addr, "Bearer s3cret", map[string]string{"Origin": "https://" + addr}, 403, "forbidden"},
		{"cross-site form", "POST", "/v1/shutdown", addr, "Bearer s3cret",
			map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "forbidden"},
		{"path of a file", "POST", "/v1/agents/alpha/messages?path", addr, "Bearer s3cret", nil, 422, "invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"text":"x"}`
			if strings.HasSuffix(c.path, "?path") {
				body = `{"text":"x","files":[{"path":"/etc/passwd"}]}`
			}
			req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+addr+c.path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host
			if c.token != "" {
				req.Header.Set("Authorization", c.token)
			}
			for k, v := range c.header {
				req.Header.Set(k, v)
			}
			transport := &http.Transport{DisableKeepAlives: true}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			data, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || !strings.Contains(string(data), c.code) {
				t.Errorf("got %d %s, %v; want %d %s", resp.StatusCode, data, err, c.status, c.code)
			}
			if h := resp.Header; h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("browsers are not kept from it: %v", h)
			}
			if strings.Contains(string(data), "s3cre") {
				t.Error("the answer holds a token")
			}
		})
	}
	if n := len(f.delivered()); n != 1 {
		t.Errorf("%d messages were delivered, want 1", n)
	}
}

func TestTCPSettings(t *testing.T) {
	cert, key, _ := certificate(t)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, c := range map[string]struct {
		o    TCP
		want string
	}{
		"no token":       {TCP{Addr: "127.0.0.1:0"}, "needs a token"},
		"world, no TLS":  {TCP{Addr: "0.0.0.0:0", Token: "t"}, "needs tlsCert and tlsKey"},
		"world, no key":  {TCP{Addr: "0.0.0.0:0", Token: "t", Cert: cert}, "needs tlsCert and tlsKey"},
		"world, key":     {TCP{Addr: "0.0.0.0:0", Token: "t", Key: key}, "needs tlsCert and tlsKey"},
		"name, no TLS":   {TCP{Addr: "box:0", Token: "t"}, "needs tlsCert and tlsKey"},
		"no port":        {TCP{Addr: "127.0.0.1", Token: "t"}, "missing port"},
		"in use":         {TCP{Addr: other.Addr().String(), Token: "t"}, "listen on " + other.Addr().String()},
		"no certificate": {TCP{Addr: "127.0.0.1:0", Token: "t", Cert: "/none", Key: key}, "load certificate"},
		"key missing":    {TCP{Addr: "127.0.0.1:0", Token: "t", Cert: cert}, "load certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := ListenTCP(c.o)
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	l, err := ListenTCP(TCP{Addr: "127.0.0.1:0", Token: "t", Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	daemon(t, &fake{}, l)
	get := func(url, host string) (int, error) {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Authorization", "Bearer t")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()

		return resp.StatusCode, nil
	}
	for _, c := range []struct {
		host   string
		status int
	}{{addr, 200}, {"daycare.example:" + port, 200}, {"evil.example:" + port, 403}} {
		if status, err := get("https://"+addr+"/v1/status", c.host); err != nil || status != c.status {
			t.Errorf("Host %s: %d, %v; want %d", c.host, status, err, c.status)
		}
	}

	if status, err := get("http://"+addr+"/v1/status", addr); err == nil && status == 200 {
		t.Error("plain HTTP is answered on a TLS listener")
	}
}
