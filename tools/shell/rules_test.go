package shell

import (
	"fmt"
	"testing"

	"daycare/engine/attacktest"
	"daycare/engine/permission"
	"daycare/tools/shell/sandbox"
)

func TestRulesHoldForEverySegment(t *testing.T) {
	set := permission.Set{Exec: []string{"git status", "git log", "ls", "grep", "FOO=1 make all"}}
	for command, want := range map[string]bool{
		"git status": true, "git status --short": true, "git   status": true, `git "status"`: true, "ls -la && git log -3": true,
		"git log | grep 'a (b); c'": true, "ls; ls": true, "(ls)": true, "if ls; then git status; fi": true, "ls 2>/dev/null": true,
		"ls 2>&1 >/dev/null": true, "grep x <<< y": true, "grep x < file": true, "ls &": true, "! ls": true,
		"FOO=1 make all": true, " ls ": true,
		"git push": false, "git": false, "lsof": false, "git status; rm -rf x": false, "git status && git push": false, "ls | sh": false,
		"ls $(rm x)": false, "ls `rm x`": false, "ls > file": false, "ls >> file": false, "ls $HOME": false,
		"A=b ls": false, "ls <(rm x)": false,
		"ls() { rm x; }; ls": false, "grep x <<< $(rm x)": false, "ls *": false, "git \\status": false, "l''s": true,
		"$'ls'": false, "export A=b; ls": false,
		"ls\nrm x": false, "ls; rm x #": false, "while ls; do ls; done": true, "case a in b) ls;; esac": true, "time -p ls": true,
		"for f in a b; do ls; done": false, "for PATH in evil; do ls; done": false, "select PATH in evil; do ls; done": false,
		"for ((;;)); do ls; done": false, "ls; [[ 'x[$(rm x)]' -eq 0 ]]": false, "[[ -v 'x[$(rm x)]' ]] || ls": false,
		"{ ls; } {PATH}</dev/null": false, "ls {x}>&2": false, "ls 2<&1": true,
		"ls\r": false, "ls\rx": false, "ls \r\n": false, "ls\u00a0": false, "\u0085ls": false, "ls\f": false, "\n\tls \n": true,
		"for f in $(rm x); do ls; done": false, "eval ls": false, "ls |& sh": false,
		"coproc ls": false, "((x=1)); ls": false, "ls ~root": false, "": false, "ls (": false,
		"case $x in a) rm x;; esac; ls": false, "ls {a,b}": false,
	} {
		if got := granted(set, arguments{Command: command}, resolve(command, "/", set)); got != want {
			t.Errorf("%q: allowed %v, want %v", command, got, want)
		}
		if !want {
			attacktest.Held(t, attacktest.Row{Class: "rules for commands", How: "a person is asked", Name: fmt.Sprintf("%q", command)})
		}
	}

	if granted(set, arguments{Command: "ls", Env: map[string]string{"LD_PRELOAD": "x"}}, resolve("ls", "/", set)) {
		t.Error("a variable can make any program another one")
	}
}

// A rule for a program is none to write files with it, however the shell spells that.
func TestRedirectToAFileIsAsked(t *testing.T) {
	set := permission.Set{Exec: []string{"echo", "cat"}}
	for command, want := range map[string]bool{
		"echo x": true, "echo x >&2": true, "echo x 2>&1": true, "echo x 2>&-": true, "echo x 3>&1-": true,
		"cat <&0": true, "echo x > /dev/null": true,
		"echo x >&file": false, "echo x 1>&file": false, "echo x >& file": false, "echo x >&'file'": false,
		`echo x >&"2 "`: false, "echo x &>file": false,
		"echo x &>>file": false, "echo x >|file": false, "echo x 1<>file": false, "echo x <>file": false,
		"echo x {a}>file": false, "{ echo x; } >&file": false,
		"(echo x) >file": false, "echo x >&2file": false, "echo x >&$a": false, "echo x >&~/file": false,
		"if echo x; then echo y; fi >& file": false,
		"cat </dev/tcp/127.0.0.1/80":         false, "echo x >/dev/tcp/127.0.0.1/80": false,
	} {
		if got := granted(set, arguments{Command: command}, resolve(command, "/", set)); got != want {
			t.Errorf("%q: allowed %v, want %v", command, got, want)
		}
		if !want {
			attacktest.Held(t, attacktest.Row{Class: "rules for commands", How: "a person is asked", Name: fmt.Sprintf("%q", command)})
		}
	}
}

func TestAskNamesTheSegmentThatNoRuleCovers(t *testing.T) {
	e, _, _ := held(t, sandbox.Landlock)
	e.options.Mode = Ask
	access := workspace(t)
	access.Exec = []string{"git status", "git"}

	for command, want := range map[string]string{
		"git status; npm publish --tag x | tee log": "@exec:npm publish",
		"git push": "", "curl x | sh": "@exec:curl x", "git log $(rm x)": "@exec:rm x",
	} {
		need, err := e.Needs(newCall(t, access, a{"command": command}))
		switch {
		case err != nil:
			t.Error(err)
		case want == "" && need != nil, want != "" && (need == nil || need.Tag != want):
			t.Errorf("%q needs %+v, want %q", command, need, want)
		}
	}

	need, err := e.Needs(newCall(t, access, a{"command": "git log > $(mktemp)"}))
	if err != nil || need == nil {
		t.Fatalf("needs %+v %v", need, err)
	}
	if need.Reason != "run commands: git log, mktemp" {
		t.Errorf("the person is told %q", need.Reason)
	}
}

func FuzzSegments(f *testing.F) {
	for _, s := range []string{"ls", "a | b && c", "x $(y) `z`", "cat <<E\n$(a)\nE", "'", "${a:-$(b)}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		list, plain := segments(command)
		if plain && len(list) == 0 {
			t.Error("plain, and nothing in it")
		}
		what := resolve(command, "/", permission.Set{})
		granted(permission.Set{Exec: []string{"ls"}}, arguments{Command: command}, what)
		if _, err := permission.Parse(permission.Exec{Prefix: asks(permission.Set{}, command, what)}.Tag()); err != nil {
			t.Errorf("%q: %v", command, err)
		}
	})
}
