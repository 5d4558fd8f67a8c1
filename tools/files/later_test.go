package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/attacktest"
	"daycare/engine/permission"
	"daycare/tools"
)

// laterPaths are what a program of the user runs or obeys later, by who does.
var laterPaths = map[string][]string{
	"git": {".git", ".git/commondir", ".git/info/attributes", ".git/modules/x/config", "sub/.git", "sub/.git/HEAD",
		"sub/deep/er/.git/config.worktree",
		".git/worktrees/w/gitdir", "bare/HEAD", "bare.git/HEAD", "there.git/objects/x", "there.git/refs/heads/x",
		"there.git/config", "there.git/hooks/post-checkout",
		"there.git/commondir", "there.git/modules/m/config", ".GIT/commondir", ".husky/pre-commit", ".githooks/x",
		".pre-commit-config.yaml", "a/lefthook.yml", ".hg/hgrc", ".sl/config", ".pijul/config", "_darcs/prefs/defaults"},
	"shell": {".envrc", "sub/.envrc", ".mise.toml", ".profile", "dotfiles/.zshrc", ".tmux.conf", "mise.local.toml", ".autoenv", ".xonshrc"},
	"editor": {".vscode/tasks.json", "sub/.vscode/settings.json", ".VSCode/tasks.json", ".idea/workspace.xml", ".vimrc",
		".exrc", ".dir-locals.el", ".devcontainer/devcontainer.json", ".gdbinit",
		".vim/coc-settings.json", ".nvim/x.lua", ".helix/languages.toml", ".kateproject", ".theia/tasks.json",
		".externalToolBuilders/x.launch", ".pdbrc", ".perldb", ".radare2rc", ".v\u017fcode/tasks.json"},
	"prompt": {".ghci", ".ocamlinit", ".iex.exs", ".erlang", ".octaverc", ".Rprofile", ".RData", ".Renviron",
		".byebugrc", ".rdbgrc", "ipython_config.py",
		"jupyter_notebook_config.py", "sub/jupyter_server_config.py", "sitecustomize.py", "usercustomize.py"},
	"package": {".npmrc", "sub/.npmrc", ".yarnrc.yml", "pip.conf", ".cargo/config.toml", ".pnpmfile.cjs",
		".bundle/config", ".jvmopts", ".sbtopts"},
	"agents": {"AGENTS.md", "sub/agents.md", "CLAUDE.md", ".agents/skills/x/SKILL.md", ".claude/settings.json",
		".cursor/rules/x.mdc", ".mcp.json",
		".github/copilot-instructions.md", "AGENTS.override.md", "QWEN.md", ".kiro/steering/x.md",
		".junie/guidelines.md", ".amazonq/rules/x.md", ".opencode/agent/x.md",
		"opencode.json", ".goosehints", ".rules", ".kilocode/rules/x.md", ".augment-guidelines", ".trae/rules/x.md",
		"CRUSH.md", "WARP.md", "AGENT\u017f.md", ".clau\u200cde/settings.json"},
}

// homePaths are that in a home folder, where everything with a dot is.
var homePaths = []string{".config/systemd/user/x.service", ".config/autostart/x.desktop", ".gitconfig", ".npmrc",
	".config/pip/pip.conf", ".vimrc", ".claude/settings.json",
	".local/share/applications/x.desktop", ".local/bin/ls", "bin/ls", ".xprofile", ".pam_environment",
	".config/fish/config.fish", ".zshenv", ".anything",
	".local/share/systemd/user/x.service"}

// A right to all of the file system is one to the root, above which there is no folder.
func TestARightToEverythingWritesAFile(t *testing.T) {
	w := newWorld(t)
	w.access.WriteDirs = []string{"/"}
	for _, path := range []string{"plain", "hooks", "sub/config"} {
		w.want(w.call("write", a{"path": path, "content": "x"}), tools.OK)
	}
}

// asks checks that a call asks for something that the agent does not have, or not at all: the
// runtime asks nobody for what is allowed already.
func (w *world) asks(tool string, args a, want bool) {
	w.t.Helper()
	data, err := json.Marshal(args)
	must(w.t, err)
	need, err := w.tools[tool].(tools.Asks).Needs(tools.Call{ID: "never run", Agent: agent, Access: w.access, Arguments: data})
	if (need != nil) != want || err != nil {
		w.t.Errorf("%s %v needs %+v, %v", tool, args, need, err)
	}
	if need == nil {
		return
	}
	access, err := permission.Parse(need.Tag)
	if err != nil || w.access.Allows(access) && !need.AskAlways {
		w.t.Errorf("%s %v asks for %s, which is allowed already: %v", tool, args, need.Tag, err)
	}
}

// A user is asked with the diff, and what was allowed is written, however "always" was
// meant: a right that names the path asks no more.
func TestWhatRunsLaterIsAskedForWithItsDiff(t *testing.T) {
	w := newWorld(t)
	args := a{"path": "sub/.vscode/tasks.json", "content": "{\"run\": 1}\n"}
	need, err := w.needs("write", args)
	if err != nil || need == nil || need.Tag != "@write:"+w.ws+"/sub/.vscode/tasks.json" || need.AskAlways ||
		!strings.Contains(need.Detail.Diff, "+{\"run\": 1}") {
		t.Fatalf("%+v %v", need, err)
	}
	if _, err := os.Lstat(w.ws + "/sub"); err == nil {
		t.Error("asking made a folder")
	}

	w.want(w.call("write", args), tools.OK)
	args["content"] = "{}\n"
	w.want(w.call("write", args), tools.Denied, "request_permission") // what was allowed was one call
	w.access.WriteDirs = []string{w.ws + "/sub/.vscode"}
	if need, err := w.needs("write", args); need != nil || err != nil {
		t.Errorf("a right that names it asks: %+v %v", need, err)
	}

	w.want(w.call("write", args), tools.OK)
}

// A link that is put in the way after nothing had to be asked leads to a refusal.
func TestLinkBetweenTheQuestionAndTheWrite(t *testing.T) {
	w := newWorld(t)
	w.file("note", "x\n")
	args := a{"path": "note", "content": "evil\n"}
	if need, err := w.needs("write", args); need != nil || err != nil {
		t.Fatalf("%+v %v", need, err)
	}

	must(t, os.Remove(w.ws+"/note"))
	must(t, os.Symlink(".envrc", w.ws+"/note"))
	w.want(w.call("write", args), tools.Denied, "request_permission for @write:"+w.ws+"/.envrc")
	w.file("README.md", "x\n")
	args = a{"path": ".envrc", "content": "fine\n"}
	if need, err := w.needs("write", args); need == nil || err != nil {
		t.Fatalf("%+v %v", need, err)
	}

	must(t, os.Symlink(".npmrc", w.ws+"/.envrc"))
	w.want(w.call("write", args), tools.Denied, "request_permission for @write:"+w.ws+"/.npmrc")
}

// What is there already is edited, moved onto and patched with a right of its own only.
func TestChangingWhatRunsLaterAsks(t *testing.T) {
	w := newWorld(t)
	w.file(w.ws+"/AGENTS.md", "be good\n")
	w.file(w.ws+"/note", "be bad\n")
	must(t, os.Symlink("AGENTS.md", w.ws+"/alias"))
	w.call("read", a{"path": "AGENTS.md"})
	w.want(w.call("edit", a{"path": "AGENTS.md", "old": "good", "new": "bad"}), tools.Denied, "@write:"+w.ws+"/AGENTS.md")
	w.want(w.call("write", a{"path": "alias", "content": "be bad"}), tools.Denied, "@write:"+w.ws+"/AGENTS.md")
	w.want(w.call("apply_patch", a{"patch": "*** Begin Patch\n*** Update File: note\n*** Move to: AGENTS.md\n-be " +
		"bad\n+be worse\n*** End Patch"}), tools.Denied, "AGENTS.md")
	w.want(w.call("apply_patch", a{"patch": "*** Begin Patch\n*** Delete File: AGENTS.md\n*** End Patch"}), tools.Denied, "AGENTS.md")

	// Three files of one patch do not make a repository either.
	w.want(w.call("apply_patch", a{"patch": "*** Begin Patch\n*** Add File: r/objects/x\n+x\n*** Add File: " +
		"r/refs/x\n+x\n*** Add File: r/HEAD\n+ref: refs/heads/main\n*** End Patch"}), tools.Denied, "r/HEAD")
	if data, err := os.ReadFile(w.ws + "/AGENTS.md"); err != nil || string(data) != "be good\n" {
		t.Errorf("AGENTS.md was changed: %q %v", data, err)
	}

	for _, path := range []string{"Makefile", "package.json", ".env", ".gitignore", ".github/workflows/ci.yml",
		"src/objects/x", "refs/x", "config", "hooks/x", "bin/x"} {
		w.want(w.call("write", a{"path": path, "content": "x"}), tools.OK)
	}
}

// What a repository's own configuration names to be run is in the table, too.
func TestWritingWhatGitsConfigurationNamesAsks(t *testing.T) {
	w := newWorld(t)
	w.file(".git/config", "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../shared.cfg\n[filter "+
		"\"x\"]\n\tclean = sh scripts/clean.sh\n[remote \"origin\"]\n\turl = ./other\n")
	w.file("scripts/clean.sh", "cat\n")
	w.file("other", "x")

	for _, path := range []string{"tools/hooks/pre-commit", "tools/hooks/sub/x", "shared.cfg", "scripts/clean.sh"} {
		w.want(w.call("write", a{"path": path, "content": "x"}), tools.Denied, "request_permission for @write:"+filepath.Join(w.ws, path))
		w.asks("write", a{"path": path, "content": "x"}, true)
		attacktest.Held(t, attacktest.Row{Class: "file tools: what runs later", How: "asked for with its diff",
			Name: "named by git's configuration: " + path})
	}
	w.file("long/.git/config", "[core]\n\thooksPath = hooks\n"+strings.Repeat("# more\n", 10_000))
	w.want(w.call("write", a{"path": "long/hooks/pre-commit", "content": "x"}), tools.Denied, "request_permission for @write:")
	w.file(".git/hooks/README", "x")
	w.file("scripts/check", "x")
	w.link("../../scripts/check", ".git/hooks/pre-commit")
	w.file(".git/worktrees/tree/commondir", "../..\n")
	w.file("tree/.git", "gitdir: "+filepath.Join(w.ws, ".git/worktrees/tree")+"\n")
	for _, path := range []string{"scripts/check", "tree/tools/hooks/pre-commit"} {
		w.want(w.call("write", a{"path": path, "content": "y"}), tools.Denied, "request_permission for @write:"+filepath.Join(w.ws, path))
		w.asks("write", a{"path": path, "content": "y"}, true)
	}
	for _, path := range []string{"tools/x", "scripts/other.sh", "other", "long/x", "tree/x"} {
		w.want(w.call("write", a{"path": path, "content": "x"}), tools.OK)
	}

	w.access.WriteDirs = append(w.access.WriteDirs, filepath.Join(w.ws, "tools/hooks"))
	w.want(w.call("write", a{"path": "tools/hooks/pre-commit", "content": "x"}), tools.OK)
	attacktest.AsUser(t)
}
