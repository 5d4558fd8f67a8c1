package control

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/fault"
	"daycare/engine/lan"
)

// TCP configures the API on a network address.
type TCP struct {
	Addr  string // HOST:PORT
	Token string // what callers send as `Authorization: Bearer`; it allows everything
	// Tokens are tokens with limited rights or lifetime; nil: none.
	Tokens *apitoken.Store
	// Cert and Key are PEM files. They are required unless Addr is loopback.
	Cert, Key string
	// Hosts are further names of this server, as in the header Host; a name without a port has that
	// of Addr.
	Hosts []string
	// Page is served to browsers, whose cookie counts as a token. nil: none.
	Page Page
	// BrowsersOnly: no token is accepted, and none is needed.
	BrowsersOnly bool
	Log          *slog.Logger
}

// Errors of ListenTCP that are about settings.
var (
	errNoToken = errors.New("control.listen needs a token\nset one with: daycare auth set control")
	errNoTLS   = errors.New("control.listen is not a loopback address and needs tlsCert and tlsKey\nlisten on 127.0.0.1 " +
		"or name a certificate")
)

// ListenTCP opens a listener that accepts only requests with a token, addressed to this host, and
// from no web page but its own. Beyond loopback it requires TLS, and the host names are those of
// the certificate.
func ListenTCP(o TCP) (*Listener, error) {
	if o.Token == "" && !o.BrowsersOnly {
		return nil, errNoToken
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", o.Addr, err)
	}

	loopback := lan.Loopback(host)
	if !loopback && (o.Cert == "" || o.Key == "") {
		return nil, errNoTLS
	}
	var conf *tls.Config
	if o.Cert != "" {
		cert, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("load certificate: %w", err)
		}
		conf = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}

	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", o.Addr, err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // it has one

	g := &guard{tokens: o.Tokens, scheme: "http", port: port, extra: lower(o.Hosts), page: o.Page, log: o.Log}
	if !o.BrowsersOnly {
		sum := sha256.Sum256([]byte(o.Token))
		g.token = &sum
	}
	if loopback {
		g.hosts = []string{"localhost", "127.0.0.1", "::1", host}
	}
	if conf != nil {
		g.scheme, g.cert = "https", conf.Certificates[0].Leaf
		l = tls.NewListener(l, conf)
	}

	return &Listener{Listener: l, URL: g.scheme + "://" + g.ownName(host), caller: Caller{Name: apiConnector},
		guard: g.wrap}, nil // the guard says what callers may do
}

func lower(names []string) (list []string) {
	for _, n := range names {
		list = append(list, strings.ToLower(n))
	}
	return list
}

// A guard judges requests from the network.
type guard struct {
	token        *[sha256.Size]byte // nil: only browsers are let in
	tokens       *apitoken.Store
	scheme, port string
	hosts        []string          // names of this server, without port
	extra        []string          // further ones of the settings, with or without port
	cert         *x509.Certificate // whose names are the server's too; nil: none
	page         Page              // nil: none
	log          *slog.Logger
}

// ownName is what browsers on this machine, or that have the certificate, reach the server by.
func (g *guard) ownName(host string) string {
	if ip, err := netip.ParseAddr(host); (err == nil && ip.IsUnspecified() || host == "") && g.cert != nil && len(g.cert.DNSNames) > 0 {
		host = g.cert.DNSNames[0]
	}
	return net.JoinHostPort(host, g.port)
}

func (g *guard) wrap(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A stranger who reads no answer is let go, after the time for the body before it; who has a right may take longer.
		rc := http.NewResponseController(w)
		_ = rc.SetWriteDeadline(time.Now().Add(bodyTimeout + writeTimeout))
		e := g.check(r, cross)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		if e == nil && g.served() && g.page.Has(r) {
			g.page.ServeHTTP(w, r)
			return
		}

		var ctx context.Context
		end := func() {}
		if e == nil {
			ctx, end, e = g.identify(r)
		}
		if e != nil {
			if g.log != nil {
				g.log.Warn("refused request", "remote", r.RemoteAddr, "code", e.Code, "reason", e.Message)
			}
			if e.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="daycare"`)
			}
			(&api{log: slog.New(slog.DiscardHandler)}).fail(w, r, e)
			return
		}
		defer end()
		if callerOf(ctx).Rights.Allow(apitoken.Read) {
			_ = rc.SetWriteDeadline(time.Time{})
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (g *guard) check(r *http.Request, cross *http.CrossOriginProtection) *APIError {
	if !g.isMe(r.Host) {
		return refuse(fault.Forbidden, fmt.Sprintf("use the address that daycare listens on, or add to settings.yaml: "+
			"web: { hosts: [%q] }", r.Host), "unknown name in Host")
	}

	// CrossOriginProtection lets GET pass; events and history must not be read
	// by other pages either.
	if o := r.Header.Get("Origin"); o != "" && !strings.EqualFold(o, g.scheme+"://"+r.Host) {
		return Describe(fault.Forbidden)
	}
	if err := cross.Check(r); err != nil {
		return Describe(fault.Forbidden)
	}

	return nil
}

// served reports whether there is a page that was requested.
func (g *guard) served() bool { return g.page != nil && g.page.On() }

// identify finds out whose token, or whose cookie, a request has. The context that it returns
// ends with the token; call end when the request is done.
func (g *guard) identify(r *http.Request) (ctx context.Context, end func(), refused *APIError) {
	authorization := r.Header.Get("Authorization")
	if authorization == "" && g.served() {
		return g.browser(r)
	}
	token, ok := strings.CutPrefix(authorization, "Bearer ")
	sum := sha256.Sum256([]byte(token))
	if ok && g.token != nil && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1 {
		return WithCaller(r.Context(), Caller{Name: apiConnector, Rights: apitoken.Everything}), func() {}, nil
	}
	if ok && g.token != nil && g.tokens != nil {
		if h, known := g.tokens.Find(token); known {
			ctx, cancel := h.Within(r.Context())
			return WithCaller(ctx, Caller{Name: h.String(), Rights: h.Rights}), cancel, nil
		}
	}

	return nil, nil, Describe(fault.Unauthorized)
}

// isMe reports whether a Host header names this server, port included.
func (g *guard) isMe(hostport string) bool {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), map[string]string{"http": "80", "https": "443"}[g.scheme]
	}
	if slices.Contains(g.extra, strings.ToLower(hostport)) {
		return true
	}
	if port != g.port {
		return false
	}

	host = strings.ToLower(host)
	return slices.Contains(g.extra, host) || slices.Contains(g.hosts, host) || g.cert != nil && g.cert.VerifyHostname(host) == nil
}
