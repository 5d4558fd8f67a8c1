package permission

import (
	"strings"
	"testing"
)

func TestRightsToRemoteAgents(t *testing.T) {
	for tag, want := range map[string]string{"@a2a:example.org": "@a2a:example.org", "@a2a: Example.ORG ": "@a2a:example.org",
		"@a2a:127.0.0.1": "@a2a:127.0.0.1"} {
		if a, err := Parse(tag); err != nil || a.Tag() != want {
			t.Errorf("%q: %v, %v; want %s", tag, a, err, want)
		}
	}
	for _, tag := range []string{"@a2a", "@a2a:", "@a2a:*.example.org", "@a2a:a/b", "@a2a:a b", "@a2a:" + strings.Repeat("x", 254)} {
		if a, err := Parse(tag); err == nil {
			t.Errorf("%q is %v", tag, a)
		}
	}

	none := Default("/w")
	set, err := none.Grant(Grant{Tag: "@a2a:example.org"})
	here, there := A2A{"example.org"}, A2A{"example.com"}
	if err != nil || !set.Allows(here) || set.Allows(there) || set.Allows(Web{"example.org"}) || none.Allows(here) {
		t.Fatalf("%+v, %v", set, err)
	}
	if got := Diff(none, set); len(got) != 1 || got[0] != "+@a2a:example.org" {
		t.Errorf("%v", got)
	}
	if got := set.Rights(); got[len(got)-1].Tag() != "@a2a:example.org" {
		t.Errorf("%v", got)
	}
	if less := set.Within(none); less.Allows(here) || len(less.Grants) != 0 {
		t.Errorf("a child has more than its parent: %+v", less)
	}
	if less, err := set.Revoke("@a2a:example.org"); err != nil || less.Allows(here) {
		t.Errorf("%+v, %v", less, err)
	}
	if r, err := General("@a2a:example.org", "why"); err != nil || r.Detail.Call != "any task for an agent at example.org" {
		t.Errorf("%+v, %v", r, err)
	}
}
