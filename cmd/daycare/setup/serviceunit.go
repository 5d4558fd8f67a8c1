package setup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"daycare/cmd/daycare/term"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// A service is a definition for the service manager of the system: a systemd user unit,
// or a launchd agent. Each workspace has its own.
type service struct {
	system   string // systemd, launchd
	at       workspace.Place
	program  string
	programs string // the folders where the commands of agents are found
	name     string
	path     string // of the unit
	user     string // of a system service, whom it runs as; "": it is a service of this user
}

// Unit is the unit of a workspace for a program that may be another than this one.
func Unit(at workspace.Place, system, program string) (string, error) {
	s, err := newService(at, system)
	if err != nil {
		return "", err
	}
	s.program = program

	return s.unit(), nil
}

// newService finds out who keeps programs of this user here; system "" is the one of this
// machine.
func newService(at workspace.Place, system string) (service, error) {
	if system == "" {
		system = map[string]string{"linux": "systemd", "darwin": "launchd"}[goruntime.GOOS]
	}
	s, err := serviceOf(at, system)
	if err != nil {
		return s, err
	}
	house, err := os.UserHomeDir()
	if err != nil {
		return service{}, fmt.Errorf("find home folder: %w", err)
	}

	switch system {
	case "systemd":
		base := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(house, ".config"))
		s.path = filepath.Join(base, "systemd", "user", s.name+".service")
	case "launchd":
		s.path = filepath.Join(house, "Library", "LaunchAgents", s.name+".plist")
	default:
		return s, &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("no supported service manager on %s", goruntime.GOOS),
			Do: "run it with: daycare start --background"}
	}

	return s, nil
}

// serviceOf is the service of a workspace without the path of its unit.
func serviceOf(at workspace.Place, system string) (service, error) {
	self, err := os.Executable()
	if err != nil {
		return service{}, fmt.Errorf("find own program: %w", err)
	}
	sum := sha256.Sum256([]byte(at.Key()))

	return service{system: system, at: at, program: self, programs: os.Getenv("PATH"),
		name: "daycare-" + slug(filepath.Base(at.Dir)) + "-" + hex.EncodeToString(sum[:3])}, nil
}

// expressible says what no unit can name: its values are lines of UTF-8. A line end in a path would begin another setting;
// a backslash or a space at the end of the workspace's, which stands there without quotes, would be read as something else.
func (s service) expressible() error {
	for _, path := range []string{s.at.Dir, s.at.Data, s.program, s.programs} {
		bad := !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl)
		if path == s.at.Dir {
			bad = bad || strings.TrimRight(path, `\ `) != path
		}
		if bad {
			return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("%s cannot be given the path %q", s.system, path),
				Do: "use a UTF-8 path without line breaks or other control characters, and without a space or a backslash at its end"}
		}
	}

	return nil
}

// slug is a name that every system takes.
func slug(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}

		return '-'
	}, name)

	return cmp.Or(strings.Trim(s, "-"), "workspace")
}

// unit is the content of the file. The daemon is started again whenever it ends by
// itself other than well: killed, or with 75 after its storage failed.
func (s service) unit() string {
	switch {
	case s.system == "launchd":
		return s.plist()
	case s.user != "":
		return systemUnit(s)
	}

	return `[Unit]
Description=daycare in ` + escapeUnit(s.at.Dir) + `
StartLimitIntervalSec=0

[Service]
Type=exec
Environment=` + quoteUnit("PATH="+s.programs) + `
ExecStart=` + quoteCommand(s.program) + ` ` + s.placeArguments() + ` --no-input start
WorkingDirectory=` + escapeUnit(s.at.Dir) + `
Restart=on-failure
RestartForceExitStatus=75
RestartSec=5
TimeoutStopSec=90
UMask=0077

[Install]
WantedBy=default.target
`
}

// placeArguments are the arguments that say where the workspace is, as a unit has them.
func (s service) placeArguments() string {
	args := "--workspace " + quoteCommand(s.at.Dir)
	if s.at.Elsewhere() {
		args += " --data " + quoteCommand(s.at.Data)
	}

	return args
}

// escapeUnit keeps systemd from reading a % as one of its own.
func escapeUnit(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// quoteUnit is one word to systemd.
func quoteUnit(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s) + `"`
}

// quoteCommand is quoteUnit on a command line, where $ names a variable.
func quoteCommand(s string) string { return strings.ReplaceAll(quoteUnit(s), "$", "$$") }

func (s service) plist() string {
	text := func(v string) string {
		var b bytes.Buffer
		_ = xml.EscapeText(&b, []byte(v)) // a buffer takes everything
		return "<string>" + b.String() + "</string>"
	}

	data := ""
	if s.at.Elsewhere() {
		data = text("--data") + text(s.at.Data)
	}

	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>` + text(s.name) + `
  <key>ProgramArguments</key>
  <array>` + text(s.program) + text("--workspace") + text(s.at.Dir) + data + text("--no-input") + text("start") + `</array>
  <key>EnvironmentVariables</key>
  <dict><key>PATH</key>` + text(s.programs) + `</dict>
  <key>WorkingDirectory</key>` + text(s.at.Dir) + `
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>5</integer>
  <key>Umask</key><integer>63</integer>
  <key>StandardErrorPath</key>` + text(s.stderr()) + `
</dict>
</plist>
`
}

// commands are what makes the system take a unit in, or let go of it.
func (s service) commands(install bool) [][]string {
	domain := "gui/" + strconv.Itoa(os.Getuid())
	switch {
	case s.system == "launchd" && install:
		return [][]string{{"launchctl", "bootstrap", domain, s.path}}
	case s.system == "launchd":
		return [][]string{{"launchctl", "bootout", domain + "/" + s.name}}
	case install:
		return [][]string{s.systemctl("daemon-reload"), s.systemctl("enable", "--now", s.name+".service")}
	}

	return [][]string{s.systemctl("disable", "--now", s.name+".service")}
}

// systemctl is a command to the service manager of this user, or of the system.
func (s service) systemctl(args ...string) []string {
	if s.user != "" {
		return append([]string{"systemctl"}, args...)
	}
	return append([]string{"systemctl", "--user"}, args...)
}

// replacing is commands(true) for a unit that runs already and was changed.
func (s service) replacing() [][]string {
	if s.system == "launchd" {
		return append(s.commands(false), s.commands(true)...)
	}
	return [][]string{s.systemctl("daemon-reload"), s.systemctl("restart", s.name+".service")}
}

// stderr is where launchd puts what the daemon says before it has its own log.
func (s service) stderr() string {
	return filepath.Join(s.at.Data, "logs", "daycare.log")
}

// log is how to see what the daemon said.
func (s service) log() string {
	if s.system == "launchd" {
		return "less " + s.stderr()
	}
	if s.user != "" {
		return "journalctl -u " + s.name
	}

	return "journalctl --user -u " + s.name
}

// state is what the system says of the service.
func (s service) state(ctx context.Context) string {
	if s.system == "systemd" {
		ask := s.systemctl("is-active", s.name+".service")
		out, _ := exec.CommandContext(ctx, ask[0], ask[1:]...).Output() // it fails for "inactive" too
		return cmp.Or(strings.TrimSpace(string(out)), "unknown")
	}
	if s.run(ctx, []string{"launchctl", "print", "gui/" + strconv.Itoa(os.Getuid()) + "/" + s.name}) == nil {
		return "active"
	}

	return "unknown"
}

func (s service) active(ctx context.Context) bool { return s.state(ctx) == "active" }

func (s service) run(ctx context.Context, command []string) error {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, term.OneLine(string(out), 200))
	}

	return nil
}
