package setup

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/term"
	"daycare/engine/workspace"
)

var update = flag.Bool("update", false, "write the golden files anew")

func systemService(t *testing.T, dir string) service {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a system service needs systemd")
	}
	if dir == "" {
		dir = systemWorkspace
	}
	s, err := newSystemService(workspace.At(dir), systemUser)
	if err != nil {
		t.Fatal(err)
	}
	s.program = "/usr/local/bin/daycare"

	return s
}

// The unit of a system service is as a user has reviewed it.
func TestSystemUnit(t *testing.T) {
	const path = "testdata/system.service"
	got := systemService(t, "").unit()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	elsewhere := systemService(t, "/home/anna/a b%")
	if unit := elsewhere.unit(); strings.Contains(unit, "StateDirectory") || !strings.Contains(unit, "ProtectHome=no") ||
		!strings.Contains(unit, `ReadWritePaths="/home/anna/a b%%"`) || !strings.HasPrefix(elsewhere.name, "daycare-a-b") {
		t.Errorf("the unit of %s:\n%s", elsewhere.name, unit)
	}
}

// systemd understands every line of it.
func TestSystemdReadsTheSystemUnit(t *testing.T) {
	s := systemService(t, "")
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	s.program, s.user = "/bin/true", "root" // what it looks for on this machine
	path := filepath.Join(t.TempDir(), "daycare.service")
	if err := os.WriteFile(path, []byte(s.unit()), 0o644); err != nil {
		t.Fatal(err)
	}

	out, err := exec.Command(verify, "verify", path).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, filepath.Base(path)) || err != nil {
			t.Errorf("%s%v", line, err)
		}
	}
}

// What would not work is said before anything is done, with the command that helps.
func TestSystemServiceThatCannotBeInstalled(t *testing.T) {
	s := systemService(t, "")
	for _, hidden := range []string{"/home/anna/bin/daycare", "/root/daycare", "/tmp/daycare", "/var/tmp/bin/daycare"} {
		from := s
		from.program = hidden
		_, do := term.Explain(installable(from, "/nowhere"))
		if !strings.Contains(do, "install -m 0755 "+hidden+" /usr/local/bin/daycare") {
			t.Errorf("the program %s: %q", hidden, do)
		}
	}
	if err := installable(s, "/tmp/notes"); err == nil || !strings.Contains(err.Error(), "/tmp/notes is in a temporary folder") {
		t.Errorf("a workspace in /tmp: %v", err)
	}

	foreign := s
	foreign.user = "nobody-of-that-name"
	if _, do := term.Explain(installable(foreign, "/etc")); !strings.Contains(do, "chown -R nobody-of-that-name: /etc") {
		t.Errorf("another user's workspace: %q", do)
	}
	if err := installable(s, "/nowhere/new"); err != nil {
		t.Errorf("a workspace that does not exist yet: %v", err)
	}

	s.at.Dir, s.user = "/srv/notes", "anna"
	if err := asRoot(s, "install"); os.Geteuid() != 0 {
		const want = "run: sudo /usr/local/bin/daycare --workspace /srv/notes service install --system --user anna"
		if _, do := term.Explain(err); do != want {
			t.Errorf("without root: %q", do)
		}
	} else if err != nil {
		t.Error(err)
	}
}

// What a unit cannot name is refused: it would be another setting, or be read as another path.
func TestPathsThatNoUnitCanName(t *testing.T) {
	for _, dir := range []string{`/srv/a\`, "/srv/a "} {
		if (service{system: "systemd", at: workspace.At(dir)}).expressible() == nil {
			t.Errorf("the workspace %q is taken", dir)
		}
	}
	for _, dir := range []string{"/srv/a\nExecStartPre=/bin/false", "/srv/a\r", "/srv/\xff", "/srv/\x1b[2J"} {
		for what, s := range map[string]service{
			"workspace": {system: "systemd", at: workspace.At(dir)},
			"data":      {system: "systemd", at: workspace.Place{Dir: "/srv", Data: dir}},
			"program":   {system: "systemd", at: workspace.At("/srv"), program: dir},
			"PATH":      {system: "launchd", at: workspace.At("/srv"), programs: dir},
		} {
			if s.expressible() == nil {
				t.Errorf("%s %q is taken", what, dir)
			}
		}
	}
	for _, dir := range []string{"/srv/my notes", "/srv/50%", `/srv/a\b`, "/srv/$HOME", `/srv/"a"`, "/srv/ü ☃"} {
		if err := (service{system: "systemd", at: workspace.At(dir), program: "/bin/true"}).expressible(); err != nil {
			t.Error(err)
		}
	}
}

// What systemd would be asked has no --user in it, and what is missing is made first.
func TestCommandsOfASystemService(t *testing.T) {
	s := systemService(t, filepath.Join(t.TempDir(), "work"))
	s.user = "nobody-of-that-name"
	var got []string
	for _, commands := range [][][]string{preparing(s), s.commands(true), s.replacing(), s.commands(false)} {
		for _, command := range commands {
			got = append(got, strings.NewReplacer(s.at.Dir, "WORK", s.name, "NAME").Replace(strings.Join(command, " ")))
		}
	}

	want := []string{
		"useradd --system --user-group --home-dir /var/cache/NAME --shell /usr/sbin/nologin nobody-of-that-name",
		"install -d -m 0700 -o nobody-of-that-name -g nobody-of-that-name WORK",
		"systemctl daemon-reload", "systemctl enable --now NAME.service",
		"systemctl daemon-reload", "systemctl restart NAME.service",
		"systemctl disable --now NAME.service",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The system services that run a program are known, so that it is not removed under them.
func TestSystemServicesOfAProgram(t *testing.T) {
	s, dir := systemService(t, ""), t.TempDir()
	for name, program := range map[string]string{"daycare": s.program, "daycare-other": "/opt/daycare"} {
		s.program = program
		if err := os.WriteFile(filepath.Join(dir, name+".service"), []byte(s.unit()), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	list, err := systemServices(dir, "/opt/daycare")
	if err != nil || len(list) != 1 || list[0].Name != "daycare-other" || list[0].Workspace != systemWorkspace {
		t.Errorf("%+v %v", list, err)
	}
	if list, err := systemServices(filepath.Join(dir, "none"), "/opt/daycare"); err != nil || len(list) > 0 {
		t.Errorf("without units: %+v %v", list, err)
	}
}
