package permission

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLan(t *testing.T) {
	for tag, want := range map[string]string{
		"@lan:NAS.home.:8080": "@lan:nas.home:8080", "@lan:192.168.1.5:80": "@lan:192.168.1.5:80", "@lan:localhost:1": "@lan:localhost:1",
		"@lan:[FD12::1]:0443": "@lan:[fd12::1]:443", "@lan:[::ffff:192.168.1.5]:80": "@lan:192.168.1.5:80",
		"@lan:[::1]:65535": "@lan:[::1]:65535",
		"@lan":             "", "@lan:": "", "@lan:nas.home": "", "@lan:nas.home:": "", "@lan:nas.home:0": "",
		"@lan:nas.home:65536": "", "@lan:nas.home:http": "", "@lan:nas.home:-1": "",
		"@lan::80": "", "@lan:*.home:80": "", "@lan:*:80": "", "@lan:a b:80": "", "@lan:fd12::1:80": "",
		"@lan:[fe80::1%lo]:80": "", "@lan:http://nas:80": "",
		"@lan:169.254.169.254:80": "", "@lan:[::ffff:a9fe:a9fe]:80": "", "@lan:[64:ff9b::a9fe:a9fe]:80": "",
		"@lan:[2002:a9fe:a9fe::]:80": "",
		"@lan:[fd00:ec2::254]:80":    "", "@lan:[fe80::1]:80": "", "@lan:0.0.0.0:80": "", "@lan:100.100.100.200:80": "",
	} {
		a, err := Parse(tag)
		switch {
		case want == "" && (err == nil || !errors.Is(err, ErrTag)):
			t.Errorf("Parse(%q): %v, %v; want ErrTag", tag, a, err)
		case want != "" && (err != nil || a.Tag() != want):
			t.Errorf("Parse(%q): %v, %v; want %q", tag, a, err, want)
		}
	}
}

// A right to a host on the Internet gives none to the network of the owner, and the other
// way round.
func TestLanAndWebAreRightsOfTheirOwn(t *testing.T) {
	wide := Set{Web: true, Hosts: []string{"nas.home"}}
	set, err := Set{}.Grant(Grant{Tag: "@lan:nas.home:8080", By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	near := Lan{"nas.home", 8080}
	if wide.Allows(near) || set.Allows(Web{"nas.home"}) || !set.Allows(near) || set.Allows(Lan{"nas.home", 8081}) ||
		set.Allows(Lan{"other.home", 8080}) {
		t.Errorf("%+v allows the wrong things", set)
	}
	if got := Diff(Set{}, set); !cmp.Equal(got, []string{"+@lan:nas.home:8080"}) {
		t.Errorf("Diff: %q", got)
	}

	child := Set{Lan: []string{"nas.home:8080", "tv.home:80", "169.254.169.254:80"}}
	if got := child.Within(set); !cmp.Equal(got.Lan, []string{"nas.home:8080"}) {
		t.Errorf("a child has %q", got.Lan)
	}
	if got := child.Within(wide); len(got.Lan) > 0 {
		t.Errorf("a child of one with @web has %q", got.Lan)
	}

	ceiling, err := Ceiling([]string{"@web"})
	if err != nil || ceiling.Covers(Request{Tag: near.Tag()}, Once) {
		t.Errorf("the ceiling @web covers the network, %v", err)
	}
	if set, err = set.Revoke("@lan:NAS.home:8080"); err != nil || set.Allows(near) || len(set.Grants) > 0 {
		t.Errorf("revoked: %+v, %v", set, err)
	}

	r, err := General("@lan:nas.home:8080", "to print")
	if err != nil || r.Shown() != "nas.home:8080 in your network" || !IsGeneral("a", r.Tag, r.SHA256("a")) {
		t.Errorf("asked: %q, %v", r.Shown(), err)
	}
}
