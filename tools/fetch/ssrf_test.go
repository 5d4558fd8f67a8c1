package fetch

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/permission"
	"daycare/tools"
)

// everything is the widest grant: any host.
var everything = permission.Set{Web: true}

// canary is a server that must never hear anything.
func canary(t *testing.T) (port string, heard *atomic.Int32) {
	t.Helper()
	heard = new(atomic.Int32)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		if port != "" {
			address = "[::1]:" + port
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			if port != "" {
				continue // no IPv6 here
			}
			t.Fatal(err)
		}

		t.Cleanup(func() { l.Close() })
		_, port, _ = net.SplitHostPort(l.Addr().String())
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				heard.Add(1)
				c.Close()
			}
		}()
	}

	return port, heard
}

// A names server answers each question for a name with the next of its answers.
type names struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   atomic.Int64
}

func (n *names) serve(t *testing.T) {
	t.Helper()
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", p.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = old; p.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			size, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			p.WriteTo(n.answer(buf[:size]), from)
		}
	}()
}

func (n *names) answer(q []byte) []byte {
	name, end := "", 12
	for q[end] != 0 {
		name += string(q[end+1:end+1+int(q[end])]) + "."
		end += 1 + int(q[end])
	}
	kind := binary.BigEndian.Uint16(q[end+1:])
	out := append([]byte{}, q[:end+5]...)
	binary.BigEndian.PutUint16(out[2:], 0x8180)
	for _, i := range []int{6, 8, 10} {
		binary.BigEndian.PutUint16(out[i:], 0)
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.answers[strings.ToLower(strings.TrimSuffix(name, "."))]
	if len(list) == 0 {
		out[3] |= 3 // no such name
		return out
	}

	count := uint16(0)
	for _, text := range list[min(int(n.asked.Load())/2, len(list)-1)] { // A and AAAA are one look
		a := netip.MustParseAddr(text)
		if (kind == 1) != a.Is4() {
			continue
		}
		count++
		out = append(out, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(a.AsSlice())))
		out = append(out, a.AsSlice()...)
	}

	binary.BigEndian.PutUint16(out[6:], count)
	n.asked.Add(1)
	return out
}

// TestSSRF: with the right to the whole web, nothing inside is reached.
func TestSSRF(t *testing.T) {
	port, heard := canary(t)
	(&names{answers: map[string][][]string{
		"localtest.example": {{"127.0.0.1"}}, "meta.example": {{"169.254.169.254"}}, "six.example": {{"::1"}},
		"mapped.example": {{"::ffff:127.0.0.1"}}, "mixed.example": {{"192.0.2.1", "127.0.0.1"}}, "localhost": {{"127.0.0.1"}},
		"127.1": {{"127.0.0.1"}}, "2130706433": {{"127.0.0.1"}}, "0x7f000001": {{"127.0.0.1"}},
		"0177.0.0.1": {{"127.0.0.1"}}, "0x7f.1": {{"127.0.0.1"}},
	}}).serve(t)
	hosts := []string{
		"127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "2130706433", "017700000001", "0177.0.0.1", "0x7f000001",
		"0x7f.0.0.1", "0x7f.1",
		"0", "0.0.0.0", "0.1.2.3", "localhost", "LOCALHOST", "localhost.", "foo.localhost", "localtest.example",
		"six.example", "mapped.example", "mixed.example",
		"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
		"[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]",
		"[2001:0:7f00:1::]", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "[100::1]",
		"[2001:db8::1]", "[ff02::1]",
		"169.254.169.254", "169.254.170.2", "0xa9fea9fe", "2852039166", "meta.example", "metadata.google.internal",
		"100.100.100.200", "168.63.129.16", "192.0.0.192",
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "198.18.0.1", "224.0.0.1",
		"255.255.255.255", "240.0.0.1", "192.88.99.1",
		"①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "127.0.0.1\t", "127.0.0.1%00", "127.0.0.1#@example.com", "example.com@127.0.0.1",
	}
	refused := 0
	for _, host := range hosts {
		for _, scheme := range []string{"http", "https"} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			res := fetchWith(t, ctx, everything, scheme+"://"+host+":"+port+"/")
			cancel()
			if res.Status == "" {
				t.Errorf("%s was fetched: %s", host, res.Text)
			}
			if res.Status == tools.TimedOut {
				t.Errorf("%s was tried", host)
			}
			if res.Status == tools.Denied {
				refused++
			}
		}

		attacktest.Held(t, attacktest.Row{Class: "web: addresses inside", How: "judged by the address it leads to", Name: host})
	}

	if n := heard.Load(); n > 0 {
		t.Errorf("the canary heard %d connections", n)
	}
	t.Logf("%d spellings; %d of %d requests were refused by their address, the others were no address or no name",
		len(hosts), refused, 2*len(hosts))
}

// A name server that changes its mind between the look and the connection.
func TestRebinding(t *testing.T) {
	port, heard := canary(t)
	n := &names{answers: map[string][][]string{"rebind.example": {{"192.0.2.1"}, {"127.0.0.1"}, {"169.254.169.254"}, {"127.0.0.1"}}}}
	n.serve(t)
	for range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if res := fetchWith(t, ctx, everything, "http://rebind.example:"+port+"/"); res.Status != tools.Denied {
			t.Errorf("%s %s", res.Status, res.Text)
		}
		cancel()
	}

	if heard.Load() > 0 {
		t.Error("the canary heard it")
	}
	if asked := n.asked.Load(); asked < 8 {
		t.Errorf("the server was asked %d times", asked)
	}
}

// A redirect to another host in the network is followed if the agent may reach that one, too,
// which is not told where it came from.
func TestRedirectsInTheNetwork(t *testing.T) {
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from := r.Header.Get("Referer"); from != "" {
			t.Errorf("it is told of %s", from)
		}
		fmt.Fprint(w, "you are there")
	}))
	t.Cleanup(to.Close)
	_, port, err := net.SplitHostPort(to.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other := "localhost:" + port
	s := httptest.NewServer(http.RedirectHandler("http://"+other+"/", http.StatusFound))
	t.Cleanup(s.Close)
	for _, allowed := range []bool{true, false} {
		set := local(s.URL)
		if allowed {
			set.Lan = append(set.Lan, other)
		}
		res := fetchWith(t, t.Context(), set, s.URL)
		if strings.Contains(res.Text, "you are there") != allowed || (res.Status == tools.Denied) == allowed {
			t.Errorf("allowed %v: %s %s", allowed, res.Status, res.Text)
		}
	}
}

// Redirects are judged at every hop.
func TestRedirects(t *testing.T) {
	port, heard := canary(t)
	(&names{answers: map[string][][]string{"inside.example": {{"127.0.0.1"}}}}).serve(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	defer server.Close()
	set := local(server.URL)
	set.Web = true

	for _, to := range []string{
		"http://localhost:" + port, "http://[::1]:" + port, "http://inside.example:" + port, "http://169.254.169.254/latest/meta-data",
		"//localhost:" + port, "http://user@localhost:" + port, "file:///etc/passwd", "gopher://127.0.0.1:" + port, "http://127.1:" + port,
	} {
		res := fetchWith(t, t.Context(), set, server.URL+"/?to="+strings.ReplaceAll(to, "&", "%26"))
		if res.Status == "" {
			t.Errorf("%s was followed: %s", to, res.Text)
		}
		attacktest.Held(t, attacktest.Row{Class: "web: redirects", How: "judged by the address it leads to",
			Name: strings.ReplaceAll(to, port, "PORT")})
	}

	loop := fetchWith(t, t.Context(), set, server.URL+"/?to=/?to=/")
	if loop.Status == "" && !strings.Contains(loop.Text, "302") {
		t.Errorf("an endless redirect: %s", loop.Text)
	}
	res := fetchWith(t, t.Context(), local(server.URL), server.URL+"/?to=https://example.com/x")
	if res.Status != tools.Denied || !strings.Contains(res.Text, "@web:example.com") {
		t.Errorf("a redirect out of the grant: %s %s", res.Status, res.Text)
	}
	if heard.Load() > 0 {
		t.Error("the canary heard it")
	}
}

// A proxy of the environment must not be asked: it would be asked for anything.
func TestNoProxy(t *testing.T) {
	port, heard := canary(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"} {
		t.Setenv(name, "http://127.0.0.1:"+port)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	fetchWith(t, ctx, everything, "http://192.0.2.1/")
	if heard.Load() > 0 {
		t.Error("the proxy was asked")
	}
}

func fetchWith(t *testing.T, ctx context.Context, set permission.Set, address string) tools.Result {
	t.Helper()
	f := &fetch{}
	res, err := f.Run(ctx, tools.Call{Name: "web_fetch", Arguments: fmt.Appendf(nil, `{"url":%q}`, address),
		Access: set, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}

	return res
}
