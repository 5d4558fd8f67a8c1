package sensitive

import "strings"

// later are names, in any folder or in the named one, of files and folders that run
// something later.
// Build files (Makefile, package.json) are not in it: they are what agents work on,
// and users know when they run a build.
var later = names(
	// Version control runs hooks and programs that its configuration names. HEAD makes
	// a folder look like a repository.
	".git .hg .bzr .svn .jj .sl .pijul _darcs HEAD .gitconfig .husky .githooks .pre-commit-config.yaml "+
		".pre-commit-config.yml lefthook.yml lefthook.yaml .lefthook.yml .overcommit.yml",
	// Shells and terminals.
	".envrc .direnvrc .autoenv.zsh .env.fish .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile "+
		".zshrc .zshenv .zprofile .zlogin .zlogout",
	".kshrc .cshrc .tcshrc .xonshrc .login .inputrc .tmux.conf .screenrc .autoenv .autoenv_leave.zsh .mise.toml "+
		"mise.toml .mise.local.toml mise.local.toml .mise .rtx.toml .asdfrc",
	// Editors and debuggers.
	".vscode .idea .fleet .zed .nova .devcontainer .devcontainer.json .vimrc .gvimrc .exrc .nvimrc .nvim.lua .lvimrc "+
		".dir-locals.el .dir-locals-2.el .emacs .emacs.d .gdbinit .lldbinit",
	".vim .nvim coc-settings.json .helix .kateproject .theia .lapce .externalToolBuilders .pdbrc .perldb .radare2rc",
	// Interpreters and notebooks read these where they are started.
	".ghci .ocamlinit .iex.exs .erlang .octaverc .RData .Renviron .byebugrc .rdbgrc ipython_config.py jupyter_config.py "+
		"jupyter_notebook_config.py jupyter_server_config.py",
	"jupyter_lab_config.py sitecustomize.py usercustomize.py .latexmkrc latexmkrc",
	// Package managers and language tools.
	".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs pip.conf .pip .pydistutils.cfg .condarc .cargo .gemrc "+
		".bundle .irbrc .pryrc .Rprofile .pythonrc .mvn .jvmopts .sbtopts",
	// What chooses the program that runs: a toolchain by its path, a release of yarn.
	"rust-toolchain rust-toolchain.toml .bazelrc .bazeliskrc .buckconfig bunfig.toml uv.toml "+
		".yarn/releases .yarn/plugins .yarn/sdks",
	// What other agents of the user obey, daycare's included.
	"AGENTS.md AGENT.md CLAUDE.md CLAUDE.local.md GEMINI.md .agents .claude .codex .gemini .cursor .cursorrules "+
		".windsurf .windsurfrules .clinerules .roo .continue .aider.conf.yml .mcp.json .daycare",
	"AGENTS.override.md copilot-instructions.md QWEN.md CRUSH.md WARP.md .qwen .kiro .junie .amazonq .opencode "+
		"opencode.json .crush.json crush.json .goosehints .rules .kilocode",
	".augment .augment-guidelines .trae .factory .openhands .goose .serena .zencoder .replit .gitpod.yml",
	".github/instructions .github/prompts .github/agents .github/chatmodes .github/hooks",
)

// laterEnds are the ends of names of workspaces of editors, which have tasks in them.
var laterEnds = []string{".code-workspace", ".sublime-project"}

// installed are folders that package managers fill with the trees of others. Nobody opens
// an editor in there, so of the names in later only those of version control count.
var installed = []string{"node_modules", "site-packages"}

// homeLater are names in a home folder, where everything that begins with a dot is in
// the table, too.
var homeLater = names("bin Library Applications")

// secret are names, in any folder, of what holds keys and passwords.
var secret = names(".ssh .gnupg .aws .netrc _netrc .git-credentials .pgpass .pypirc .vault-token .password-store",
	".dockercfg .Xauthority .ICEauthority .smbcredentials .fetchmailrc .msmtprc .mbsyncrc .databrickscfg")

// homeSecret are paths in a home folder.
var homeSecret = []string{".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/glab-cli",
	".config/hub", ".config/git/credentials",
	".config/doctl", ".config/op", ".config/rclone", ".config/sops", ".config/containers/auth.json", ".config/filezilla", ".config/heroku",
	".npmrc", ".yarnrc.yml", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
	".m2/settings-security.xml",
	".gradle/gradle.properties", ".terraform.d", ".terraformrc", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", ".oci",
	".fly", ".age", ".minikube",
	".pulumi", ".huggingface", ".cache/huggingface/token", ".kaggle", ".config/hcloud", ".config/composer/auth.json",
	".composer/auth.json", ".nuget/NuGet", ".sbt/.credentials",
	".ivy2/.credentials", ".config/pypoetry/auth.toml", ".config/cloudflared", ".cloudflared", ".ngrok2",
	".config/ngrok", ".config/stripe", ".sentryclirc", ".config/netlify",
	".aliyun", ".config/openstack", ".mc", ".config/borg", ".vnc",
	".claude", ".claude.json", ".codex/auth.json", ".gemini", ".config/github-copilot", ".config/anthropic", ".config/openai",
	// Key rings and browsers.
	".local/share/keyrings", ".local/share/kwalletd", ".pki", ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium",
	".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".var/app", "snap/firefox", "snap/chromium",
	".config/Code/User/globalStorage", ".config/Cursor/User/globalStorage", ".local/share/python_keyring",
	".local/share/TelegramDesktop", ".config/solana", ".config/pulse/cookie", ".pulse-cookie",
	".config/Signal", ".config/Slack", ".config/discord", ".config/1Password", ".config/Bitwarden", ".config/keepassxc",
	".bitcoin", ".electrum", ".ethereum",
	"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Messages", "Library/Mail", "Library/Application Support",
	// Start files of shells, which often hold keys.
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
	".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".cshrc", ".tcshrc", ".login", ".config/fish", ".config/environment.d", ".pam_environment",
	// What a user typed.
	".bash_history", ".zsh_history", ".histfile", ".history", ".sh_history", ".local/share/fish", ".python_history", ".node_repl_history",
	".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".irb_history", ".lesshst", ".viminfo",
	".wget-hsts", ".local/state/bash", ".zsh_sessions",
	".local/state/zsh", ".local/share/atuin", ".config/nushell/history.txt", ".ipython", ".Rhistory", ".dbshell",
	".mongodb", ".gdb_history"}

func names(lists ...string) map[string]bool {
	all := map[string]bool{}
	for _, list := range lists {
		for name := range strings.FieldsSeq(list) {
			all[Fold(name)] = true
		}
	}

	return all
}
