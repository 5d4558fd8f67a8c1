//go:build !race

package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
		triedTogether(t, level, func(name string, worked bool, said string) {
			if worked {
				t.Errorf("%s: git ran a program of the agent:\n%s", name, said)
				return
			}
			attacktest.Held(t, attacktest.Row{Class: "git of the person", Level: asWhom(level), How: heldBy(said), Name: name})
		})

		t.Logf("%s: %d ways", level, len(laterWays))
	})
}

// Where nothing watches, most of these ways work: a table that nothing passes proves
// something.
func TestTheWaysByGitAreReal(t *testing.T) {
	t.Parallel()
	var not []string
	triedTogether(t, levels[0], func(name string, worked bool, _ string) {
		if !worked {
			not = append(not, name)
		}
	})
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

		for some := range slices.Chunk(plants, maxHeld) {
			text := x.runIn(base, making(base, some))
			if told := strings.Count(text, "request_permission for @write:"+base); told != len(some) {
				t.Errorf("of %s the model reads %d: %s", some, told, text)
			}

			for _, path := range some {
				if _, err := os.Lstat(filepath.Join(base, path)); err == nil {
					t.Errorf("%s stayed: %s", path, text)
					continue
				}
				attacktest.Held(t, attacktest.Row{Class: "left to run later", Level: asWhom(level), How: "put aside", Name: path})
			}
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

		usual := []string{"Makefile", ".env", ".gitignore", ".github/workflows/ci.yml", "src/refs/x", "HEAD", "sub/.prettierrc"}
		text := x.runIn(base, making(base, usual))
		for _, path := range usual {
			if !exists(filepath.Join(base, path)) {
				t.Errorf("%s: %s", path, text)
			}
		}
	})
}

// making is a script that makes files in a folder.
func making(base string, paths []string) (script string) {
	for _, path := range paths {
		path = filepath.Join(base, path)
		script += fmt.Sprintf("mkdir -p %s; echo x > %s\n", filepath.Dir(path), path)
	}
	return script
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
		x := newWorld(t, level)
		var names, scripts []string
		var all []*world
		for name, way := range ways {
			for _, there := range []bool{true, false} {
				if !there && !strings.Contains(way.config, "Path") && !strings.Contains(way.config, "path") {
					continue // a program that was never there is a mistake of the user's
				}
				y := x.another()
				y.configure(way.config, way.file, there)
				text := planted
				if strings.Contains(way.file, "git") {
					text = "[core]\n\tfsmonitor = touch $O/planted\n"
				}
				text = strings.ReplaceAll(strings.ReplaceAll(text, "$O", y.o), "%", "%%")
				names, all = append(names, fmt.Sprintf("%s, there %v", name, there)), append(all, y)
				scripts = append(scripts, fmt.Sprintf(`cd %s; F=%s; T='%s'; mkdir -p $(dirname $F); printf "$T" > $F.new; chmod 755 `+
					`$F.new; mv $F.new $F; cp $F.new $F; echo more >> main.go`, y.w, way.file, text))
			}
		}

		said, after := x.together(scripts)
		for i, y := range all {
			if _, ended := said[i]; !ended {
				t.Errorf("%s was not run to its end", names[i])
			}
			y.usesGit()
			y.git(y.w, "st")
			how := said[i] + about(y.w, after)
			if exists(y.o + "/planted") {
				t.Errorf("%s: git ran a program of the agent:\n%s", names[i], how)
			}

			attacktest.Held(t, attacktest.Row{Class: "git of the person", Level: asWhom(level), How: heldBy(how),
				Name: "named by the configuration: " + names[i]})
		}
	})
}

// configure adds to the configuration of the repository, and makes the file that this names if it is to be there.
func (x *world) configure(text, file string, there bool) {
	x.t.Helper()
	if path := filepath.Join(x.w, file); there {
		write(x.t, map[string]string{path: "#!/bin/sh\nexit 0\n"})
		os.Chmod(path, 0o755)
	}
	config, err := os.OpenFile(x.w+"/.git/config", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	config.WriteString(text)
	config.Close()
	write(x.t, map[string]string{x.w + "/.git/info/attributes": "* filter=x\n"})
}

// TestGitWorksInTheSandbox: status, add, commit, init and clone need no approval, and
// what they made stays.
func TestGitWorksInTheSandbox(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		x.repository()
		if runner, _ := probed[level](); !runner.HasView() {
			t.Skip("without namespaces commits do not work: docs/sandbox.md")
		}
		asked := 0
		for _, script := range []string{
			`git status --short`, `echo y > new && git add -A && git commit -q -m second && git log --oneline | grep second`,
			`git checkout -q -b topic && git stash list && git tag v1 && git branch -a | grep topic && git checkout -q -`,
			`git init -q sub/n && git -C sub/n commit -q --allow-empty -m x`,
			`git -C sub/n commit -q --allow-empty -m y && git -C sub/n log --oneline | grep y`,
			`git clone -q . sub/clone && git -C sub/clone log --oneline | grep second`,
			`git -C sub/clone status && git rm -q --cached new && git reset -q`,
			`git gc -q && git merge -q topic && git rebase -q topic`,
			`git -c sequence.editor="sed -i 1ibreak" rebase -q -i HEAD~1`, `git status | grep "rebase in progress"`,
			`git rebase --continue && git log --oneline | grep second`,
		} {
			env := x.env()
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env["GIT_"+who+"_NAME"], env["GIT_"+who+"_EMAIL"] = "x", "x@example.com"
			}
			call := newCall(t, x.access, a{"command": script, "env": env, "workdir": x.w})
			if need, err := x.exec.Needs(call); need != nil || err != nil {
				asked++
				t.Errorf("%s needs %+v %v", script, need, err)
			}
			if res := run(t, t.Context(), x.exec, call); res.Status != "" || strings.Contains(res.Text, "put aside") {
				t.Errorf("%s:\n%s", script, res.Text)
			}
		}

		// Git writes its configuration anew whenever it meets a repository, also where nothing
		// changes; that is refused, and the model reads what to do.
		text := x.runIn(x.w, "git init -q sub/n && echo again")
		if !strings.Contains(text, "needs no git init") || strings.Contains(text, "again\n") {
			t.Errorf("a second git init: %s", text)
		}
		if out := x.git(x.w, "log", "--oneline"); !strings.Contains(out, "second") {
			t.Errorf("the person does not see the commit: %s", out)
		}

		t.Logf("%s: %d approvals", level, asked)
	})
}

// What exists of the kind is only read, and secrets and data of daycare are not seen.
func TestWhatIsThereOfTheKindIsKept(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		for path, text := range map[string]string{"sub/.vscode/tasks.json": "ok", "sub/.envrc": "ok",
			"deep/er/.daycare/settings.yaml": "canary-data", "deep/.aws/credentials": "canary-key",
			"deep/er/AGENTS.md": "ok", "deep/.netrc": "canary-key"} {
			path = filepath.Join(x.w, path)
			os.MkdirAll(filepath.Dir(path), 0o755)
			os.WriteFile(path, []byte(text), 0o644)
		}

		for _, script := range []string{
			`echo ESC""APED > sub/.envrc; mv sub/.envrc sub/e; rm -f sub/.envrc; cat sub/.envrc | grep ESC`,
			`mv sub/.vscode sub/v && echo ESC""APED; mv sub sub2 && echo ESC""APED`,
			`echo bad > deep/er/AGENTS.md; cat deep/er/AGENTS.md | grep bad && echo ESC""APED`,
			`cat deep/er/.daycare/settings.yaml; cat deep/.aws/credentials deep/.netrc`,
			`grep -r canary . ; find . -name settings.yaml -exec cat {} +`,
			`ln -s er/.daycare deep/d; cat deep/d/settings.yaml; mv deep/er deep/er2 && cat deep/er2/.daycare/settings.yaml`,
			`test "$(cat sub/.vscode/tasks.json sub/.envrc deep/er/AGENTS.md | tr -d '\n')" = okokok || echo ESC""APED: it cannot be read`,
		} {
			if why := printed(x.runIn(x.w, script)); why != "" {
				t.Errorf("%s: %s", script, why)
			}
		}
	})
}

// A link cannot be held in its place, so it is looked at again: what came in its place is
// put aside.
func TestLinkOfTheKindThatIsReplaced(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		x.repository()
		for path, target := range map[string]string{"sub/.envrc": "env", "sub/t/.git": "../../.git", "sub/AGENTS.md": "nothing"} {
			os.MkdirAll(filepath.Dir(filepath.Join(x.w, path)), 0o755)
			if err := os.Symlink(target, filepath.Join(x.w, path)); err != nil {
				t.Fatal(err)
			}
		}

		if err := os.Symlink(x.o+"/secret", filepath.Join(x.w, "sub", ".vimrc")); err != nil {
			t.Fatal(err)
		}
		if why := printed(x.runIn(x.w, "cat sub/.vimrc $O/secret")); why != "" {
			t.Errorf("%s: a link of the kind that leads out: %s", level, why)
		}

		for _, path := range []string{"sub/.envrc", "sub/t/.git", "sub/AGENTS.md"} {
			if !exists(filepath.Join(x.w, path)) {
				t.Errorf("%s: %s is the person's, and was put aside", level, path)
			}
		}
		text := x.sh("cd $W; "+evilGit+`rm sub/.envrc && echo bad > sub/.envrc; rm sub/t/.git && evil sub/t/.git; ln -sfn /bad `+
			`sub/AGENTS.md`, x.env())
		for _, path := range []string{"sub/.envrc", "sub/t/.git", "sub/AGENTS.md"} {
			if target, err := os.Readlink(filepath.Join(x.w, path)); err == nil && target == "/bad" ||
				err != nil && exists(filepath.Join(x.w, path)) {
				t.Errorf("%s: %s stayed:\n%s", level, path, text)
			}
		}

		x.usesGit()
		if exists(x.o + "/planted") {
			t.Errorf("%s: git ran a program of the agent", level)
		}
	})
}

// TestKilledDaemonLeavesNothing: kill -9 of the daemon ends its commands, and its services.
func TestKilledDaemonLeavesNothing(t *testing.T) {
	t.Parallel()
	t.Run("commands", func(t *testing.T) { killedDaemon(t, "", 300_000) })
	t.Run("services", func(t *testing.T) { killedDaemon(t, "service:", 400_000) })
	attacktest.AsUser(t)
}

func killedDaemon(t *testing.T, how string, first int) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			held(t, level) // skips
			mark := fmt.Sprintf("%d.%d", first+i, os.Getpid())
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			script := strings.ReplaceAll(`trap '' TERM; setsid env -i sleep MARK & (sleep MARK &); sleep MARK`, "MARK", mark)
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), daemonEnv+"="+strings.Join([]string{string(level), dir, how + script}, "|"))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(time.Minute); len(survivors("sleep\x00"+mark)) < 3; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the command does not run")
				}
			}
			cmd.Process.Kill()
			cmd.Wait()
			none(t, "sleep\x00"+mark, 7*time.Second)
		})
	}
}
