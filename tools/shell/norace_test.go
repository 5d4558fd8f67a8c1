//go:build !race

package shell

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"daycare/engine/attacktest"
	"daycare/tools/shell/sandbox"
)

// Hundreds of attacks, each by processes of its own, one after the other: what starts them is
// tried with the race detector by the tests of the other files. .ci/run runs these without it,
// which makes a sandbox several times as expensive.

// TestEscapes runs the table at each level, as everybody: nothing gets out.
func TestEscapes(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		evil(t, x)
		for _, c := range classes() {
			judge := func(e escape, why, said string) {
				if why != "" {
					t.Errorf("%s: %s", e.name, why)
					return
				}
				attacktest.Held(t, attacktest.Row{Class: c.name, Level: asWhom(level), How: heldBy(said), Name: e.name})
			}
			var together []escape
			for _, e := range c.list {
				if !alone[e.name] {
					together = append(together, e)
					continue
				}
				why, said := x.try(e)
				judge(e, why, said)
			}

			for some := range slices.Chunk(together, 16) {
				x.tryTogether(some, judge)
			}
		}

		t.Logf("%s: %d scripts", level, len(escapes))
	})
}

// Without a sandbox most of the table gets out: a table that nothing passes proves
// something.
func TestEscapesAreReal(t *testing.T) {
	t.Parallel()
	var tried, out atomic.Int32
	held := make(chan string, len(escapes))
	t.Run("each", func(t *testing.T) {
		for _, e := range escapes {
			if e.system {
				continue
			}
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				x := newWorld(t, sandbox.None)
				x.exec.confine.runner = sandbox.Plain("") // no supervisor: it makes no difference here
				evil(t, x)
				tried.Add(1)
				if why, _ := x.try(e); why != "" {
					out.Add(1)
				} else {
					held <- e.name
				}
			})
		}
	})

	close(held)
	var names []string
	for name := range held {
		names = append(names, name)
	}
	t.Logf("without a sandbox %d of %d get out; held: %s", out.Load(), tried.Load(), strings.Join(names, ", "))
	if out.Load() < tried.Load()/2 {
		t.Errorf("only %d of %d scripts get out where nothing holds them: the table proves little", out.Load(), tried.Load())
	}
}

// TestGitOfThePersonRunsNothing: whatever a command leaves behind, the user's
// own git in any folder of the workspace runs no program of it.
func TestGitOfThePersonRunsNothing(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		for name, script := range laterWays {
			x := newWorld(t, level)
			x.repository()
			text := x.sh("cd $W; "+evilGit+script, x.env())
			os.Chmod(filepath.Join(x.w, "sub/u"), 0o755)
			x.usesGit()
			if _, err := os.Lstat(x.o + "/planted"); err == nil {
				t.Errorf("%s: git ran a program of the agent:\n%s", name, text)
				continue
			}
			attacktest.Held(t, attacktest.Row{Class: "git of the person", Level: asWhom(level), How: heldBy(text), Name: name})
		}

		t.Logf("%s: %d ways", level, len(laterWays))
	})
}

// Where nothing watches, most of these ways work: a table that nothing passes proves
// something.
func TestTheWaysByGitAreReal(t *testing.T) {
	t.Parallel()
	works := make(chan string, len(laterWays))
	t.Run("each", func(t *testing.T) {
		for name, script := range laterWays {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				x := newWorld(t, levels[0])
				x.repository()
				x.sh("cd $W; "+evilGit+script, x.env())
				os.Chmod(filepath.Join(x.w, "sub/u"), 0o755)
				x.usesGit()
				if _, err := os.Lstat(x.o + "/planted"); err == nil {
					works <- name
				}
			})
		}
	})

	close(works)
	not := slices.Collect(maps.Keys(laterWays))
	for name := range works {
		not = slices.DeleteFunc(not, func(n string) bool { return n == name })
	}
	worked := len(laterWays) - len(not)
	t.Logf("without a sandbox %d of %d work; not: %s", worked, len(laterWays), strings.Join(not, ", "))
	if worked < len(laterWays)*2/3 {
		t.Errorf("only %d of %d work where nothing holds them", worked, len(laterWays))
	}
}

// TestWhatRunsLaterIsPutAside: what a command makes of the kind is renamed, the model is
// told, and what a right names stays.
func TestWhatRunsLaterIsPutAside(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		if runner, _ := probed[level](); !runner.HasView() {
			os.RemoveAll(filepath.Join(x.w, ".git")) // its folder takes no new entries
			x.access.WorkingDir = filepath.Join(x.w, "sub")
		}
		base := x.access.WorkingDir
		var refused []string
		x.exec.options.Refused = func(_, what string) { refused = append(refused, what) }

		for _, path := range plants {
			path = filepath.Join(base, path)
			text := x.runIn(base, fmt.Sprintf("mkdir -p %s && echo x > %s; true", filepath.Dir(path), path))
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s stayed: %s", path, text)
			}
			if !strings.Contains(text, "request_permission for @write:"+base) {
				t.Errorf("%s: the model is told %s", path, text)
			}
			name, _ := filepath.Rel(base, path)
			attacktest.Held(t, attacktest.Row{Class: "left to run later", Level: asWhom(level), How: "put aside", Name: name})
		}

		if len(refused) != len(plants) {
			t.Errorf("%d were reported of %d: %s", len(refused), len(plants), refused)
		}
		named := filepath.Join(base, "named/.envrc")
		x.access.WriteDirs = append(x.access.WriteDirs, named)
		if text := x.runIn(base, "mkdir -p named && echo x > named/.envrc"); strings.Contains(text, "put aside") || !exists(named) {
			t.Errorf("what a right names: %s", text)
		}
		if text := x.runIn(base, "echo y > named/.envrc && cat named/.envrc"); !strings.Contains(text, "y\n") {
			t.Errorf("what a right names is not written again: %s", text)
		}

		for _, path := range []string{"Makefile", ".env", ".gitignore", ".github/workflows/ci.yml", "src/refs/x",
			"HEAD", "sub/.prettierrc"} {
			path = filepath.Join(base, path)
			if text := x.runIn(base, fmt.Sprintf("mkdir -p %s && echo x > %s", filepath.Dir(path), path)); !exists(path) {
				t.Errorf("%s: %s", path, text)
			}
		}
	})
}

// What the user's own configuration of git names in the workspace is as git's own hooks:
// a command can read it, and neither change it nor make it.
func TestWhatGitsConfigurationNamesIsKept(t *testing.T) {
	const planted = "#!/bin/sh\ntouch $O/planted\n"
	ways := map[string]struct{ config, file string }{
		"folder of hooks":                   {"[core]\n\thooksPath = tools/hooks\n", "tools/hooks/pre-commit"},
		"folder of hooks that is not there": {"[core] hooksPath = later/hooks\n", "later/hooks/pre-commit"},
		"monitor":                           {"[core]\n\tfsmonitor = ./tools/monitor.sh\n", "tools/monitor.sh"},
		"filter":                            {"[filter \"x\"]\n\tclean = sh tools/clean.sh\n", "tools/clean.sh"},
		"diff":                              {"[diff]\n\texternal = \"sh tools/diff.sh\"\n", "tools/diff.sh"},
		"alias":                             {"[alias]\n\tst = !tools/st.sh\n", "tools/st.sh"},
		"included":                          {"[include]\n\tpath = ../tools/gitconfig\n", "tools/gitconfig"},
		"included here":                     {"[includeIf \"gitdir:/\"]\n\tpath = ../gitsettings\n", "gitsettings"},
	}
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		for name, way := range ways {
			for _, there := range []bool{true, false} {
				x := newWorld(t, level)
				x.repository()
				path := filepath.Join(x.w, way.file)
				if there {
					os.MkdirAll(filepath.Dir(path), 0o755)
					os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o755)
				}

				config, err := os.OpenFile(x.w+"/.git/config", os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				config.WriteString(way.config)
				config.Close()
				os.WriteFile(x.w+"/.git/info/attributes", []byte("* filter=x\n"), 0o644)
				text := planted
				if strings.Contains(way.file, "git") {
					text = "[core]\n\tfsmonitor = touch $O/planted\n"
				}
				if !there && !strings.Contains(way.config, "Path") && !strings.Contains(way.config, "path") {
					continue // a program that was never there is a mistake of the user's
				}

				said := x.sh(`cd $W; mkdir -p $(dirname $F); printf "$T" > $F.new; chmod 755 $F.new; mv $F.new $F; cp $F.new $F; echo `+
					`more >> main.go`,
					withEnv(x.env(), "F", way.file, "T", strings.ReplaceAll(strings.ReplaceAll(text, "$O", x.o), "%", "%%")))
				x.usesGit()
				x.git(x.w, "st")
				if exists(x.o + "/planted") {
					t.Errorf("%s, there %v: git ran a program of the agent:\n%s", name, there, said)
				}

				attacktest.Held(t, attacktest.Row{Class: "git of the person", Level: asWhom(level), How: heldBy(said),
					Name: fmt.Sprintf("named by the configuration: %s, there %v", name, there)})
			}
		}
	})
}
