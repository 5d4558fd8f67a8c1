package shell

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// A wide is the world outside: every allowed name leads to one server.
type wide struct {
	mu     sync.Mutex
	dialed []string
	server *httptest.Server
}

func newWide(t *testing.T) *wide {
	w := &wide{server: httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "hello from %s%s\n", r.Host, r.URL.Path)
	}))}
	t.Cleanup(w.server.Close)
	return w
}

func (w *wide) dial(ctx context.Context, _ permission.Set, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, address)
	w.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, "tcp", w.server.Listener.Addr().String())
}

// TestNetworkOfNamedDomains: a command reaches what its call names, and nothing else.
func TestNetworkOfNamedDomains(t *testing.T) {
	t.Parallel()
	for _, level := range []sandbox.Level{sandbox.Bwrap, sandbox.Landlock} {
		t.Run(string(level), func(t *testing.T) { reachesNamed(t, level) })
	}
}

func reachesNamed(t *testing.T, level sandbox.Level) {
	t.Parallel()
	outside := newWide(t)
	e, _, _ := held(t, level)
	if runner, _ := probed[level](); !runner.Proxied() {
		t.Skip("SKIPPED, NOTHING IS PROVED: this system allows no namespaces")
	}

	e.options.Dial = outside.dial
	port := outside.server.Listener.Addr().(*net.TCPAddr).Port
	script := fmt.Sprintf(`exec 2>&1
echo "1 $(curl -s -m 20 http://good.test/a)"
echo "2 $(curl -s -m 20 --proxytunnel http://sub.wild.test:8080/b)"
echo "3 $(curl -s -m 20 http://evil.test/c)"
echo "4 $(curl -s -m 20 --proxytunnel http://evil.test/d || echo refused)"
echo "5 $(curl -s -m 20 --noproxy '*' http://127.0.0.1:%d/e || echo refused)"
echo "6 $(curl -s -m 20 -H 'Host: evil.test' http://good.test/f)"
echo "7 $(curl -s -m 20 http://wild.test/g)"
echo "8 $(curl -s -m 20 http://127.0.0.1:%d/h)"
kill -0 1 2>/dev/null; ls /run
`, port, port)
	res := run(t, t.Context(), e, newCall(t, workspace(t),
		a{"command": script, "allowedDomains": []string{"good.test", "*.wild.test"}, "timeoutMs": 120_000}))
	for _, want := range []string{"1 hello from good.test/a", "2 hello from sub.wild.test:8080/b",
		"3 daycare: evil.test is not among allowedDomains",
		"4 refused", "5 refused", "6 hello from good.test/f", "7 daycare: wild.test is not", "8 daycare: 127.0.0.1 is not"} {
		if !strings.Contains(res.Text, want) {
			t.Errorf("%q is not in:\n%s", want, res.Text)
		}
	}

	outside.mu.Lock()
	defer outside.mu.Unlock()
	slices.Sort(outside.dialed)
	if got := strings.Join(slices.Compact(outside.dialed), " "); got != "good.test:80 sub.wild.test:8080" {
		t.Errorf("connections were made to %s", got)
	}
}

// What the proxy was is gone with its command, whether that ended by itself or not.
func TestProxyEndsWithItsCommand(t *testing.T) {
	t.Parallel()
	outside := newWide(t)
	e, _, _ := held(t, sandbox.Bwrap)
	e.options.Dial = outside.dial
	temp := t.TempDir()
	p, err := newProxy([]string{"x.test"}, permission.Set{}, outside.dial)
	if err != nil {
		t.Fatal(err)
	}

	p.close()
	if left, _ := filepath.Glob(filepath.Dir(p.socket)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	for _, script := range []string{`echo $http_proxy`, `trap '' TERM; while :; do sleep 0.1; done`} {
		access := permission.Default(temp)
		run(t, t.Context(), e, newCall(t, access, a{"command": script, "allowedDomains": []string{"good.test"}, "timeoutMs": 500}))
		if left := survivors("relay\x00run"); len(left) > 0 && len(survivors(temp)) > 0 {
			t.Errorf("%q: the relay survived", script)
		}
	}
}

func TestNetworkNeedsRightAndSandbox(t *testing.T) {
	t.Parallel()
	outside := newWide(t)
	e, _, _ := held(t, noSpaces)
	e.options.Dial = outside.dial
	access := workspace(t)
	call := newCall(t, access, a{"command": "go mod download", "allowedDomains": []string{"Packages.Example.com.", "*.example.com"}})
	need, err := e.Needs(call)
	if err != nil || need == nil || need.Tag != "@web:packages.example.com" ||
		!strings.Contains(need.Detail.Command, "[network] packages.example.com, *.example.com") {
		t.Errorf("needs %+v %v", need, err)
	}

	call.Access.Hosts = []string{"packages.example.com"}
	if need, err = e.Needs(call); err != nil || need == nil || need.Tag != "@web:*.example.com" {
		t.Errorf("then needs %+v %v", need, err)
	}
	call.Access.Web = true
	if need, err = e.Needs(call); err != nil || need != nil {
		t.Errorf("with the right to all it needs %+v %v", need, err)
	}
	if res := run(t, t.Context(), e, call); res.Status != tools.Failed || !strings.Contains(res.Text, "allowedDomains needs namespaces") {
		t.Errorf("without namespaces: %+v", res)
	}

	for _, bad := range []string{"a b", "http://x", "*.*", ""} {
		if res := run(t, t.Context(), e,
			newCall(t, access, a{"command": "true", "allowedDomains": []string{bad}})); res.Status != tools.Failed {
			t.Errorf("%q was taken for a host: %+v", bad, res)
		}
	}

	if res := run(t, t.Context(), newExec(Options{Mode: Off}),
		newCall(t, access, a{"command": "echo free", "allowedDomains": []string{"x.test"}})); res.Status != "" {
		t.Errorf("where nothing holds commands they need no proxy: %+v", res)
	}
}

// TestTheProxyPassesOnTheRightsOfItsDomains: a command reaches its owner's network only where
// its call names the very port, and a host on the Internet only where it names the host.
func TestTheProxyPassesOnTheRightsOfItsDomains(t *testing.T) {
	t.Parallel()
	p := &proxy{domains: []string{"good.test", "*.wild.test", "nas.home:8080", "mail.test", "[fd12::1]:80"}, named: []string{"mail.test"}}
	for target, want := range map[string]permission.Set{
		"good.test:443":    {Web: true, Hosts: p.named},
		"a.wild.test:8080": {Web: true, Hosts: p.named},
		"mail.test:25":     {Web: true, Hosts: p.named},
		"nas.home:8080":    {Lan: []string{"nas.home:8080"}},
		"[fd12::1]:80":     {Lan: []string{"[fd12::1]:80"}},
	} {
		if got, ok := p.reach(target); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", target, got, ok, want)
		}
	}

	for _, target := range []string{"nas.home:80", "nas.home:443", "evil.test:443", "wild.test:80", "[fd12::1]:81",
		"169.254.169.254:80", "nas.home"} {
		if got, ok := p.reach(target); ok {
			t.Errorf("%s is let through with %+v", target, got)
		}
	}

	for domain, want := range map[string]string{"example.com": "@web:example.com", "*": "@web",
		"nas.home:8080": "@lan:nas.home:8080", "127.0.0.1:80": "@lan:127.0.0.1:80",
		"169.254.169.254:80": "", "*.home:80": "", "nas.home:x": "", "http://x": ""} {
		right, err := DomainRight(domain)
		if (err == nil) != (want != "") || err == nil && right.Tag() != want {
			t.Errorf("allowedDomains %q: %v, %v; want %q", domain, right, err, want)
		}
	}
}

// The proxy itself, as a command uses it: it dials with the rights of the domain and no other.
func TestTheProxyDialsWithTheRightsOfOneDomain(t *testing.T) {
	t.Parallel()
	outside := newWide(t)
	var mu sync.Mutex
	dialed := map[string]permission.Set{}
	p, err := newProxy([]string{"good.test", "nas.home:8080"}, permission.Set{Web: true, Lan: []string{"other.home:1"}},
		func(ctx context.Context, set permission.Set, address string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dialed[address] = set
			return outside.dial(ctx, set, address)
		})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", p.socket)
		}}}
	for address, want := range map[string]int{"http://good.test/": 200, "http://nas.home:8080/": 200,
		"http://nas.home/": 403, "http://nas.home:8081/": 403, "http://other.home:1/": 403} {
		resp, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", address, resp.Status, want)
		}
	}

	mu.Lock()
	defer mu.Unlock()
	if want := (map[string]permission.Set{"good.test:80": {Web: true},
		"nas.home:8080": {Lan: []string{"nas.home:8080"}}}); !reflect.DeepEqual(dialed, want) {
		t.Errorf("dialed %+v, want %+v", dialed, want)
	}
}
