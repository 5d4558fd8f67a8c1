//go:build !race

package browser

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/security"
)

// certificate writes a certificate for localhost that signs itself, and its key.
func (w *workspace) certificate() {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		w.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("certs/box.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	w.write("certs/box.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// Beyond loopback the page speaks TLS, and works as it does without: login, a cookie for TLS only, an answer that streams.
func TestPageOverTLS(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "control: { tlsCert: certs/box.pem, tlsKey: certs/box.key }\nweb: { listen: \"0.0.0.0:0\" }\n")
	w.certificate()
	w.start()
	w.agent("worker")
	p := newTab(t)
	call(p, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
	t.Cleanup(func() { call(p, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{}) })
	p.login(w, "/")
	if !strings.HasPrefix(p.origin, "https://localhost:") {
		t.Fatalf("daycare web prints %s", p.origin)
	}
	p.goTo("/agents/0")
	p.write("worker", "hello")
	p.sees("Noted.")
	cookies := call(p, network.GetCookies, network.GetCookiesParams{}).Cookies
	if len(cookies) != 1 || !cookies[0].Secure || !cookies[0].HTTPOnly {
		t.Errorf("the session is not one cookie for TLS alone: %+v", cookies)
	}
}

// A session that expires while a page is open ends its stream: the page takes off what it showed and leads to the way back.
func TestSessionExpires(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	w.agent("secret project")
	p := w.visit("/agents/0")
	p.find("textbox", "Message to 0/ secret project")
	p.expect("401")
	tokens := w.read(".daycare/tokens.json")
	soon := regexp.MustCompile(`"expires": ?"[^"]+"`).ReplaceAllString(tokens, `"expires": "`+
		time.Now().UTC().Add(2*time.Second).Format("2006-01-02T15:04:05.000Z")+`"`)
	if soon == tokens {
		t.Fatalf("the session has no time at which it expires:\n%s", tokens)
	}
	w.write(".daycare/tokens.json", soon)
	p.sees("Sign in")
	p.seesNot("secret project")
	p.login(w, "/")
	p.sees("secret project")
}
