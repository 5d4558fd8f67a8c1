package sensitive

import "testing"

func TestTables(t *testing.T) {
	home := t.TempDir()
	table := With(home, "/").Programs(home+"/go/bin", "/usr/bin")
	for path, want := range map[string]string{
		home + "/project/main.go": "", home + "/project/Makefile": "", home + "/project/.env": "",
		home + "/project/.github/workflows/ci.yml": "",
		home + "/project/.git/config":              home + "/project/.git", home + "/project/a/.GIT/x": home + "/project/a/.GIT",
		home + "/project/.vscode/tasks.json":      home + "/project/.vscode",
		home + "/project/Agents.md":               home + "/project/Agents.md",
		home + "/project/.yarn/releases/yarn.cjs": home + "/project/.yarn/releases", home + "/project/.yarn/cache/x.zip": "",
		home + "/project/.GitHub/Instructions/a.md": home + "/project/.GitHub/Instructions", home + "/project/releases/x": "",
		home + "/project/a.code-workspace":       home + "/project/a.code-workspace",
		home + "/project/rust-toolchain.toml":    home + "/project/rust-toolchain.toml",
		home + "/.config/systemd/user/x.service": home + "/.config", home + "/.bashrc": home + "/.bashrc",
		home + "/.anything": home + "/.anything", home + "/bin/ls": home + "/bin", home + "/project/bin/x": "",
		home + "/go/bin/git": home + "/go/bin", home + "/go/src/x": "",
		home + "/project/.v\u017fcode/x": home + "/project/.v\u017fcode",
		home + "/project/.g\u200dit/x":   home + "/project/.g\u200dit", home + "/project/Ünï": "",
		home + "/.bashrc.held": "", home + "/.bashrc.held-12": "",
		home + "/p/node_modules/x/.git/config": home + "/p/node_modules/x/.git", home + "/p/node_modules/x/.vscode/tasks.json": "",
		home + "/p/site-packages/.Daycare/x": home + "/p/site-packages/.Daycare", home + "/p/node_modules/Agents.md": "",
		home + "/p/node_modules.old/.vscode/x": home + "/p/node_modules.old/.vscode",
		home + "/.held-":                       home + "/.held-", home + "/project/.anything": "", home + "/repo/HEAD": home + "/repo/HEAD",
	} {
		if got := Anchor(home, path, table.Later); got != want {
			t.Errorf("%s: later by %q, want %q", path, got, want)
		}
	}

	for path, want := range map[string]string{
		home + "/.aws/credentials": home + "/.aws", home + "/x/.ssh/id": home + "/x/.ssh",
		home + "/.config/gh/hosts.yml":  home + "/.config/gh",
		home + "/.config/nvim/init.lua": "", home + "/x/.config/gh/hosts.yml": "",
		home + "/.bash_history": home + "/.bash_history", home + "/notes": "",
	} {
		if got := Anchor(home, path, table.Secret); got != want {
			t.Errorf("%s: secret by %q, want %q", path, got, want)
		}
	}

	// A right that names the file, or a folder in what the table names, reaches it.
	for root, path := range map[string]string{home + "/p/.vscode": home + "/p/.vscode/tasks.json",
		home + "/p/.envrc": home + "/p/.envrc", home + "/p/.git/info": home + "/p/.git/info/exclude"} {
		if got := Anchor(root, path, table.Later); got != "" {
			t.Errorf("a right to %s does not reach %s: %q", root, path, got)
		}
	}
}

func TestAside(t *testing.T) {
	for n, want := range map[int]string{1: ".git.held", 2: ".git.held-2"} {
		if got := Aside(".git", n); got != want || !setAside(got) {
			t.Errorf("Aside %d: %q", n, got)
		}
	}

	for _, name := range []string{"x", ".x", ".held-x", "x.held2", ""} {
		if setAside(name) {
			t.Errorf("%q was not put aside", name)
		}
	}
}
