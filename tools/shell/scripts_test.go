package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"daycare/engine/attacktest"
	"daycare/engine/permission"
	"daycare/tools/shell/sandbox"
)

// asking is exec in a sandbox where each command asks, and a workspace with scripts.
func asking(t *testing.T) (*Exec, permission.Set) {
	t.Helper()
	e, _, _ := held(t, sandbox.Landlock)
	e.options.Mode = Ask
	access := workspace(t)
	for name, text := range map[string]string{"build.sh": "#!/bin/sh\necho built\n", "tool.py": "print(1)\n",
		"data.txt": "1\n", "hook.js": "1"} {
		if err := os.WriteFile(filepath.Join(access.WorkingDir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	return e, access
}

func needs(t *testing.T, e *Exec, set permission.Set, args a) *permission.Request {
	t.Helper()
	need, err := e.Needs(newCall(t, set, args))
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return need
}

// The rule of a card covers commands that begin with its words, and nothing that could
// ride along with them.
func TestRuleOfTheBeginningCoversNothingElse(t *testing.T) {
	e, access := asking(t)
	need := needs(t, e, access, a{"command": "git push origin main"})
	if need == nil || need.Prefix != "@exec:git push" {
		t.Fatalf("offered %+v, want the rule @exec:git push", need)
	}
	set, err := access.Grant(permission.Grant{Tag: need.Prefix, Scripts: need.Scripts})
	if err != nil {
		t.Fatal(err)
	}

	for _, args := range []a{{"command": "git push"}, {"command": "git push origin main"},
		{"command": "git  push --tags 2>&1"}, {"command": "git push 'a b'"}} {
		if need := needs(t, e, set, args); need != nil {
			t.Errorf("%v asks for %s", args, need.Tag)
		}
	}

	riders := []a{{"command": "git push; id"}, {"command": "git push && id"}, {"command": "git push || id"},
		{"command": "git push | sh"}, {"command": "git push & id"},
		{"command": "git push\nid"}, {"command": "git push $(id)"}, {"command": "git push `id`"},
		{"command": "git push <(id)"}, {"command": "git push >(id)"},
		{"command": "git push > f"}, {"command": "git push >> f"}, {"command": "git push >&f"},
		{"command": "git push &> f"}, {"command": "git push 3<> f"}, {"command": "git push >| f"},
		{"command": "A=b git push"}, {"command": "env git push"}, {"command": "git push $A"}, {"command": "git push *"},
		{"command": "git push ~x"},
		{"command": "git pushx"}, {"command": "git"}, {"command": "gitpush"}, {"command": "'git push'"},
		{"command": "git -c a=b push"}, {"command": "./git push"}, {"command": "git\u200b push"},
		{"command": "git push", "env": a{"GIT_SSH": "x"}}, {"command": "git push", "stdin": "x"},
		{"command": "git push", "allowedDomains": []string{"example.com"}},
		{"command": "git() { id; }; git push"}, {"command": "alias git=id; git push"}, {"command": "git push #\nid"},
		{"command": "! git push; id"}, {"command": "git push {a,b}"},
		{"command": "(git push; id)"}, {"command": "if git push; then id; fi"}, {"command": "git push <<E\n$(id)\nE"},
		{"command": "eval git push"}, {"command": "git \"push\" ${A:-$(id)}"}}
	for _, args := range riders {
		if needs(t, e, set, args) == nil {
			t.Errorf("%v runs without being asked for", args)
		}
		attacktest.Held(t, attacktest.Row{Class: "rules for commands", How: "a person is asked", Name: fmt.Sprintf("%q", args)})
	}

	t.Logf("%d commands that must ask", len(riders))
}

// A rule is offered only where it covers exactly the command that is asked about.
func TestRuleIsOfferedOnlyForWhatItCovers(t *testing.T) {
	e, access := asking(t)
	for command, want := range map[string]string{
		"git push origin main": "@exec:git push", "npm run build": "@exec:npm run",
		"./build.sh --fast": "@exec:./build.sh", "sh build.sh x": "@exec:sh build.sh",
		"python3 tool.py": "@exec:python3 tool.py", "git push; id": "", "git push > f": "", "A=b git push": "",
		"git push $A": "", "sh -c id": "", "env git push": "",
		"'git push' x": "", "ls": "", "bash": "", "python3 -c 'import os'": "", "find . -exec id ;": "",
		"xargs ./build.sh": "@exec:xargs ./build.sh",
	} {
		need := needs(t, e, access, a{"command": command})
		if need == nil || need.Prefix != want {
			t.Errorf("%q offers %+v, want %q", command, need, want)
			continue
		}
		if want == "" {
			continue
		}

		set, err := access.Grant(permission.Grant{Tag: need.Prefix, Scripts: need.Scripts})
		if err != nil {
			t.Fatal(err)
		}
		if again := needs(t, e, set, a{"command": command}); again != nil {
			t.Errorf("%q still asks after its rule was given: %+v", command, again)
		}
	}
}

// What was always allowed for a script asks again when the script is another one: as an
// exact command, as a rule, through a link, and inside sh -c.
func TestApprovalOfAScriptEndsWithItsContent(t *testing.T) {
	for _, command := range []string{"sh build.sh", "./build.sh", "bash ./build.sh a", "sh -c ./build.sh",
		"env sh build.sh", "cd . && ./build.sh", "timeout 5 ./build.sh", "sh link.sh"} {
		t.Run(command, func(t *testing.T) {
			e, access := asking(t)
			dir := access.WorkingDir
			if err := os.Symlink("build.sh", filepath.Join(dir, "link.sh")); err != nil {
				t.Fatal(err)
			}
			before := needs(t, e, access, a{"command": command})
			same := needs(t, e, access, a{"command": command})
			if before.SHA256("x") != same.SHA256("x") || len(before.Scripts) == 0 {
				t.Fatalf("the same request is another one, or knows no script: %+v", before)
			}
			if err := os.WriteFile(filepath.Join(dir, "build.sh"), []byte("#!/bin/sh\nrm -rf ~\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if after := needs(t, e, access, a{"command": command}); after.SHA256("x") == before.SHA256("x") {
				t.Error("an approval of the old script holds for the new one")
			}
			if before.Prefix == "" {
				return
			}

			set, err := access.Grant(permission.Grant{Tag: before.Prefix, Scripts: before.Scripts})
			if err != nil {
				t.Fatal(err)
			}
			if needs(t, e, set, a{"command": command}) == nil {
				t.Error("a rule for the old script covers the new one")
			}
		})
	}
}

// A script that cannot be read whole never has the content that was approved, and is
// never waited for.
func TestScriptThatIsNoFileIsNeverCovered(t *testing.T) {
	e, access := asking(t)
	path := filepath.Join(access.WorkingDir, "pipe.sh")
	if err := syscall.Mkfifo(path, 0o700); err != nil {
		t.Fatal(err)
	}
	need := needs(t, e, access, a{"command": "sh pipe.sh"})
	if len(need.Scripts) != 1 || need.Scripts[0].SHA256 != permission.Unreadable {
		t.Fatalf("scripts are %+v", need.Scripts)
	}

	set, err := access.Grant(permission.Grant{Tag: "@exec:sh pipe.sh", Scripts: need.Scripts})
	if err != nil {
		t.Fatal(err)
	}
	if needs(t, e, set, a{"command": "sh pipe.sh"}) == nil {
		t.Error("a pipe counts as the script that was approved")
	}
}

// The card of a command names its folder, what holds it, the resolved program and the
// hash of its script.
func TestCardShowsWhatRuns(t *testing.T) {
	e, access := asking(t)
	need := needs(t, e, access, a{"command": "sh build.sh \u202etxt"})
	card := need.Card()
	for _, want := range []string{"    sh build.sh [U+202E]txt\n", "folder      " + access.WorkingDir,
		"sandbox     landlock", "runs        sh: " + program("sh", "/"),
		"script      " + filepath.Join(access.WorkingDir, "build.sh") + ", sha256 " + need.Scripts[0].SHA256} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q:\n%s", want, card)
		}
	}

	if i := slices.IndexFunc(need.Programs, func(p string) bool { return strings.Contains(p, "shell fills in") }); i >= 0 {
		t.Errorf("a plain command is said to be filled in: %q", need.Programs)
	}
}
