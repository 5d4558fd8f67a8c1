package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"daycare/tools/shell/sandbox"
)

// git runs git as the user does, with a home of his own.
func (x *world) git(dir string, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + x.h, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_SYSTEM=" + x.gitSystem(), "GIT_AUTHOR_NAME=p",
		"GIT_AUTHOR_EMAIL=p@example.com",
		"GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@example.com"}
	out, _ := cmd.CombinedOutput() // many of them fail: there is no repository, or a broken one
	return string(out)
}

// gitSystem is the configuration of the user's git that every other one comes before.
func (x *world) gitSystem() string { return filepath.Join(x.root, "gitconfig") }

// firstCommit is the .git of a world in which everything is committed. All worlds begin
// alike, so that git makes it once, in few files: ext4 makes one in a multiple of the usual time where many were just removed.
var firstCommit struct {
	sync.Once
	git fstest.MapFS
}

// repository makes the workspace a real one.
func (x *world) repository() {
	x.t.Helper()
	git := filepath.Join(x.w, ".git")
	if err := errors.Join(os.RemoveAll(git), os.WriteFile(filepath.Join(x.w, ".gitignore"), []byte(".daycare/\n"), 0o644)); err != nil {
		x.t.Fatal(err)
	}
	firstCommit.Do(func() {
		x.git(x.w, "init", "-q")
		x.git(x.w, "add", "-A")
		if out := x.git(x.w, "commit", "-q", "-m", "first"); x.git(x.w, "log", "--oneline") == "" {
			x.t.Fatal(out)
		}
		x.git(x.w, "repack", "-a", "-d", "-q")
		samples, _ := filepath.Glob(git + "/hooks/*.sample")
		for _, sample := range samples[min(1, len(samples)):] {
			os.Remove(sample)
		}
		firstCommit.git = x.read(git)
		os.RemoveAll(git)
	})

	if err := os.CopyFS(git, firstCommit.git); err != nil {
		x.t.Fatal(err)
	}
	x.before = x.state()
}

// read is what a folder has in it.
func (x *world) read(dir string) fstest.MapFS {
	x.t.Helper()
	all := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}

		name, file := strings.TrimPrefix(path, dir+"/"), &fstest.MapFile{Mode: info.Mode()}
		if info.Mode().IsRegular() {
			file.Data, err = os.ReadFile(path)
		}
		all[name] = file
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}

	return all
}

// usesGit has the user use git everywhere in the workspace.
func (x *world) usesGit() {
	var dirs []string
	filepath.WalkDir(x.w, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			switch e.Name() {
			case "hooks", "info", "logs", "branches", "refs", "pack", ".daycare":
				return fs.SkipDir
			}
			if objects(path) {
				return fs.SkipDir // for git it is as the folder above
			}
			if path == x.w || found(path) {
				dirs = append(dirs, path)
			}
		}

		return nil
	})

	for _, dir := range dirs {
		x.git(dir, "status")
	}
	x.git(x.w, "diff")
	if x.halfway() {
		x.git(x.w, "rebase", "--continue")
		x.git(x.w, "cherry-pick", "--continue")
	}
	x.git(x.w, "add", "-A")
	x.git(x.w, "commit", "-q", "-m", "more")
}

// halfway reports whether something says that git has begun what is to be continued: without it, git reads what it reads
// for its status, and ends.
func (x *world) halfway() (is bool) {
	for _, dir := range []string{x.w, filepath.Join(x.root, "cmdhome")} {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch strings.ToLower(filepath.Base(path)) {
			case "rebase-merge", "rebase-apply", "sequencer", "cherry_pick_head":
				is = true
				return fs.SkipAll
			}
			return nil
		})
	}

	return is
}

// found reports whether git may find a repository in a folder: it has a .git, or is one itself,
// with a HEAD. Any other folder is to git as the one above it, in which it looks next.
func found(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.EqualFold(e.Name(), ".git") || strings.EqualFold(e.Name(), "HEAD")
	})
}

// objects reports whether a folder has loose objects of git in it, and nothing else.
func objects(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !e.Type().IsRegular() || !objectName.MatchString(e.Name())
	})
}

var objectName = regexp.MustCompile(`^[0-9a-f]{38}$`)

// evilConfig is a git configuration that runs something, made by the script's $E.
const evilGit = `E='touch $O/planted'; E=$(eval echo "$E")
evil() { mkdir -p $1/objects $1/refs/heads $1/info; echo 'ref: refs/heads/main' > $1/HEAD; printf ` +
	`'[core]\n\trepositoryformatversion = 0\n\tbare = %s\n\tfsmonitor = "%s"\n' "${2:-false}" "$E" > $1/config; }
`

// laterWays are ways to have the user's own use of git run a program of the agent.
var laterWays = map[string]string{
	"commondir":                     `evil sub/c; echo ../sub/c > .git/commondir`,
	"gitdir file":                   `evil sub/g; mkdir -p sub/t; echo 'gitdir: ../g' > sub/t/.git`,
	"gitdir file out of the way":    `evil $HOME/g; echo "gitdir: $HOME/g" > sub/.git`,
	"gitdir file for the workspace": `evil sub/g; mv .git sub/old; rm -rf .git; echo 'gitdir: sub/g' > .git`,
	"worktree": `evil sub/g; mkdir -p .git/worktrees/w sub/t; echo ../../../sub/g > .git/worktrees/w/commondir; ` +
		`echo ref: refs/heads/main > .git/worktrees/w/HEAD; echo "gitdir: $W/.git/worktrees/w" > sub/t/.git`,
	"worktree, by git": `git worktree add -q sub/t; git -C sub/t config --worktree core.fsmonitor "$E"; git -C sub/t ` +
		`config core.fsmonitor "$E"`,
	"configuration of the worktree": `git config extensions.worktreeConfig true; printf '[core]\n\tfsmonitor = "%s"\n' "$E" > ` +
		`.git/config.worktree`,
	"submodule": `mkdir sub/m; git init -q sub/m; git -C sub/m -c user.name=x -c user.email=x commit -q ` +
		`--allow-empty -m x; git add sub/m; git -C sub/m config core.fsmonitor "$E"`,
	"submodule, absorbed":             `evil .git/modules/m; mkdir sub/m; echo 'gitdir: ../../.git/modules/m' > sub/m/.git; git add -A`,
	"git init":                        `git init -q sub/n; git -C sub/n config core.fsmonitor "$E"`,
	"git init in the workspace's way": `git init -q --template=sub . ; git config core.fsmonitor "$E"`,
	"hook of a new repository": `git init -q sub/n; printf '#!/bin/sh\n%s\n' "$E" > sub/n/.git/hooks/post-index-change; chmod +x ` +
		`sub/n/.git/hooks/post-index-change; echo x > sub/n/f`,
	"hook by template": `mkdir -p sub/tpl/hooks; printf '#!/bin/sh\n%s\n' "$E" > sub/tpl/hooks/post-index-change; chmod +x ` +
		`sub/tpl/hooks/*; git init -q --template=sub/tpl sub/n; echo x > sub/n/f`,
	"bare folder":                  `evil sub/bare true`,
	"bare folder with a work tree": `evil sub/bare; printf '\tworktree = ..\n' >> sub/bare/config`,
	"bare folder, by commondir":    `evil sub/c true; mkdir sub/b; cp sub/c/HEAD sub/b; echo ../c > sub/b/commondir`,
	"bare folder in other letters": `evil sub/bare true; mkdir sub/b2; evil sub/b2/x true; mv sub/b2/x/* sub/b2`,
	"two folders down":             `mkdir -p sub/a/b; evil sub/a/b/.git`,
	"ten folders down":             `mkdir -p sub/1/2/3/4/5/6/7/8/9; evil sub/1/2/3/4/5/6/7/8/9/.git`,
	"in node_modules":              `mkdir -p sub/node_modules/x; evil sub/node_modules/x/.git`,
	"link":                         `evil sub/g; mkdir sub/t; ln -s ../g sub/t/.git`,
	"link to a link":               `evil sub/g; mkdir sub/t; ln -s g sub/g2; ln -s ../g2 sub/t/.git`,
	"renamed":                      `evil sub/x; mkdir sub/t; mv sub/x sub/t/.git`,
	"renamed folder above":         `mkdir -p sub/x/y; evil sub/x/y/.git; mv sub/x sub/z`,
	"unpacked":                     `evil $HOME/p/.git; tar cf $HOME/p.tar -C $HOME p; tar xf $HOME/p.tar -C sub`,
	"copied with links":            `evil sub/q; cp -rl sub/q sub/.git 2>/dev/null || cp -r sub/q sub/.git`,
	"included": `git init -q sub/n; printf '[core]\n\tfsmonitor = "%s"\n' "$E" > sub/inc; printf ` +
		`'[include]\n\tpath = ../../inc\n' >> sub/n/.git/config`,
	"section and setting in a line": `git init -q sub/n; printf '[core] fsmonitor = "%s"\n' "$E" >> sub/n/.git/config`,
	"continued line": `git init -q sub/n; printf '[user]\n\tname = x\\\n\n[core]\n\tfsmonitor = "%s"\n' "$E" >> ` +
		`sub/n/.git/config`,
	"comment that ends":      `git init -q sub/n; printf '# x\r[core]\n\tfsmonitor = "%s"\n' "$E" >> sub/n/.git/config`,
	"letters of the section": `git init -q sub/n; printf '[CoRe]\n\tFsMonitor = "%s"\n' "$E" >> sub/n/.git/config`,
	"external transport": `git init -q sub/n; printf '[remote "origin"]\n\turl = ext::sh -c "%s"\n[protocol]\n\tallow = ` +
		`always\n' "$E" >> sub/n/.git/config`,
	"hooks elsewhere": `git init -q sub/n; mkdir sub/hk; printf '#!/bin/sh\n%s\n' "$E" > sub/hk/post-index-change; chmod ` +
		`+x sub/hk/*; git -C sub/n config core.hooksPath ../hk; echo x > sub/n/f`,
	"rebase to go on with": `git -c user.name=x -c user.email=x@x -c sequence.editor="printf 'break\nexec %s\n' '$E' >" rebase ` +
		`-q -i --root`,
	"rebase that stopped, extended": `git -c user.name=x -c user.email=x@x -c sequence.editor="echo break >" rebase -q -i --root; echo ` +
		`"x $E" >> .git/rebase-merge/git-rebase-todo`,
	"existing hook": `printf '#!/bin/sh\n%s\n' "$E" > .git/hooks/post-index-change; chmod +x ` +
		`.git/hooks/post-index-change; echo x > sub/f`,
	"existing configuration": `git config core.fsmonitor "$E"; printf '[core]\n\tfsmonitor = "%s"\n' "$E" >> .git/config`,
	"configuration replaced": `cp .git/config sub/cfg; printf '[core]\n\tfsmonitor = "%s"\n' "$E" >> sub/cfg; mv sub/cfg ` +
		`.git/config; rm -f .git/config; cp sub/cfg .git/config`,
	"other repository in its place": `evil sub/g; mv .git sub/o && mv sub/g .git`,
	"two at once":                   `evil sub/a/.git; evil sub/b/.git; evil sub/b/.git/x/.git`,
	"left behind by a process":      `(setsid sh -c "sleep 0.2; mkdir -p $W/sub/l" &); evil sub/l/.git; sleep 0.3`,
	"in the folder of another":      `mkdir -p .git/objects/x; evil .git/objects/x/.git; evil .git/y/.git`,
	"in a bare folder":              `git init -q --bare sub/b; evil sub/b/x/.git; evil sub/b/objects/x/.git`,
	"in what is put aside":          `mkdir sub/.vscode; evil sub/.vscode/x/.git; evil sub/z/.git; evil sub/z/.git/.git/.git/.git`,
	"folder that cannot be read":    `mkdir -p sub/u; evil sub/u/.git; chmod 0 sub/u 2>/dev/null; true`,
}

// triedTogether runs laterWays at a level, several in one command, each in a workspace and with an outside of its own. Then
// the user uses git in each of these. It calls judge for each.
func triedTogether(t *testing.T, level sandbox.Level, judge func(name string, worked bool, said string)) {
	t.Helper()
	for names := range slices.Chunk(slices.Sorted(maps.Keys(laterWays)), 11) {
		x := newWorld(t, level)
		var all []*world
		var scripts []string
		for _, name := range names {
			y := x.another()
			all = append(all, y)
			scripts = append(scripts, fmt.Sprintf("W=%s O=%s; cd $W; ", y.w, y.o)+evilGit+laterWays[name])
		}

		said, after := x.together(scripts)
		for i, y := range all {
			if _, ended := said[i]; !ended {
				t.Errorf("%s was not run to its end", names[i])
			}
			os.Chmod(filepath.Join(y.w, "sub/u"), 0o755)
			y.usesGit()
			judge(names[i], exists(y.o+"/planted"), said[i]+about(y.w, after))
		}
	}
}

// about is what lines say of what is in a folder.
func about(dir, lines string) (text string) {
	for line := range strings.Lines(lines) {
		if strings.Contains(line, dir+"/") {
			text += line
		}
	}
	return text
}

// TestWorkspaceBecomesARepository: a workspace that is none must not become one that
// needs no .git, and one that is stays as it was.
func TestWorkspaceBecomesARepository(t *testing.T) {
	t.Parallel()
	for _, level := range sandboxed {
		x := newWorld(t, level)
		x.w = filepath.Join(x.w, "sub")
		x.access.WorkingDir = x.w
		for range 2 {
			x.sh("cd $W; "+evilGit+`evil . true`, x.env())
			x.git(x.w, "status")
			if _, err := os.Lstat(x.o + "/planted"); err == nil {
				t.Fatalf("%s: git ran a program of the agent", level)
			}
		}

		x.git(x.w, "init", "-q", "--bare", "mine.git")
		x.access.WorkingDir = filepath.Join(x.w, "mine.git")
		x.runIn(x.access.WorkingDir, `git config core.fsmonitor "touch `+x.o+`/planted"; echo '[core]' >> config; touch hooks/pre-receive`)
		if out := x.git(x.access.WorkingDir, "config", "-l", "--local"); strings.Contains(out, "fsmonitor") ||
			exists(x.access.WorkingDir+"/hooks/pre-receive") {
			t.Errorf("%s: the configuration was changed: %s", level, out)
		}
	}
}

// plants are what programs of the user run or obey, made by a command.
var plants = []string{".envrc", "sub/.envrc", ".vscode/tasks.json", "sub/deep/.vscode/settings.json", ".idea/x.xml",
	".vimrc", ".npmrc", "sub/.npmrc", "pip.conf",
	".cargo/config.toml", "AGENTS.md", "sub/CLAUDE.md", ".agents/skills/x/SKILL.md", ".claude/settings.json",
	".mcp.json", ".husky/pre-commit", ".pre-commit-config.yaml",
	".hg/hgrc", ".gdbinit", ".dir-locals.el", ".tmux.conf", "sub/.daycare/settings.yaml", "sub/.DAYCARE/settings.yaml", ".ENVRC",
	".helix/languages.toml", "sub/coc-settings.json", ".pdbrc", ".ghci", ".octaverc", ".RData",
	"sub/jupyter_server_config.py", "sitecustomize.py", ".github/copilot-instructions.md",
	"opencode.json", ".rules", ".kiro/steering/x.md", ".jvmopts", "mise.local.toml", ".sl/config",
	"_darcs/prefs/defaults", ".v\u017fcode/tasks.json", ".gdbinit.d/../.lldbinit",
	"sub/.zed/tasks.json", ".exrc", ".nvim.lua", ".devcontainer/devcontainer.json", ".yarnrc.yml", ".pnpmfile.cjs",
	".yarn/releases/yarn.cjs", "rust-toolchain.toml", "x.code-workspace", ".latexmkrc", ".github/instructions/a.instructions.md",
	".bundle/config", ".mvn/jvm.config", ".cursor/rules/x.mdc", "GEMINI.md"}

// TestManyThingsPutAsideAreCounted: a command that makes thousands fills neither the log nor
// the conversation.
func TestManyThingsPutAsideAreCounted(t *testing.T) {
	t.Parallel()
	x := newWorld(t, sandbox.Landlock)
	var refused []string
	x.exec.options.Refused = func(_, what string) { refused = append(refused, what) }
	text := x.runIn(x.w, "cd sub; mkdir -p $(seq -f m/%g 300); for d in m/*; do echo x > $d/.envrc; done; echo end")
	if left, err := filepath.Glob(filepath.Join(x.w, "sub/m/*/.envrc")); err != nil || len(left) > 0 {
		t.Errorf("%d stayed, %v", len(left), err)
	}
	if len(refused) != maxHeld+1 || !strings.Contains(text, "[280 more were put aside") || strings.Count(text, ".envrc.held") != maxHeld {
		t.Errorf("%d were reported, and the model reads %s", len(refused), text)
	}
}

func (x *world) runIn(dir, script string) string {
	x.t.Helper()
	return run(x.t, x.t.Context(), x.exec, newCall(x.t, x.access, a{"command": script, "workdir": dir})).Text
}
