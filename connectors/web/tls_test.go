package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
)

// Beyond loopback the page is served over TLS only. Then the cookie is for TLS only, too; the browser is not told to
// use TLS for the name from now on, as another port of it may be another program without.
func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	root := t.TempDir()
	tokens := apitoken.Open(root, disk.NewVolume(root), func(string, []finding.Finding) {})
	if _, err := control.ListenTCP(control.TCP{Addr: "0.0.0.0:0", BrowsersOnly: true, Tokens: tokens}); err == nil {
		t.Error("the page is served without TLS beyond loopback")
	}

	var addr string
	door := New(Options{Root: root, Tokens: tokens, Open: func(context.Context) (string, error) { return "https://" + addr, nil }})
	l, err := control.ListenTCP(control.TCP{Addr: "0.0.0.0:0", BrowsersOnly: true, Tokens: tokens, Page: door, Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	addr = "daycare.example:" + port
	h := control.Handler(control.Backend{Agents: quiet{}, Permissions: noAsks{}, Daemon: running{}, Browsers: door,
		Events: event.NewStream("boot")}, control.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- control.Serve(ctx, h, nil, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	}
	do := func(method, url, body string, headers ...string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Daycare", "1")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		transport := &http.Transport{DisableKeepAlives: true, DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: pool}}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, url, err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}

	i, err := door.Invite(t.Context())
	if err != nil || !strings.HasPrefix(i.URL, "https://daycare.example:"+port+"/#token=") {
		t.Fatalf("invited to %+v, %v", i, err)
	}
	resp := do("POST", "https://"+addr+"/v1/session", `{"token":"`+i.URL[strings.Index(i.URL, "=")+1:]+`"}`)
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		t.Fatalf("login: %s, cookies %v", resp.Status, resp.Cookies())
	}
	c := resp.Cookies()[0]
	if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Name != "daycare_session_"+port {
		t.Errorf("cookie %+v, want one that is Secure, HttpOnly and SameSite=Strict", c)
	}
	shell := do("GET", "https://"+addr+"/", "")
	status := do("GET", "https://"+addr+"/v1/status", "", "Cookie", c.Name+"="+c.Value)
	for _, resp := range []*http.Response{resp, shell, status} {
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: Strict-Transport-Security %q", resp.Status, resp.Header.Get("Strict-Transport-Security"))
		}
	}
	for name, headers := range map[string][]string{
		"plain HTTP of the same name": {"Cookie", c.Name + "=" + c.Value, "Origin", "http://" + addr},
		"another origin":              {"Cookie", c.Name + "=" + c.Value, "Origin", "https://evil.example"},
	} {
		if resp := do("GET", "https://"+addr+"/v1/status", "", headers...); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s, want 403", name, resp.Status)
		}
	}
}

// certificate writes a certificate for daycare.example that signs itself.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"daycare.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, data := range map[string][]byte{certFile: public, keyFile: secret} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return certFile, keyFile, pool
}
