package permission

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/sensitive"
)

func TestChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		s    Set
		want bool
	}{
		"reads only":          {Set{Profile: ReadOnly}, false},
		"reads only, planned": {Set{Profile: ReadOnly, Planned: true}, false}, "plans": {Set{Profile: Planning}, false},
		"a plan was approved": {Set{Profile: Planning, Planned: true}, true}, "asks": {Set{Profile: AskFirst}, true},
		"auto": {Set{Profile: Auto}, true}, "none": {Set{}, true},
	} {
		s := tt.s
		s.WorkingDir = "/ws"
		if s.Changes() != tt.want || (len(s.WriteRoots()) > 0) != tt.want || !slices.Equal(s.ReadRoots(), []string{"/ws"}) {
			t.Errorf("%s: changes %v, writes %q, reads %q", name, s.Changes(), s.WriteRoots(), s.ReadRoots())
		}
	}

	if p := (Set{}).Under(AskFirst).Profile; p != AskFirst {
		t.Errorf("a set without a profile is %q", p)
	}
	if p := (Set{Profile: Auto}).Under(AskFirst).Profile; p != Auto {
		t.Errorf("a set with a profile is %q", p)
	}
}

// What is granted is in the set, once; what is revoked is not, and no grant remembers it.
func TestEachRightIsGivenAndTaken(t *testing.T) {
	for _, tag := range []string{"@read:/r", "@write:/w", "@web", "@web:a.example", "@exec:git push"} {
		others := Set{WorkingDir: "/ws", ReadDirs: []string{"/o"}, WriteDirs: []string{"/o"},
			Hosts: []string{"o.example"}, Exec: []string{"o"},
			Grants: []Grant{{Tag: "@exec:o"}, {Tag: tag, SHA256: "bound"}}}
		a, err := Parse(tag)
		if err != nil {
			t.Fatal(err)
		}

		given, err := others.Grant(Grant{Tag: tag, By: "one"})
		if err == nil {
			given, err = given.Grant(Grant{Tag: tag, By: "two"})
		}
		if err != nil || !given.Allows(a) || others.Allows(a) || len(given.Grants) != 3 || given.Grants[2].By != "two" {
			t.Errorf("%s given: %+v, %v", tag, given, err)
		}

		taken, err := given.Revoke(tag)
		want := others
		want.Grants = others.Grants[:1]
		if diff := cmp.Diff(want, taken); err != nil || diff != "" {
			t.Errorf("%s taken away: %v (-want +got):\n%s", tag, err, diff)
		}
	}

	for _, tag := range []string{"nonsense", "@message:" + agent} {
		if _, err := (Set{}).Grant(Grant{Tag: tag}); err == nil {
			t.Errorf("%s was granted", tag)
		}
		if _, err := (Set{}).Revoke(tag); err == nil {
			t.Errorf("%s was revoked", tag)
		}
	}

	if _, err := (Set{}).Revoke("@read:rel"); !errors.Is(err, ErrTag) {
		t.Errorf("a path that is not absolute: %v", err)
	}
}

// A secret in a folder is reached by a right to the secret, not by one to another folder.
func TestWithheldIsNotGivenByAnotherFolder(t *testing.T) {
	table := sensitive.Here()
	for name, tt := range map[string]struct {
		s    Set
		a    Access
		want string
	}{
		"a folder around it": {Set{WorkingDir: "/ws"}, Read{"/ws/.ssh/id"}, "/ws/.ssh"},
		"and another one beside": {Set{WorkingDir: "/ws", WriteDirs: []string{"/other", "rel"},
			ReadDirs: []string{"/r"}}, Read{"/ws/.ssh/id"}, "/ws/.ssh"},
		"the secret itself":                   {Set{WorkingDir: "/ws", ReadDirs: []string{"/ws/.ssh"}}, Read{"/ws/.ssh/id"}, ""},
		"the secret, then a folder around it": {Set{WorkingDir: "/ws/.ssh", ReadDirs: []string{"/ws"}}, Read{"/ws/.ssh/id"}, ""},
		"to write what is read":               {Set{WorkingDir: "/ws", ReadDirs: []string{"/ws/.ssh"}}, Write{"/ws/.ssh/id"}, "/ws/.ssh"},
		"what runs later":                     {Set{WorkingDir: "/ws"}, Write{"/ws/.vscode/tasks.json"}, "/ws/.vscode"},
		"to read what runs":                   {Set{WorkingDir: "/ws"}, Read{"/ws/.vscode/tasks.json"}, ""},
		"a host":                              {Set{WorkingDir: "/ws"}, Web{"a.example"}, ""},
	} {
		if got := tt.s.Withheld(tt.a, table); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}

	read, write := Set{WorkingDir: "/ws", WriteDirs: []string{"/ws/w"}, ReadDirs: []string{"/ws/r"}}.Named()
	if !slices.Equal(read, []string{"/ws/r"}) || !slices.Equal(write, []string{"/ws", "/ws/w"}) {
		t.Errorf("named are %q to read and %q to write", read, write)
	}
}

// Added are the folders that a change of the rights brings.
func TestAdded(t *testing.T) {
	a := Set{WorkingDir: "/ws", ReadDirs: []string{"/r"}, WriteDirs: []string{"/w"}}
	for name, tt := range map[string]struct {
		b    Set
		want []Access
	}{
		"nothing": {a, nil},
		"each kind": {Set{WorkingDir: "/x", ReadDirs: []string{"/r", "/r2"},
			WriteDirs: []string{"/w2", "/w"}}, []Access{Write{"/x"}, Write{"/w2"}, Read{"/r2"}}},
		"a folder to work in":   {Set{WorkingDir: "/w"}, nil},
		"to write what is read": {Set{WorkingDir: "/ws", WriteDirs: []string{"/r"}}, []Access{Write{"/r"}}},
	} {
		if diff := cmp.Diff(tt.want, Added(a, tt.b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	if got := Diff(Set{Profile: Auto}, Set{WorkingDir: "/ws"}); !slices.Equal(got,
		[]string{"workingDir (none) → /ws", "profile auto → (none)"}) {
		t.Errorf("Diff of two profiles: %q", got)
	}
}

// A child has no more than its parent: no right, no grant, no freer profile.
func TestWithinNarrowsEachRight(t *testing.T) {
	parent := Set{WorkingDir: "/ws", ReadDirs: []string{"/r"}, Hosts: []string{"a.example"}, Exec: []string{"git"}, Profile: AskFirst}
	child := Set{WorkingDir: "/other", ReadDirs: []string{"/r/x", "/q"}, WriteDirs: []string{"/ws/x", "/r"}, Web: true,
		Hosts: []string{"a.example", "b.example"},
		Exec:  []string{"git push", "rm", ""}, Grants: []Grant{{Tag: "@exec:git push"}, {Tag: "@exec:rm"}, {Tag: "nonsense"}}}
	want := Set{WorkingDir: "/ws", ReadDirs: []string{"/r/x"}, WriteDirs: []string{"/ws/x"}, Hosts: []string{"a.example"},
		Exec: []string{"git push"}, Grants: []Grant{{Tag: "@exec:git push"}}, Profile: AskFirst}
	if diff := cmp.Diff(want, child.Within(parent)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	parent.Web = true
	if !child.Within(parent).Web {
		t.Error("the web of both is gone")
	}
	if (Set{Exec: []string{"", " "}}).Allows(Exec{""}) {
		t.Error("no words allow a command")
	}
}

// Under a parent that changes nothing a child changes nothing, whatever it says.
func TestWithinAParentThatReads(t *testing.T) {
	for child, want := range map[Profile]Profile{"": ReadOnly, Auto: ReadOnly, ReadOnly: ReadOnly} {
		if got := (Set{Profile: child}).Within(Set{Profile: ReadOnly}).Profile; got != want {
			t.Errorf("%q under read-only is %q", child, got)
		}
	}
	if got := (Set{Profile: Auto}).Within(Set{Profile: AskFirst}).Profile; got != Auto {
		t.Errorf("a profile of its own became %q", got)
	}
}
