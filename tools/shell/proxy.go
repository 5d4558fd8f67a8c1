package shell

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"daycare/engine/permission"
	_ "daycare/tools/shell/sandbox/relay" // the helper that leads a command to its proxy
)

// A Dial makes a connection to host:port under the rule that all of an agent's
// connections obey (tools/fetch).
type Dial func(ctx context.Context, set permission.Set, address string) (net.Conn, error)

// A proxy is the way out of one command's sandbox: an HTTP proxy on a unix socket,
// which is the only thing of the network that the sandbox holds. It lets through
// what goes to the named domains; where their names may lead is judged as for all
// connections of agents (Dial).
type proxy struct {
	socket  string
	server  *http.Server
	domains []string
	named   []string // hosts that the agent was granted by their names
	dial    Dial
	done    sync.WaitGroup
}

// newProxy starts the proxy of a command that may reach the domains. It must be closed.
func newProxy(domains []string, access permission.Set, dial Dial) (*proxy, error) {
	dir, err := os.MkdirTemp("", "daycare-net-")
	if err != nil {
		return nil, fmt.Errorf("make folder of the proxy: %w", err)
	}
	p := &proxy{socket: filepath.Join(dir, "proxy.sock"), domains: domains, named: access.Hosts, dial: dial}
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

	target = withPort(target, map[bool]string{true: "443", false: "80"}[r.Method == http.MethodConnect])
	set, ok := p.reach(target)
	if !ok {
		http.Error(w, "daycare: "+hostOf(target)+" is not among allowedDomains ("+strings.Join(p.domains, ", ")+")", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, set, target)
		return
	}

	p.forward(w, r, set)
}

// forward sends one plain request on.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request, set permission.Set) {
	t := &http.Transport{Proxy: nil, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, set, address) }}
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
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request, set permission.Set, target string) {
	out, err := p.dial(r.Context(), set, target)
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

func withPort(target, usual string) string {
	if _, _, err := net.SplitHostPort(target); err == nil {
		return target
	}
	return net.JoinHostPort(strings.Trim(target, "[]"), usual)
}

// portOf is the port of "host:port"; 0 for none.
func portOf(target string) uint16 {
	_, port, err := net.SplitHostPort(target)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil {
		return 0
	}

	return uint16(n)
}

// hostOf is the host of "host" or "host:port", as domains are spelled.
func hostOf(target string) string {
	if host, _, err := net.SplitHostPort(target); err == nil {
		target = host
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(target, "[]")), ".")
}

// reach returns the rights that the domains of the call give for a target: they were granted,
// or allowed with the call. ok is false if no domain covers it.
func (p *proxy) reach(target string) (set permission.Set, ok bool) {
	host := hostOf(target)
	for _, d := range p.domains {
		right, err := DomainRight(d)
		if err != nil {
			continue
		}
		near, isNear := right.(permission.Lan)
		switch {
		case isNear && near.Host == host && permission.Lan{Host: host, Port: portOf(target)} == near:
			set.Lan = append(set.Lan, strings.TrimPrefix(near.Tag(), "@lan:"))
		case !isNear && domainCovers(d, host):
			set.Web, set.Hosts = true, p.named
		default:
			continue
		}

		ok = true
	}

	return set, ok
}

// domainCovers: "example.com" is that host, "*.example.com" all below it, "*" any.
func domainCovers(domain, host string) bool {
	if below, ok := strings.CutPrefix(domain, "*."); ok {
		return strings.HasSuffix(host, "."+below)
	}
	return domain == "*" || domain == host
}

// DomainRight is the right that an entry of allowedDomains needs: one with a port is of this
// machine or its network.
func DomainRight(domain string) (permission.Access, error) {
	if domain == "*" {
		return permission.Web{}, nil
	}
	if _, _, err := net.SplitHostPort(domain); err == nil {
		a, err := permission.Parse("@lan:" + domain)
		if err != nil {
			return nil, fmt.Errorf("allowedDomains: %w", err)
		}
		return a, nil
	}

	a, err := permission.Parse("@web:" + domain)
	if err != nil {
		return nil, fmt.Errorf("allowedDomains: %s is not a host; allowed: example.com, *.example.com, "+
			"nas.home:8080 in your owner's network", domain)
	}

	return a, nil
}
