package permission

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		tag  string
		want Access // nil: an error
	}{
		{"@read:/p", Read{"/p"}},
		{"@read:/p/../q/", Read{"/q"}},
		{" @write:/a b ", Write{"/a b "}},
		{"@web", Web{}},
		{"@web:Example.COM", Web{"example.com"}},
		{"@web:*.example.com", Web{"*.example.com"}},
		{"@web:10.0.0.1", Web{"10.0.0.1"}},
		{"@exec:git push", Exec{"git push"}},
		{"@exec: ls: a", Exec{"ls: a"}},
		{"", nil},
		{"read:/p", nil},
		{"@read", nil},
		{"@read:", nil},
		{"@read:rel/path", nil},
		{"@read:~/x", nil},
		{"@write:/a\nb", nil},
		{"@write:/a\x00b", nil},
		{"@web:", nil},
		{"@web:http://x", nil},
		{"@web:a b", nil},
		{"@web:*", nil},
		{"@exec:", nil},
		{"@exec:  ", nil},
		{"@root:/", nil},
		{"@exec:" + strings.Repeat("x", maxTag), nil},
	} {
		got, err := Parse(tc.tag)
		if (err != nil) != (tc.want == nil) {
			t.Errorf("Parse(%q): error %v", tc.tag, err)
			continue
		}
		if err != nil && !errors.Is(err, ErrTag) {
			t.Errorf("Parse(%q): %v does not wrap ErrTag", tc.tag, err)
		}
		if got != tc.want {
			t.Errorf("Parse(%q) = %#v, want %#v", tc.tag, got, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tag := range []string{"@read:/p", "@write:/a/../b", "@web", "@web:*.a.b", "@exec:git push", "@exec:",
		"@web:\x00", "@lan:a.b:80", "@lan:[fd12::1]:80"} {
		f.Add(tag)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		a, err := Parse(tag)
		if err != nil {
			return
		}
		again, err := Parse(a.Tag())
		if err != nil || again != a {
			t.Fatalf("Parse(%q) = %#v, whose tag %q gives %#v, %v", tag, a, a.Tag(), again, err)
		}
		if !(Set{WorkingDir: "/w"}).mustGrant(t, a).Allows(a) {
			t.Fatalf("a set that was granted %q does not allow it", a.Tag())
		}
	})
}

func (s Set) mustGrant(t *testing.T, a Access) Set {
	t.Helper()
	s, err := s.Grant(Grant{Tag: a.Tag()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAllows(t *testing.T) {
	set := Set{WorkingDir: "/ws", ReadDirs: []string{"/docs", "relative"}, WriteDirs: []string{"/out"},
		Hosts: []string{"a.org", "*.b.org"}, Exec: []string{"git log", "go test"}}
	for tag, want := range map[string]bool{
		"@read:/ws":            true,
		"@read:/ws/a/b":        true,
		"@read:/ws/..":         false,
		"@read:/wsx":           false,
		"@read:/docs/x":        true,
		"@read:/out/x":         true,
		"@read:/":              false,
		"@write:/ws/a":         true,
		"@write:/out":          true,
		"@write:/docs/x":       false,
		"@web":                 false,
		"@web:a.org":           true,
		"@web:x.a.org":         false,
		"@web:x.b.org":         true,
		"@web:b.org":           false,
		"@web:xb.org":          false,
		"@exec:git log":        true,
		"@exec:git log -1":     true,
		"@exec:git logs":       false,
		"@exec:git":            false,
		"@exec:git log; rm x":  false,
		"@exec:git log $(x)":   false,
		"@exec:git log `x`":    false,
		"@exec:go test > /etc": false,
		"@exec:go test ./...":  true,
	} {
		a, err := Parse(tag)
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Allows(a); got != want {
			t.Errorf("Allows(%s) = %v, want %v", tag, got, want)
		}
	}

	if set.Allows(nil) {
		t.Error("nothing is allowed")
	}
	if !(Set{Web: true}).Allows(Web{Host: "any.where"}) {
		t.Error("@web covers every host")
	}
}

func TestDefaultIsTheWorkspaceAlone(t *testing.T) {
	set := Default("/ws/")
	if diff := cmp.Diff([]string{"/ws"}, set.WriteRoots()); diff != "" {
		t.Error(diff)
	}
	for _, a := range []Access{Read{"/etc"}, Web{}, Exec{"ls"}, Write{"/"}} {
		if set.Allows(a) {
			t.Errorf("the default allows %s", a.Tag())
		}
	}
}

func TestRootsDropNested(t *testing.T) {
	set := Set{WorkingDir: "/ws/a", ReadDirs: []string{"/ws", "/x/y", "/ws/a/b", "/x/y"}, WriteDirs: []string{"/x/y/z"}}
	if diff := cmp.Diff([]string{"/x/y", "/ws"}, sortedByLength(set.ReadRoots())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/ws/a", "/x/y/z"}, set.WriteRoots()); diff != "" {
		t.Error(diff)
	}

	// A relative path, which a hand edit can leave, would be one in the folder of the daemon.
	set = Set{WorkingDir: "ws", ReadDirs: []string{".", "../x", "/y"}, WriteDirs: []string{"z", ""}}
	if diff := cmp.Diff([]string{"/y"}, set.ReadRoots()); diff != "" {
		t.Error(diff)
	}
	if roots := set.WriteRoots(); len(roots) > 0 {
		t.Errorf("relative paths can be written: %q", roots)
	}
}

func sortedByLength(list []string) []string {
	if len(list) == 2 && len(list[0]) < len(list[1]) {
		list[0], list[1] = list[1], list[0]
	}
	return list
}

func TestGrantAndRevoke(t *testing.T) {
	set := Default("/ws")
	at := disk.StampOf(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	for _, tag := range []string{"@read:/a", "@write:/b", "@web", "@web:x.org", "@exec:make", "@exec:make"} {
		var err error
		if set, err = set.Grant(Grant{Tag: tag, At: at, By: "me"}); err != nil {
			t.Fatal(err)
		}
	}

	if len(set.Grants) != 5 || len(set.Exec) != 1 {
		t.Errorf("a right given twice is kept twice: %+v", set)
	}
	for _, g := range set.Grants {
		a, err := Parse(g.Tag)
		if err != nil {
			t.Fatal(err)
		}
		if !set.Allows(a) {
			t.Errorf("%s was granted and is not allowed", g.Tag)
		}
	}

	before := len(set.ReadDirs)
	less, err := set.Revoke("@read:/a")
	if err != nil {
		t.Fatal(err)
	}
	if less.Allows(Read{"/a"}) || len(set.ReadDirs) != before {
		t.Error("revoke must take the right from the new set and leave the old one")
	}

	exact, err := Default("/ws").Grant(Grant{Tag: "@exec:make", SHA256: "00"})
	if err != nil || exact.Allows(Exec{"make"}) || len(exact.Grants) != 1 {
		t.Errorf("a grant of one exact request must not widen the set: %+v, %v", exact, err)
	}
	if _, err := set.Grant(Grant{Tag: "nonsense"}); !errors.Is(err, ErrTag) {
		t.Errorf("granting nonsense: %v", err)
	}
}

func TestWithin(t *testing.T) {
	parent := Set{WorkingDir: "/ws", ReadDirs: []string{"/docs"}, Hosts: []string{"*.b.org"}, Exec: []string{"go"}}
	child := Set{WorkingDir: "/etc", ReadDirs: []string{"/docs/a", "/root"}, WriteDirs: []string{"/ws/x", "/docs"},
		Web: true, Hosts: []string{"x.b.org", "c.org"}, Exec: []string{"go test", "rm"},
		Grants: []Grant{{Tag: "@read:/docs/a"}, {Tag: "@web"}}}
	want := Set{WorkingDir: "/ws", ReadDirs: []string{"/docs/a"}, WriteDirs: []string{"/ws/x"},
		Hosts: []string{"x.b.org"}, Exec: []string{"go test"}, Grants: []Grant{{Tag: "@read:/docs/a"}}}
	if diff := cmp.Diff(want, child.Within(parent)); diff != "" {
		t.Errorf("a child has at most its parent's rights (-want +got):\n%s", diff)
	}
}

// A dry run writes its copy alone, and so do the agents that it starts.
func TestADryRunWritesItsCopyAlone(t *testing.T) {
	s := Set{WorkingDir: "/copy", WriteDirs: []string{"/ws", "/data"}, Profile: DryRun}
	if got := s.WriteRoots(); len(got) != 1 || got[0] != "/copy" || s.Allows(Write{Path: "/data/x"}) || !s.Allows(Read{Path: "/data/x"}) {
		t.Errorf("it writes %q", got)
	}
	child := Set{WorkingDir: "/ws", Profile: Auto}.Within(s)
	if child.Profile != DryRun || child.WorkingDir != "/copy" {
		t.Errorf("its child has %+v", child)
	}
}
