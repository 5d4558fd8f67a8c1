//go:build !race

package shell

import (
	"os"
	"path/filepath"
	"testing"

	"daycare/engine/attacktest"
	"daycare/engine/sensitive"
	"daycare/tools/shell/guard"
	"daycare/tools/shell/sandbox"
)

// TestHomeAsWorkspace: commands work at the top of it, see no secrets, and leave nothing
// behind that runs at the next login.
func TestHomeAsWorkspace(t *testing.T) {
	for _, level := range sandboxed {
		t.Run(string(level), func(t *testing.T) {
			x := newWorld(t, level)
			runner, _ := probed[level]()
			t.Setenv("HOME", x.h)
			x.exec.confine.options.Guard = guard.New(sensitive.Here())
			x.exec.confine.options.Denied = []string{x.h + "/.daycare"}
			x.access.WorkingDir = x.h

			for path, text := range map[string]string{".aws/credentials": "canary-key", ".netrc": "canary-key",
				".config/gh/hosts.yml": "canary-key", ".bash_history": "canary-key",
				".mozilla/firefox/x/logins.json": "canary-key", ".npmrc": "canary-key", ".kube/config": "canary-key",
				".docker/config.json": "canary-key", ".git-credentials": "canary-key",
				".local/share/keyrings/login.keyring": "canary-key", ".profile": "canary-key",
				".daycare/auth.json": "canary-data", ".config/nvim/init.lua": "ok", "notes/a": "x"} {
				path = filepath.Join(x.h, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}

			for _, script := range []string{
				`grep -rsl canary . ; grep -rs canary . ; find . -type f -exec cat {} + 2>/dev/null`,
				`cat .aws/credentials .netrc .config/gh/hosts.yml .bash_history .npmrc .kube/config .daycare/auth.json .ssh/id`,
				`echo x >> .profile && echo ESCAPED; echo x > .config/nvim/init.lua && echo ESCAPED; mkdir .config/autostart && ` +
					`echo ESCAPED`,
				`mv .config c && echo ESCAPED; mv .aws a && cat a/credentials; rm -rf .ssh/id; ln .netrc notes/n && cat notes/n; ln -s ` +
					`../.aws notes/aws; cat notes/aws/credentials`,
			} {
				if text := x.runIn(x.h, script); printed(text) != "" {
					t.Errorf("%s: %s", script, text)
				}
			}

			for _, path := range []string{".zshenv", ".config2/x", ".local/bin/ls", ".vimrc", ".gitconfig", ".xprofile",
				".pam_environment", ".ssh2", "bin/ls", ".config/systemd/user/x.service", ".claude/settings.json"} {
				x.runIn(x.h, "mkdir -p "+filepath.Dir(path)+" && echo x > "+path)
				if exists(filepath.Join(x.h, path)) {
					t.Errorf("%s stayed", path)
				}
			}

			if text := x.runIn(x.h, "echo x > top && mkdir folder && echo y > folder/z && echo x "+
				">> notes/a"); runner.HasView() != exists(filepath.Join(x.h, "folder/z")) {
				t.Errorf("ordinary files: %s", text)
			}
		})
	}

	attacktest.AsUser(t)
}

// TestHomesOfCommandsAreApart: what one agent's command leaves in its home no other
// agent's command finds, also where all homes are in what was granted.
func TestHomesOfCommandsAreApart(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		homes := filepath.Join(x.w, "sub", "homes")
		o := &x.exec.confine.options
		o.Denied = append(o.Denied, homes)
		o.Guard = guard.New(sensitive.Here(), o.Denied...)
		o.Home = func(agent string) string { return filepath.Join(homes, agent) }
		o.Shown = func(agent string) (read, write []string) { return nil, []string{filepath.Join(homes, agent)} }
		mine := `echo mine > $HOME/.npmrc && cat $HOME/.npmrc`
		if text := x.runIn(x.w, mine); printed(text) != "" || !exists(filepath.Join(homes, agent, ".npmrc")) {
			t.Fatalf("its own home: %s", text)
		}

		other := filepath.Join(homes, "other")
		if err := os.MkdirAll(other, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(other, "secret"), []byte("canary-key"), 0o644); err != nil {
			t.Fatal(err)
		}

		for _, script := range []string{`cat ` + other + `/secret; ls ` + homes +
			`; ls $HOME/..; cat $HOME/../other/secret`,
			`echo x > ` + other + `/.npmrc && echo ESCAPED; mkdir ` + homes + `/new && echo ESCAPED`,
			`mv ` + homes + ` sub/h && cat sub/h/other/secret; ln -s homes/other sub/o; cat sub/o/secret`} {
			if why := printed(x.runIn(x.w, script)); why != "" {
				t.Errorf("%s: %s", script, why)
			}
		}

		if entries, _ := os.ReadDir(other); len(entries) != 1 {
			t.Errorf("the other's home has %v", entries)
		}
	})
}
