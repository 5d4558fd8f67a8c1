package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"daycare/cmd/daycare/term"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// A system service starts at boot, as a separate user.
const (
	systemUser      = "daycare"
	systemWorkspace = "/var/lib/daycare"
	systemUnits     = "/etc/systemd/system"
	systemKeys      = "/etc/daycare"
	systemHomes     = "/var/cache"
	systemPath      = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// newSystemService is the service of a workspace for the whole machine.
func newSystemService(at workspace.Place, as string) (service, error) {
	if goruntime.GOOS != "linux" {
		return service{}, &term.Problem{Code: fault.ExitFailure, Err: errors.New("a system service needs systemd"),
			Do: "install it for your user: daycare service install"}
	}
	s, err := serviceOf(at, "systemd")
	if err != nil {
		return s, err
	}
	if at == workspace.At(systemWorkspace) {
		s.name = "daycare"
	}

	s.user, s.programs, s.path = as, systemPath, filepath.Join(systemUnits, s.name+".service")
	return s, nil
}

// keys is the file with the environment of a system service: what systemd reads as root, and
// nobody else.
func (s service) keys() string { return filepath.Join(systemKeys, s.name+".env") }

// home is the home folder of the service's user: not the workspace, of which agents can change everything.
func (s service) home() string { return filepath.Join(systemHomes, s.name) }

// look is the command that shows the service.
func (s service) look() string {
	switch {
	case s.user == "":
		return "daycare service status"
	case s.at == workspace.At(systemWorkspace):
		return "daycare service status --system"
	}
	data := ""
	if s.at.Elsewhere() {
		data = fmt.Sprintf(" --data %q", s.at.Data)
	}

	return fmt.Sprintf("daycare -C %q%s service status --system", s.at.Dir, data)
}

// keysText is what the file has before someone writes keys into it.
const keysText = `# The environment of the daycare service: NAME=VALUE, one a line. Only root reads this file.
#ANTHROPIC_API_KEY=
#OPENAI_API_KEY=
`

// systemUnit is the unit of a system service. What keeps commands of agents in is daycare's own
// sandbox, which needs user and mount namespaces, a whole /proc, Landlock and a branch of the
// control groups: nothing here takes those away (RestrictNamespaces, SystemCallFilter,
// ProtectProc, ProtectKernelTunables, ProtectKernelLogs and ProtectControlGroups would).
func systemUnit(s service) string {
	lines := []string{"[Unit]",
		"Description=daycare in " + escapeUnit(s.at.Dir),
		"After=network-online.target",
		"Wants=network-online.target",
		"StartLimitIntervalSec=0",
		"",
		"[Service]",
		"Type=exec",
		"User=" + s.user,
		"Group=" + s.user,
		"WorkingDirectory=" + escapeUnit(s.at.Dir)}
	if s.at.Dir == systemWorkspace {
		lines = append(lines, "StateDirectory=daycare", "StateDirectoryMode=0700")
	}

	lines = append(lines,
		"CacheDirectory="+s.name, "CacheDirectoryMode=0700",
		"Environment="+quoteUnit("HOME="+s.home())+" "+quoteUnit("PATH="+s.programs),
		"EnvironmentFile=-"+escapeUnit(s.keys()),
		"ExecStart="+quoteCommand(s.program)+" "+s.placeArguments()+" --no-input start",
		"Restart=on-failure",
		"RestartForceExitStatus=75",
		"RestartSec=5",
		"TimeoutStopSec=90",
		"UMask=0077",
		"",
		"# The daemon can write only its workspace and its home, and cannot gain privileges.",
		"ProtectSystem=strict",
		"ReadWritePaths="+s.writable(),
		"ProtectHome="+protectHome(s.at),
		"PrivateTmp=yes",
		"PrivateDevices=yes",
		"NoNewPrivileges=yes",
		"CapabilityBoundingSet=",
		"RestrictSUIDSGID=yes",
		"RestrictRealtime=yes",
		"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
		"LockPersonality=yes",
		"ProtectKernelModules=yes",
		"ProtectClock=yes",
		"",
		"# Agents' commands are limited by their own control groups.",
		"Delegate=cpu memory pids",
		"",
		"[Install]",
		"WantedBy=multi-user.target",
		"")

	return strings.Join(lines, "\n")
}

// writable are the folders that the daemon changes, beside its home.
func (s service) writable() string {
	if s.at.Elsewhere() {
		return quoteUnit(s.at.Dir) + " " + quoteUnit(s.at.Data)
	}
	return quoteUnit(s.at.Dir)
}

// protectHome hides the homes of users, unless the workspace or its data folder is in one.
func protectHome(at workspace.Place) string {
	if inHome(at.Dir) || inHome(at.Data) {
		return "no"
	}
	return "yes"
}

// inHome reports whether a path is in a user's home.
func inHome(path string) bool { return inAny(path, "/home", "/root", "/run/user") }

// isTemporary reports whether a path is in a folder that PrivateTmp= replaces by an empty one.
func isTemporary(path string) bool { return inAny(path, "/tmp", "/var/tmp") }

func inAny(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		rel, err := filepath.Rel(folder, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// preparing are the commands before a system service can be started: its user and its folder,
// where they are missing.
func preparing(s service) (commands [][]string) {
	if _, err := user.Lookup(s.user); err != nil {
		commands = append(commands, []string{"useradd", "--system", "--user-group", "--home-dir", s.home(),
			"--shell", "/usr/sbin/nologin", s.user})
	}
	folders := []string{s.at.Dir}
	if s.at.Elsewhere() {
		folders = append(folders, s.at.Data)
	}
	for _, dir := range folders {
		if !term.Exists(dir) {
			commands = append(commands, []string{"install", "-d", "-m", "0700", "-o", s.user, "-g", s.user, dir})
		}
	}

	return commands
}

// installable says why a system service cannot be installed as it is.
func (s service) installable() error {
	if s.at.Elsewhere() {
		return errors.Join(installable(s, s.at.Dir), installable(s, s.at.Data))
	}
	return installable(s, s.at.Dir)
}

// installable says why it cannot be in a folder.
func installable(s service, dir string) error {
	if inHome(s.program) || isTemporary(s.program) {
		return &term.Problem{Code: fault.ExitFailure,
			Err: fmt.Errorf("%s is in a home or a temporary folder, which the service cannot read", s.program),
			Do:  "install the program first: install -m 0755 " + s.program + " /usr/local/bin/daycare"}
	}
	if isTemporary(dir) {
		return &term.Problem{Code: fault.ExitFailure,
			Err: fmt.Errorf("%s is in a temporary folder, which the service cannot see: it has its own", dir),
			Do:  "move the workspace, or install a service of this user: daycare service install"}
	}

	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("install service: %w", err)
	}

	owner, ok := info.Sys().(*syscall.Stat_t)
	who, err := user.Lookup(s.user)
	if err == nil && ok && who.Uid == strconv.Itoa(int(owner.Uid)) {
		return nil
	}

	return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("%s does not belong to user %s", dir, s.user),
		Do: "give it away: chown -R " + s.user + ": " + dir + "   (or have the service run as its owner: --user NAME)"}
}

// asRoot is an error for who is not root; it names the command that root runs.
func asRoot(s service, verb string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	command := "sudo " + s.program
	if s.at != workspace.At(systemWorkspace) {
		command += " --workspace " + s.at.Dir
	}
	if s.at.Elsewhere() {
		command += " --data " + s.at.Data
	}

	command += " service " + verb + " --system"
	if s.user != systemUser {
		command += " --user " + s.user
	}
	return &term.Problem{Code: fault.ExitDenied, Err: errors.New("only root can install or remove a system service"),
		Do: "run: " + command}
}

// showSystem prints everything that an install would write and run.
func showSystem(c *term.App, s service) error {
	before, after := preparing(s), s.commands(true)
	if c.JSON {
		return c.PrintJSON(struct {
			Name     string     `json:"name"`
			Path     string     `json:"path"`
			Unit     string     `json:"unit"`
			Keys     string     `json:"keys"`
			User     string     `json:"user"`
			Commands [][]string `json:"commands"`
		}{s.name, s.path, s.unit(), s.keys(), s.user, append(before, after...)})
	}

	for _, command := range before {
		c.Print("# first: %s\n", strings.Join(command, " "))
	}
	c.Print("# %s\n%s", s.path, s.unit())
	if !term.Exists(s.keys()) {
		c.Print("# %s (mode 0600)\n%s", s.keys(), keysText)
	}

	for _, command := range after {
		c.Print("# then: %s\n", strings.Join(command, " "))
	}
	if err := s.installable(); err != nil {
		_, do := term.Explain(err)
		c.Note("the installation would fail: %s; %s", err, do)
	}

	return nil
}

// installSystem makes the user, the folder, the file of keys and the unit, and starts it.
func installSystem(ctx context.Context, c *term.App, s service) error {
	if err := errors.Join(asRoot(s, "install"), s.installable()); err != nil {
		return err
	}
	if again := s.active(ctx); !again {
		if err := c.NobodyRuns(s.at); err != nil {
			return err
		}
	}
	if err := runAll(ctx, s, preparing(s)); err != nil {
		return err
	}
	if err := os.MkdirAll(systemKeys, 0o755); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	if err := writeNew(s.keys(), keysText); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("install service: %w", err)
	}

	before, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("install service: %w", err)
	}
	if err := os.WriteFile(s.path, []byte(s.unit()), 0o644); err != nil {
		return fmt.Errorf("install service: %w", err)
	}

	commands := s.commands(true)
	if before != nil && string(before) != s.unit() {
		commands = append(commands, s.replacing()...)
	}
	if err := runAll(ctx, s, commands); err != nil {
		return err
	}

	c.Print("installed %s\n", s.path)
	if err := serviceAnswers(ctx, c, s); err != nil {
		return err
	}
	c.Note("keys go into %s, or: sudo -u %s %s --workspace %s auth set ID", s.keys(), s.user, s.program, s.at.Dir)

	return nil
}

// runAll runs commands one after the other.
func runAll(ctx context.Context, s service, commands [][]string) error {
	for _, command := range commands {
		if err := s.run(ctx, command); err != nil {
			return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("install service: %w", err),
				Do: "the steps before it are done; run by hand: " + strings.Join(command, " ")}
		}
	}

	return nil
}

// uninstallSystem removes what an install made, but for the data and whose they are.
func uninstallSystem(ctx context.Context, c *term.App, s service, dry bool) error {
	if !dry {
		if err := asRoot(s, "uninstall"); err != nil {
			return err
		}
	}

	keys, err := os.ReadFile(s.keys())
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !dry {
		return fmt.Errorf("uninstall service: %w", err)
	}
	if err := uninstallService(ctx, c, s, dry); err != nil {
		return err
	}
	if unused := string(keys) == keysText; unused && dry {
		c.Print("rm %s\n", s.keys())
	} else if unused {
		if err := os.Remove(s.keys()); err != nil {
			return fmt.Errorf("uninstall service: %w", err)
		}
	} else if term.Exists(s.keys()) {
		c.Note("left: %s, which has keys", s.keys())
	}

	c.Note("left: the workspace %s, the home %s and the user %s; to remove them: rm -r %[1]s %[2]s; userdel %[3]s",
		s.at.Dir, s.home(), s.user)
	return nil
}
