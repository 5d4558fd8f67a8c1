package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
)

// houseNames are names that lead inside, outside and to what is never reached.
func houseNames() *names {
	return &names{answers: map[string][][]string{
		"inside.example": {{"127.0.0.1"}}, "six.example": {{"::1"}}, "nas.home": {{"127.0.0.1"}}, "outside.example": {{"192.0.2.1"}},
		"mixed.example": {{"8.8.8.8", "127.0.0.1"}}, "meta.example": {{"169.254.169.254"}},
		"nat.example": {{"64:ff9b::a9fe:a9fe"}}, "tunnel.example": {{"2002:a9fe:a9fe::"}},
		"cloud.example": {{"fd00:ec2::254"}}, "link.example": {{"fe80::1"}}, "public.example": {{"8.8.8.8"}},
		"carrier.example": {{"100.64.0.9"}}, "localhost": {{"127.0.0.1"}},
	}}
}

// TestAHostGrantOpensNoPrivateAddress: a right to hosts, however exact, is one to the Internet.
func TestAHostGrantOpensNoPrivateAddress(t *testing.T) {
	port, heard := canary(t)
	houseNames().serve(t)
	for _, host := range []string{"127.0.0.1", "localhost", "inside.example", "six.example", "nas.home", "[::1]", "[::ffff:127.0.0.1]"} {
		plain := strings.Trim(host, "[]")
		for _, set := range []permission.Set{{Hosts: []string{plain}}, {Web: true}, {Web: true, Hosts: []string{plain, "*.example"}}} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			res := fetchWith(t, ctx, set, "http://"+host+":"+port+"/")
			cancel()
			if res.Status != tools.Denied || !strings.Contains(res.Text, "@lan:") {
				t.Errorf("%s with %v: %s %s", host, set.Hosts, res.Status, res.Text)
			}
		}
	}

	if heard.Load() > 0 {
		t.Error("the canary heard it")
	}
}

// TestLanOpensOnePortOfOneHost by whatever name it is called, and nothing on the Internet.
func TestLanOpensOnePortOfOneHost(t *testing.T) {
	houseNames().serve(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the printer") }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	other, heard := canary(t)
	for _, c := range []struct {
		lan, url string
		opens    bool
	}{
		{"127.0.0.1:" + port, "http://127.0.0.1:" + port, true},
		{"nas.home:" + port, "http://NAS.home.:" + port + "/x", true},
		{"inside.example:" + port, "http://inside.example:" + port, true},
		{"127.0.0.1:" + port, "http://[::ffff:127.0.0.1]:" + port, true}, // the same address, spelled otherwise
		{"127.0.0.1:" + port, "http://127.0.0.1:" + other, false},
		{"127.0.0.1:" + port, "http://localhost:" + port, false},
		{"nas.home:" + port, "http://127.0.0.1:" + port, false},
		{"nas.home:" + port, "http://inside.example:" + port, false},
		{"public.example:443", "https://public.example", false},
	} {
		set, err := permission.Set{}.Grant(permission.Grant{Tag: "@lan:" + c.lan})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		res := fetchWith(t, ctx, set, c.url)
		cancel()
		if (res.Status == "") != c.opens || !c.opens && res.Status != tools.Denied {
			t.Errorf("@lan:%s and %s: %q %s", c.lan, c.url, res.Status, res.Text)
		}
	}

	if heard.Load() > 0 {
		t.Error("another port was reached")
	}
}

// TestMetadataIsNeverReached, also with rights that a hand edit put into the file.
func TestMetadataIsNeverReached(t *testing.T) {
	houseNames().serve(t)
	hosts := []string{"169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "fe80::1",
		"fd00:ec2::254", "100.100.100.200", "168.63.129.16",
		"0.0.0.0", "::", "meta.example", "nat.example", "tunnel.example", "cloud.example", "link.example"}
	for _, host := range hosts {
		name, _, err := target(net.JoinHostPort(host, "80"))
		if err != nil {
			t.Fatal(err)
		}
		set := permission.Set{Web: true, Hosts: []string{host, name},
			Lan: []string{net.JoinHostPort(host, "80"), net.JoinHostPort(name, "80")}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		conn, err := Dial(ctx, set, net.JoinHostPort(host, "80"))
		cancel()
		if !errors.Is(err, ErrPrivate) {
			t.Errorf("%s: %v", host, err)
		}
		if conn != nil {
			conn.Close()
		}

		ip := net.ParseIP(host)
		if _, err := permission.Parse("@lan:" + net.JoinHostPort(host, "80")); ip != nil && err == nil {
			t.Errorf("@lan:%s is a right", host)
		}
	}

	t.Logf("%d hosts", len(hosts))
}

// TestWhatIsAskedOfAHost: the right that a host needs depends on where its name leads, and a
// name that the agent may have made up is not looked up before it may be reached.
func TestWhatIsAskedOfAHost(t *testing.T) {
	n := houseNames()
	n.serve(t)
	f := &fetch{}
	for _, c := range []struct {
		url    string
		set    permission.Set
		want   string
		looked bool
	}{
		{"http://127.0.0.1:8080/", permission.Set{}, "@lan:127.0.0.1:8080", false},
		{"http://[::1]/", permission.Set{}, "@lan:[::1]:80", false},
		{"https://192.168.1.5/", permission.Set{}, "@lan:192.168.1.5:443", false},
		{"https://192.168.1.5/", permission.Set{Web: true}, "@lan:192.168.1.5:443", false},
		{"http://100.64.0.9:81/", permission.Set{}, "@lan:100.64.0.9:81", false},
		{"http://nas.home:8080/", permission.Set{}, "@lan:nas.home:8080", true},
		{"http://inside.example:8080/", permission.Set{Web: true}, "@lan:inside.example:8080", true},
		{"http://inside.example:8080/", permission.Set{Hosts: []string{"inside.example"}}, "@lan:inside.example:8080", true},
		{"http://carrier.example/", permission.Set{Web: true}, "@lan:carrier.example:80", true},
		{"http://inside.example:8080/", permission.Set{Lan: []string{"inside.example:8080"}}, "", false},
		{"http://inside.example:8081/", permission.Set{Web: true, Lan: []string{"inside.example:8080"}}, "@lan:inside.example:8081", true},
		{"http://my-secret.inside.example/", permission.Set{}, "@web:my-secret.inside.example", false},
		{"http://inside.example:8080/", permission.Set{}, "@web:inside.example", false},
		{"http://mixed.example/", permission.Set{Web: true}, "", true},
		{"http://public.example/", permission.Set{Web: true}, "", true},
		{"http://public.example/", permission.Set{Lan: []string{"public.example:443"}}, "@web:public.example", false},
		{"http://meta.example/", permission.Set{Web: true}, "", true}, // Run refuses it
		{"http://169.254.169.254/", permission.Set{}, "@web:169.254.169.254", false},
	} {
		before := n.asked.Load()
		need, err := f.Needs(tools.Call{Arguments: fmt.Appendf(nil, `{"url":%q}`, c.url), Access: c.set})
		tag := ""
		if need != nil {
			tag = need.Tag
		}
		if err != nil || tag != c.want || (n.asked.Load() > before) != c.looked {
			t.Errorf("%s with %+v: %q, %v, looked up %v; want %q, %v", c.url, c.set, tag, err, n.asked.Load() > before, c.want, c.looked)
		}
		if strings.HasPrefix(tag, "@lan:") && !strings.Contains(need.Reason, " leads to ") {
			t.Errorf("%s: the question does not say where the name leads: %s", c.url, need.Reason)
		}
	}
}

// TestAnApprovalForOneCall opens what it names, for this call, and nothing when the name
// leads elsewhere by then.
func TestAnApprovalForOneCall(t *testing.T) {
	houseNames().serve(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the printer") }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, c := range []struct {
		host, approved string
		want           tools.Status
	}{
		{"nas.home", "@lan:nas.home:" + port, ""}, {"nas.home", "", tools.Denied},
		{"nas.home", "@web:nas.home", tools.Denied}, {"nas.home", "@web", tools.Denied},
		{"nas.home", "@lan:nas.home:1", tools.Denied}, {"127.0.0.1", "@lan:nas.home:" + port, tools.Denied},
		{"meta.example", "@lan:meta.example:" + port, tools.Denied},
		{"public.example", "@lan:public.example:" + port, tools.Denied},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		res, err := (&fetch{}).Run(ctx, tools.Call{Arguments: fmt.Appendf(nil, `{"url":"http://%s:%s/"}`, c.host, port),
			Approved: c.approved, Progress: func(string) {}})
		cancel()
		if err != nil || res.Status != c.want {
			t.Errorf("%s with %q: %q %s, %v", c.host, c.approved, res.Status, res.Text, err)
		}
	}
}

// A name that led outside when it was asked for and leads inside when it is dialled.
func TestRebindingAfterTheQuestion(t *testing.T) {
	port, heard := canary(t)
	n := &names{answers: map[string][][]string{"rebind.example": {{"8.8.8.8"}, {"127.0.0.1"}}}}
	n.serve(t)
	call := tools.Call{Arguments: fmt.Appendf(nil, `{"url":"http://rebind.example:%s/"}`, port), Access: everything,
		Progress: func(string) {}}
	if need, err := (&fetch{}).Needs(call); need != nil || err != nil {
		t.Fatalf("needs %+v, %v", need, err)
	}

	for n.asked.Load() < 2 { // A and AAAA of one look
		n.asked.Add(1)
	}
	res, err := (&fetch{}).Run(t.Context(), call)
	if err != nil || res.Status != tools.Denied || heard.Load() > 0 {
		t.Errorf("%q %s, %v; heard %d", res.Status, res.Text, err, heard.Load())
	}
}

// TestASearchServerOfTheOwner works at a private address without a question; a service that
// the owner did not name by its address does not.
func TestASearchServerOfTheOwner(t *testing.T) {
	houseNames().serve(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"results":[{"title":"T","url":"https://x.org","content":"a b"}]}`)
	}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	service, err := FindService("http://nas.home:"+port, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}

	tool := &search{*service}
	if need, err := tool.Needs(tools.Call{}); need != nil || err != nil {
		t.Errorf("needs %+v, %v", need, err)
	}
	res, err := tool.Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{"query":"cats"}`), Progress: func(string) {}})
	if err != nil || res.Status != "" || !strings.Contains(res.Text, "https://x.org") {
		t.Errorf("%q %s, %v", res.Status, res.Text, err)
	}
	if need, err := (&search{Service{Name: "brave"}}).Needs(tools.Call{}); err != nil || need == nil ||
		need.Tag != "@web:api.search.brave.com" {
		t.Errorf("needs %+v, %v", need, err)
	}
}

// What speaks no web is reached by the host's own grant only.
func TestOddPorts(t *testing.T) {
	for _, c := range []struct {
		set  permission.Set
		port uint16
		open bool
	}{
		{everything, 443, true}, {everything, 8080, true}, {everything, 25, false},
		{permission.Set{Hosts: []string{"*.example"}}, 25, false},
		{permission.Set{Hosts: []string{"mail.example"}}, 25, true}, {permission.Set{Hosts: []string{"other.example"}}, 443, false},
		{permission.Set{Lan: []string{"mail.example:25"}}, 25, false},
	} {
		none := func() ([]net.Addr, error) { return nil, nil }
		err := judge(c.set, "mail.example", c.port, none)("tcp", fmt.Sprintf("8.8.8.8:%d", c.port), nil)
		if (err == nil) != c.open || err != nil && !errors.Is(err, ErrPrivate) {
			t.Errorf("port %d with %+v: %v", c.port, c.set, err)
		}
	}

	if err := judge(everything, "x", 80, net.InterfaceAddrs)("tcp", "nonsense", nil); !errors.Is(err, ErrPrivate) {
		t.Errorf("what is no address: %v", err)
	}
}
