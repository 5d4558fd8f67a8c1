package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/permission"
)

// A Dial makes a connection to host:port under the rule that all of an agent's
// connections obey (tools/fetch).
type Dial func(ctx context.Context, set permission.Set, address string) (net.Conn, error)

// A proxy is the way out of one command's sandbox: an HTTP proxy on a unix socket,
// which is the only thing of the network that the sandbox holds. It lets through
// what goes to the named domains, and judges where their names lead.
type proxy struct {
	socket  string
	server  *http.Server
	domains []string
	dial    func(ctx context.Context, address string) (net.Conn, error)
	done    sync.WaitGroup
}

// newProxy starts the proxy of a command. It must be closed.
func newProxy(domains []string, set permission.Set, dial Dial) (*proxy, error) {
	dir, err := os.MkdirTemp("", "daycare-net-")
	if err != nil {
		return nil, fmt.Errorf("make folder of the proxy: %w", err)
	}
	p := &proxy{socket: filepath.Join(dir, "proxy.sock"), domains: domains,
		dial: func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, set, address) }}
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("listen for the command: %w", err)
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
	p.done.Go(func() { p.server.Serve(l) }) // ends with close
	return p, nil
}

// close ends the proxy and all that goes through it. A nil proxy has nothing to end.
func (p *proxy) close() {
	if p == nil {
		return
	}
	p.server.Close()
	os.RemoveAll(filepath.Dir(p.socket))
	p.done.Wait()
}

func (p *proxy) path() string {
	if p == nil {
		return ""
	}
	return p.socket
}

// ServeHTTP takes CONNECT and requests for whole addresses, as programs send them
// to a proxy.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := r.Host
	if r.Method != http.MethodConnect {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			http.Error(w, "daycare: this is a proxy; it takes http and CONNECT", http.StatusBadRequest)
			return
		}
		target = r.URL.Host
	}
	host := hostOf(target)
	if !p.allowed(host) {
		http.Error(w, "daycare: "+host+" is not among allowedDomains ("+strings.Join(p.domains, ", ")+")", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, target)
		return
	}
	p.forward(w, r)
}

// forward sends one plain request on.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	t := &http.Transport{Proxy: nil, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address) }}
	(&httputil.ReverseProxy{Transport: t,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL, pr.Out.Host = pr.In.URL, pr.In.URL.Host // the address decides, not a header
			pr.Out.Header.Del("Proxy-Connection")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "daycare: "+err.Error(), http.StatusBadGateway)
		}}).ServeHTTP(w, r)
}

// tunnel connects the two ends and lets bytes pass until one of them is closed.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request, target string) {
	out, err := p.dial(r.Context(), withPort(target))
	if err != nil {
		http.Error(w, "daycare: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // HTTP/2, which nothing here speaks
	}
	defer in.Close()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	go func() { io.Copy(out, buffered); closeWrite(out); ended <- struct{}{} }()
	go func() { io.Copy(in, out); closeWrite(in); ended <- struct{}{} }()
	<-ended
	<-ended
}

// closeWrite tells the other side that nothing more comes.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	c.Close()
}

func withPort(target string) string {
	if _, _, err := net.SplitHostPort(target); err == nil {
		return target
	}
	return net.JoinHostPort(strings.Trim(target, "[]"), "443")
}

// hostOf is the host of "host" or "host:port", as domains are spelled.
func hostOf(target string) string {
	if host, _, err := net.SplitHostPort(target); err == nil {
		target = host
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(target, "[]")), ".")
}

func (p *proxy) allowed(host string) bool {
	return slices.ContainsFunc(p.domains, func(d string) bool { return domainCovers(d, host) })
}

// domainCovers: "example.com" is that host, "*.example.com" all below it, "*" any.
func domainCovers(domain, host string) bool {
	if below, ok := strings.CutPrefix(domain, "*."); ok {
		return strings.HasSuffix(host, "."+below)
	}
	return domain == "*" || domain == host
}

// domainRight is the right that a domain of a call needs.
func domainRight(domain string) (permission.Access, error) {
	if domain == "*" {
		return permission.Web{}, nil
	}
	a, err := permission.Parse("@web:" + domain)
	if err != nil {
		return nil, errors.New("allowedDomains: " + domain + " is no host; like example.com or *.example.com")
	}
	return a, nil
}
