package sensitive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the configuration of a repository has git run, or read as configuration, is found,
// however it is written; what git never runs is not.
func TestWhatAGitConfigurationNames(t *testing.T) {
	tree := t.TempDir()
	t.Setenv("HOME", tree)
	for _, name := range []string{"tool.sh", "sub/clean.py", "extra.config"} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for config, want := range map[string][]string{
		"":                                                 nil,
		"[core]\n\thooksPath = hooks":                      {"hooks"},
		"[Core] HooksPath=\"hooks\"":                       {"hooks"},
		"[core]\nhookspath = " + tree + "/hooks":           {"hooks"},
		"[core]\nhookspath = hooks # ours":                 {"hooks"},
		"[core]\nhookspath = \"hooks\" ; ours":             {"hooks"},
		"[core]\nhookspath = \"a # b\"":                    {"a # b"},
		"[core]\nhookspath = ~/hooks":                      {"hooks"},
		"[core]\nhookspath = .git/own":                     {".git/own"},
		"[core]\nhookspath = .":                            nil,
		"[core]\nhookspath = ../elsewhere":                 nil,
		"[core]\nhookspath = .git/hooks":                   nil,
		"[core]\nhookspath = .GIT/hooks":                   nil,
		"[core]\neditor = hooks":                           nil,
		"[other]\nhookspath = hooks":                       nil,
		"[core]\nhookspath":                                nil,
		"[include]\npath = ../extra.config":                {"extra.config"},
		"[include]\npath = ../not-there":                   {"not-there"},
		"[includeIf \"gitdir:x\"]\npath = ../extra.config": {"extra.config"},
		"[filter \"x\"]\nclean = ./sub/clean.py %f\nsmudge = python tool.sh": {"sub/clean.py", "tool.sh"},
		"[alias]\nx = !tool.sh\ny = '!tool.sh'":                              {"tool.sh"},
		"[alias]\nx = !sub":                                                  nil,
		"[user]\nname = tool.sh":                                             nil,
		"[remote \"origin\"]\nurl = tool.sh":                                 nil,
		"[remote \"origin\"]\nurl = x\n[diff \"y\"]\ncommand = tool.sh":      {"tool.sh"},
		"tool.sh = tool.sh":                                                  {"tool.sh"},
	} {
		for i := range want {
			want[i] = filepath.Join(tree, want[i])
		}
		n := &naming{tree: tree}
		if n.take(tree+"/.git", config); !slices.Equal(n.paths, want) {
			t.Errorf("%q names %v, want %v", config, n.paths, want)
		}
	}
}

// Configurations that include others, and those of the user for all repositories, name folders of hooks, too.
func TestWhatOtherGitConfigurationsName(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string // in the home
		want  []string          // in the work tree
	}{
		"included from the tree": {map[string]string{"tree/.git/config": "[include] path = ../shared.inc",
			"tree/shared.inc": "[core] hooksPath = hooks"}, []string{"shared.inc", "hooks"}},
		"included from elsewhere": {map[string]string{"tree/.git/config": "[includeIf \"x\"]\npath = \"~/work.inc\"",
			"work.inc": "[core] hooksPath = hooks"}, []string{"hooks"}},
		"included twice": {map[string]string{"tree/.git/config": "[include] path = ../../a.inc", "a.inc": "[include] path = sub/b.inc",
			"sub/b.inc": "[include] path = ../a.inc\n[core] hooksPath = hooks"}, []string{"hooks"}},
		"in the home": {map[string]string{"tree/.git/config": "", "tree/main": "", "tree/scripts/clean": "",
			".gitconfig": "[core] hooksPath = .githooks\n[init] defaultBranch = main\n[filter \"x\"] clean = sh scripts/clean"},
			[]string{".githooks", "scripts/clean"}},
		"in .config": {map[string]string{"tree/.git/config": "", ".config/git/config": "[include]\npath = more",
			".config/git/more": "[core] hooksPath = .githooks"}, []string{".githooks"}},
		"a link to a repository": {map[string]string{"tree/a": "", "real/config": "[core] hooksPath = hooks",
			".gitconfig": "[core] hooksPath = .githooks"}, []string{"hooks", ".githooks"}},
		"many included": {map[string]string{"tree/.git/config": strings.Repeat("[include] path = /dev/null\n", 2*maxConfigs),
			".gitconfig": "[core] hooksPath = .githooks"}, []string{".githooks"}},
		"of no repository": {map[string]string{"tree/a": "", ".gitconfig": "[core] hooksPath = .githooks"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_CONFIG_HOME", "")
			for name, text := range test.files {
				path := filepath.Join(home, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if name == "a link to a repository" {
				if err := os.Symlink("../real", filepath.Join(home, "tree/.git")); err != nil {
					t.Fatal(err)
				}
			}
			for i := range test.want {
				test.want[i] = filepath.Join(home, "tree", test.want[i])
			}
			if got := GitNames(filepath.Join(home, "tree")); !slices.Equal(got, test.want) {
				t.Errorf("named are %v, want %v", got, test.want)
			}
		})
	}
}

// The homes of users are those of root and of who can log in.
func TestHomesOfPeople(t *testing.T) {
	path := filepath.Join(t.TempDir(), "passwd")
	text := strings.Join([]string{"root:x:0:0::/root:/bin/sh", "daemon:x:1:1::/usr/sbin:/bin/sh", "ada:x:1000:1000::/home/ada:/bin/sh",
		"bob:x:2000:1::/home/bob:/bin/sh", "nobody:x:65534:1::/none:/bin/sh", "odd:x:abc:1::/home/odd:/bin/sh", "short:x:1001",
		"here:x:1002:1::relative:/bin/sh", "last:x:999:1::/home/last:/bin/sh", ""}, "\n")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := passwdHomes(path); !slices.Equal(got, []string{"/root", "/home/ada", "/home/bob"}) {
		t.Errorf("homes are %v", got)
	}
	if got := passwdHomes(path + "x"); got != nil {
		t.Errorf("of no file: %v", got)
	}
}

// A home is known by each of its names, and a folder around it holds it.
func TestHomesOfATable(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, link := filepath.Join(top, "ada"), filepath.Join(top, "link")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}

	table := Table{}.And("").And(link).And(top + "/gone").And("/")
	for folder, want := range map[string]bool{home: true, link: true, top: false, "/": false, "": false, ".": false} {
		if table.IsHome(folder) != want {
			t.Errorf("%s is a home: %v", folder, !want)
		}
	}

	for folder, want := range map[string]bool{home: true, link: true, top: true, "/": true, home + "/sub": false, top + "/ad": false} {
		if in := table.HomeIn(folder); (in != "") != want {
			t.Errorf("in %s lies the home %q, want one: %v", folder, in, want)
		}
	}
	if (Table{}).HomeIn("/") != "" {
		t.Error("a home without homes")
	}

	own, err := os.UserHomeDir()
	if real, rerr := filepath.EvalSymlinks(own); err == nil && rerr == nil && real != "/" && !Here().IsHome(own) {
		t.Errorf("%s is no home here", own)
	}

	for _, path := range []string{top, filepath.Dir(top), top + "/../other"} {
		if got := Anchor(top, path, func(string, string) bool { return true }); got != "" {
			t.Errorf("%s is reached by %q", path, got)
		}
	}
}

// Names that a file system may take for one another are one name.
func TestNamesThatAreTheSame(t *testing.T) {
	for _, name := range []string{".GIT", ".git", ".gIt", ".g\u200cit", ".g\u200fit", ".g\u202ait", ".g\u202eit", ".g\u206ait",
		".g\u206fit", "\ufeff.git"} {
		if Fold(name) != ".git" {
			t.Errorf("%q is %q", name, Fold(name))
		}
	}

	for name, want := range map[string]string{"ÄÖ": "äö", "ſ": "s", "\u200c": "", "ſsh": "ssh", "a\u200bb": "a\u200bb",
		"a\u2010b": "a\u2010b", "a\u2029b": "a\u2029b",
		"a\u202fb": "a\u202fb", "a\u2069b": "a\u2069b", "a\u2070b": "a\u2070b"} {
		if got := Fold(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
