//go:build !race

package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"daycare/engine/attacktest"
	"daycare/tools"
)

// What starts no goroutine, or one that only renames: the race detector has nothing to find there and makes it
// take ten times as long. .ci/run runs these tests without it.

// What is too much, or makes no sense, is refused with what would do.
func TestArgumentsThatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "one\n")
	w.file("bin", "a\x00")
	big := strings.Repeat("x", maxChange+1)
	for _, tt := range []struct {
		tool string
		args a
		want string
	}{
		{"write", a{"path": "b", "content": big}, "at most 10.5 MB can be written at once"},
		{"apply_patch", a{"patch": big}, "can be applied at once"},
		{"grep", a{"pattern": "("}, "not a regular expression"},
		{"grep", a{"pattern": "x", "include": "[a"}, "[a"},
		{"read", a{"path": 5}, "the arguments do not fit"},
		{"read", a{"path": "a.txt", "offset": "x"}, "not a usable number"},
		{"edit", a{"path": "bin", "old": "a", "new": "b"}, "bin is a binary file"},
		{"read", a{"path": strings.Repeat("n", 300)}, "file name too long"},
		{"write", a{"path": strings.Repeat("n", 300), "content": "x"}, "file name too long"},
		{"write", a{"path": "new/" + strings.Repeat("n", 300) + "/x", "content": "x"}, "make the folder of new/"},
		{"apply_patch", patchOf("*** Add File: new/"+strings.Repeat("n", 300)+"/x", "+x"), "file name too long"},
		{"apply_patch", patchOf("*** Update File: a.txt", "-one", "+"+big[:maxChange-10]), "at most 10.5 MB can be applied at once"},
		{"apply_patch", patchOf("*** Update File: a.txt", "*** Move to: b", "*** Move to: c", "-one", "+1"), "comes once"},
		{"apply_patch", patchOf("*** Update File: a.txt", "-one", "+1", "*** Move to: c"), "comes once"},
		{"apply_patch", patchOf("*** Update File: a.txt", "*** Move to:  ", "-one", "+1"), "comes once"},
	} {
		w.want(w.call(tt.tool, tt.args), tools.Failed, tt.want)
	}

	w.want(w.call("read", a{"path": "a\x00"}), tools.Denied, "zero byte")
	if got := w.content("a.txt"); got != "one\n" {
		t.Errorf("the file became %q", got)
	}
	for text, ok := range map[string]bool{"1": true, "2147483648": true, "-2147483648": true, "2147483650": false,
		"-2147483650": false,
		"1e400":       false, `"x"`: false, "{}": false} {
		var n number
		if err := json.Unmarshal([]byte(text), &n); (err == nil) != ok {
			t.Errorf("%s is %v, %v", text, n, err)
		}
	}

	for text, want := range map[string]string{"": "0 lines", "a": "1 line", "a\n": "1 line", "a\nb": "2 lines"} {
		if got := countLines(text); got != want {
			t.Errorf("%q has %s", text, got)
		}
	}
	if got := string(whole(json.RawMessage(" \n"))) + string(whole(json.RawMessage(`{"a":1}`))); got != `{}{"a":1}` {
		t.Errorf("arguments are %s", got)
	}
	if cutAt("aé", 2) != "a" || cutAt("aé", 3) != "aé" || cutAt("é", 1) != "" {
		t.Error("a character is cut in two")
	}
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	for name := range escapes(newWorld(t)) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			secrets := w.fill()

			// The home folder is granted whole, as careless users do.
			w.access.ReadDirs, w.access.WriteDirs = []string{w.home}, []string{w.home}
			path := escapes(w)[name]()
			for tool, args := range map[string]a{
				"read": {"path": path}, "write": {"path": path, "content": "owned"}, "edit": {"path": path, "old": secret, "new": "owned"},
				"ls": {"path": path}, "grep": {"path": path, "pattern": "SECRET"}, "glob": {"path": path, "pattern": "**"},
			} {
				if path == "" && tool != "read" && tool != "write" && tool != "edit" {
					continue // the workspace itself
				}
				res := w.call(tool, args)
				if strings.Contains(res.Text, secret) {
					t.Errorf("%s %q gave the secret: %s", tool, path, res.Text)
				}
				if tool != "ls" && tool != "grep" && res.Status != tools.Denied && res.Status != tools.Failed {
					t.Errorf("%s %q is %q: %s", tool, path, res.Status, res.Text)
				}
			}

			for _, s := range secrets {
				if data, err := os.ReadFile(s); err != nil || string(data) != secret {
					t.Errorf("%s was changed: %q %v", s, data, err)
				}
			}

			for _, made := range []string{w.home + "/.zshenv", w.home + "/.ZSHENV", w.home + "/.config/fish/config.fish"} {
				if _, err := os.Lstat(made); err == nil {
					t.Errorf("%s was made", made)
				}
			}
			attacktest.Held(t, attacktest.Row{Class: "file tools: paths", How: "refused by the tool", Name: name})
		})
	}

	attacktest.AsUser(t)
}

// The same for the way to a file alone, which is much faster. DAYCARE_LONG=1 makes it a
// million tries.
func TestOpenWhileSwapped(t *testing.T) {
	tries := 5000
	if os.Getenv("DAYCARE_LONG") != "" {
		tries = 1_000_000
	}
	w := newWorld(t)
	w.link(w.outside, "l")
	w.fill()
	w.file(w.outside+"/f.txt", secret)
	w.file("d/f.txt", "harmless\n")
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			exchange(filepath.Join(w.ws, "d"), filepath.Join(w.ws, "l"))
		}
	})
	defer wg.Wait()
	defer stop.Store(true)
	b := newBase(Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home})
	r := b.reach(tools.Call{Agent: agent, Access: w.access})
	opened, refused := 0, 0
	var data [64]byte
	for range tries {
		p, err := r.file("d/f.txt", refused%2 == 0)
		if err != nil {
			refused++
			continue
		}
		f, err := p.open()
		p.close()
		if err != nil {
			refused++
			continue
		}

		n, _ := f.Read(data[:])
		f.Close()
		opened++
		if strings.Contains(string(data[:n]), secret) {
			t.Fatalf("after %d tries the secret was read", opened+refused)
		}
	}

	t.Logf("%d tries: %d opened what is permitted, %d refused, 0 got out", opened+refused, opened, refused)
	if opened == 0 || refused == 0 {
		t.Errorf("%d opened, %d refused: nothing was swapped", opened, refused)
	}
}

func TestWritingWhatRunsLaterAsks(t *testing.T) {
	t.Parallel()
	tried := 0
	for who, paths := range laterPaths {
		for _, path := range paths {
			w := newWorld(t)
			w.file(w.ws+"/there.git/HEAD", "ref: refs/heads/main\n")
			tried++
			closed := strings.HasPrefix(strings.ToLower(path), ".git/") &&
				(strings.HasSuffix(path, "config") && !strings.Contains(path, "worktree"))
			want := "request_permission for @write:" + filepath.Join(w.ws, path)
			if closed {
				want = "never open"
			}

			for tool, args := range map[string]a{"write": {"path": path, "content": "x"},
				"apply_patch": {"patch": "*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch"}} {
				w.want(w.call(tool, args), tools.Denied, want)
				w.asks(tool, args, !closed)
			}
			if _, err := os.Lstat(filepath.Join(w.ws, path)); err == nil {
				t.Errorf("%s: %s was made", who, path)
			}

			attacktest.Held(t, attacktest.Row{Class: "file tools: what runs later", How: "asked for with its diff", Name: path})
			w.access.WriteDirs = append(w.access.WriteDirs, filepath.Join(w.ws, path))
			if !closed {
				w.want(w.call("write", a{"path": path, "content": "x"}), tools.OK)
			}
		}
	}

	w := newWorld(t)
	for _, path := range homePaths {
		tried++
		w.access.WriteDirs = []string{w.home}
		w.want(w.call("write", a{"path": filepath.Join(w.home, path), "content": "x"}), tools.Denied,
			"request_permission for @write:"+filepath.Join(w.home, path))
		attacktest.Held(t, attacktest.Row{Class: "file tools: what runs later", How: "asked for with its diff", Name: "home: " + path})
	}

	t.Logf("%d paths, by write and by apply_patch", tried)
	attacktest.AsUser(t)
}

func TestSecretsAreNotReadThroughAWiderRight(t *testing.T) {
	w := newWorld(t)
	secrets := []string{".Xauthority", ".ICEauthority", ".vnc/passwd", ".smbcredentials", ".msmtprc", ".mbsyncrc",
		".databrickscfg", ".pulumi/credentials.json", ".huggingface/token",
		".cache/huggingface/token", ".kaggle/kaggle.json", ".config/hcloud/cli.toml", ".config/solana/id.json",
		".config/composer/auth.json", ".composer/auth.json", ".nuget/NuGet/NuGet.Config",
		".sbt/.credentials", ".ivy2/.credentials", ".config/pypoetry/auth.toml",
		".local/share/python_keyring/keyring_pass.cfg", ".local/share/atuin/key", ".config/Code/User/globalStorage/state.vscdb",
		".config/Cursor/User/globalStorage/state.vscdb", ".local/share/TelegramDesktop/tdata/key",
		".config/borg/keys/x", ".config/cloudflared/cert.pem", ".cloudflared/cert.pem", ".ngrok2/ngrok.yml",
		".config/ngrok/ngrok.yml", ".config/stripe/config.toml", ".sentryclirc", ".config/netlify/config.json",
		".aliyun/config.json", ".config/openstack/clouds.yaml", ".mc/config.json",
		".Rhistory", ".dbshell", ".mongodb/x", ".gdb_history", ".local/state/zsh/history",
		".config/nushell/history.txt", ".ipython/profile_default/history.sqlite", ".pulse-cookie", ".config/pulse/cookie",
		".dockercfg", ".fetchmailrc", ".ssh/id", ".aws/credentials", ".netrc", ".git-credentials", ".kube/config",
		".docker/config.json", ".config/gh/hosts.yml", ".config/gcloud/x",
		".local/share/keyrings/login.keyring", ".mozilla/firefox/x/logins.json",
		".config/google-chrome/Default/Cookies", ".bash_history", ".bashrc", ".npmrc",
		".gnupg/x", ".pypirc", ".cargo/credentials.toml", "project/.ssh/id", "project/.netrc"}
	for _, path := range secrets {
		w.file(filepath.Join(w.home, path), secret)
	}

	w.access.ReadDirs = []string{w.home}
	for _, path := range secrets {
		path = filepath.Join(w.home, path)
		w.want(w.call("read", a{"path": path}), tools.Denied, "request_permission for @read:"+path)
		name, _ := filepath.Rel(w.home, path)
		attacktest.Held(t, attacktest.Row{Class: "file tools: secrets", How: "needs a right by its name", Name: name})
	}

	if res := w.call("grep", a{"pattern": "TOP", "path": w.home}); strings.Contains(res.Text, "TOP") {
		t.Errorf("grep reads secrets: %s", res.Text)
	}
	w.access.ReadDirs = append(w.access.ReadDirs, filepath.Join(w.home, ".kube"))
	w.want(w.call("read", a{"path": filepath.Join(w.home, ".kube/config")}), tools.OK, "TOP")
	t.Logf("%d secrets", len(secrets))
	attacktest.AsUser(t)
}
