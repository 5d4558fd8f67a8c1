// Package sensitive says which files in the folders of a person are more than data:
// those that run something later, or tell a program of the person what to run, and
// those that hold secrets. The file tools, the sandbox of commands and doctor all go
// by these two tables.
//
// A right to a wider folder does not reach such a file. It needs a right of its own: one
// to the file itself, or to something on the way to it that is in the table. So a grant
// of a project lets an agent write everything in it but .vscode/tasks.json, and a grant
// of that file, which a person was asked for by its name, lets it write that.
package sensitive

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Data is the folder in which daycare keeps what no agent may reach.
const Data = ".daycare"

// later are names, in any folder, of files and folders that run something later.
// Build files (Makefile, package.json) are not in it: they are what agents work on,
// and whoever runs a build knows that he runs it.
var later = names(
	// Version control runs hooks and programs that its configuration names. HEAD makes
	// a folder look like a repository.
	".git .hg .bzr .svn .jj HEAD .gitconfig .husky .githooks .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml .lefthook.yml .overcommit.yml",
	// Shells and terminals.
	".envrc .direnvrc .autoenv.zsh .env.fish .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout",
	".kshrc .cshrc .tcshrc .login .inputrc .tmux.conf .screenrc .mise.toml mise.toml .mise .rtx.toml .asdfrc",
	// Editors and debuggers.
	".vscode .idea .fleet .zed .nova .devcontainer .devcontainer.json .vimrc .gvimrc .exrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .dir-locals-2.el .emacs .emacs.d .gdbinit .lldbinit",
	// Package managers and language tools.
	".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs pip.conf .pip .pydistutils.cfg .condarc .cargo .gemrc .bundle .irbrc .pryrc .Rprofile .pythonrc .mvn",
	// What other agents of the person obey, daycare's included.
	"AGENTS.md AGENT.md CLAUDE.md CLAUDE.local.md GEMINI.md .agents .claude .codex .gemini .cursor .cursorrules .windsurf .windsurfrules .clinerules .roo .continue .aider.conf.yml .mcp.json .daycare",
)

// installed are folders that package managers fill with the trees of others. Nobody opens
// an editor in there, so of the names in later only those of version control count.
var installed = []string{"node_modules", "site-packages"}

// homeLater are names in a home folder, where everything that begins with a dot is in
// the table, too.
var homeLater = names("bin Library Applications")

// secret are names, in any folder, of what holds keys and passwords.
var secret = names(".ssh .gnupg .aws .netrc _netrc .git-credentials .pgpass .pypirc .vault-token .password-store")

// homeSecret are paths in a home folder.
var homeSecret = []string{".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/git/credentials",
	".config/doctl", ".config/op", ".config/rclone", ".config/sops", ".config/containers/auth.json", ".config/filezilla", ".config/heroku",
	".npmrc", ".yarnrc.yml", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml",
	".gradle/gradle.properties", ".terraform.d", ".terraformrc", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", ".oci", ".fly", ".age", ".minikube",
	".claude", ".claude.json", ".codex/auth.json", ".gemini", ".config/github-copilot", ".config/anthropic", ".config/openai",
	// Key rings and browsers.
	".local/share/keyrings", ".local/share/kwalletd", ".pki", ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium",
	".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".var/app", "snap/firefox", "snap/chromium",
	".config/Signal", ".config/Slack", ".config/discord", ".config/1Password", ".config/Bitwarden", ".config/keepassxc", ".bitcoin", ".electrum", ".ethereum",
	"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Messages", "Library/Mail", "Library/Application Support",
	// Start files of shells, which often hold keys.
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".cshrc", ".tcshrc", ".login", ".config/fish", ".config/environment.d", ".pam_environment",
	// What a person typed.
	".bash_history", ".zsh_history", ".histfile", ".history", ".sh_history", ".local/share/fish", ".python_history", ".node_repl_history",
	".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".irb_history", ".lesshst", ".viminfo", ".wget-hsts", ".local/state/bash", ".zsh_sessions"}

func names(lists ...string) map[string]bool {
	all := map[string]bool{}
	for _, list := range lists {
		for name := range strings.FieldsSeq(list) {
			all[strings.ToLower(name)] = true
		}
	}
	return all
}

// A Table knows the home folders that the names in homes belong to.
type Table struct{ homes []string }

// Here returns the table with the homes of this machine's people and of the one that
// runs daycare.
func Here() Table {
	t := people()
	own, err := os.UserHomeDir()
	if err != nil || slices.Contains(t.homes, own) {
		return t
	}
	return t.And(own)
}

// And returns the table with one more home; "": none.
func (t Table) And(home string) Table {
	if home == "" {
		return t
	}
	return Table{slices.Concat(t.homes, With(home).homes)}
}

var people = sync.OnceValue(func() Table { return With(passwdHomes("/etc/passwd")...) })

// With returns the table with these homes.
func With(homes ...string) Table {
	var t Table
	for _, home := range homes {
		real, err := filepath.EvalSymlinks(home)
		for _, path := range []string{filepath.Clean(home), real} {
			if err == nil && path != "/" && !slices.Contains(t.homes, path) {
				t.homes = append(t.homes, path)
			}
		}
	}
	return t
}

// Later reports whether the entry name of a folder runs something later. Names are
// compared without case, because some file systems do.
func (t Table) Later(folder, name string) bool {
	name = strings.ToLower(name)
	if later[name] {
		return name == ".git" || name == Data || !slices.ContainsFunc(installed, func(dir string) bool { return strings.Contains(folder+"/", "/"+dir+"/") })
	}
	if !t.IsHome(folder) {
		return false
	}
	return homeLater[name] || strings.HasPrefix(name, ".") && !setAside(name)
}

// Secret reports whether the entry name of a folder holds secrets.
func (t Table) Secret(folder, name string) bool {
	if secret[strings.ToLower(name)] {
		return true
	}
	for _, home := range t.homes {
		if !strings.HasPrefix(folder, home) { // most are not in a home at all
			continue
		}
		rel, err := filepath.Rel(home, filepath.Join(folder, name))
		if err == nil && slices.ContainsFunc(homeSecret, func(s string) bool { return strings.EqualFold(s, rel) }) {
			return true
		}
	}
	return false
}

// Anchor returns the first path between root, which itself does not count, and path
// that in reports: what a right must name to reach path. "": none.
func Anchor(root, path string, in func(folder, name string) bool) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		if in(root, name) {
			return filepath.Join(root, name)
		}
		root = filepath.Join(root, name)
	}
	return ""
}

// Secrets are the paths of secrets in the homes; they need not exist.
func (t Table) Secrets() (paths []string) {
	for _, home := range t.homes {
		for _, name := range homeSecret {
			paths = append(paths, filepath.Join(home, name))
		}
	}
	return paths
}

// IsHome reports whether a folder is the home of a person.
func (t Table) IsHome(folder string) bool { return slices.Contains(t.homes, folder) }

// HomeIn is a home that is a folder or lies in it; "": none.
func (t Table) HomeIn(folder string) string {
	for _, home := range t.homes {
		if home == folder || folder == "/" || strings.HasPrefix(home, folder+"/") {
			return home
		}
	}
	return ""
}

// aside is what the name of something ends in that was put aside.
const aside = ".held"

// Aside is the nth name under which what has a name can be put aside.
func Aside(name string, n int) string {
	if n > 1 {
		return name + aside + "-" + strconv.Itoa(n)
	}
	return name + aside
}

// setAside reports whether a name is one that Aside made.
func setAside(name string) bool {
	base, number, cut := strings.Cut(name[max(0, strings.LastIndexByte(name, '.')):], "-")
	_, err := strconv.Atoi(number)
	return base == aside && (!cut || err == nil)
}

// passwdHomes are the homes of root and of those who can log in, by convention.
func passwdHomes(path string) (list []string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	const firstPerson, nobody = 1000, 65534
	for s := bufio.NewScanner(io.LimitReader(f, 1<<20)); s.Scan(); {
		fields := strings.Split(s.Text(), ":")
		if len(fields) < 7 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		if err == nil && (uid == 0 || uid >= firstPerson && uid != nobody) && filepath.IsAbs(fields[5]) {
			list = append(list, fields[5])
		}
	}
	return list
}
