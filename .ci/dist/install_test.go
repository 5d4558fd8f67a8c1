package dist

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A setup is one run of install.sh: what is served, which programs it finds, who runs it.
type setup struct {
	served, programs, home string
	script                 string // "": that of the release
	env                    []string
	stranger               bool // another user runs it
}

// needed are the programs that install.sh uses.
var needed = []string{"sh", "uname", "curl", "sha256sum", "cut", "sed", "tar", "gzip", "mktemp", "mkdir", "cp", "chmod", "mv", "rm"}

// newSetup serves the release for this platform, whole and right.
func newSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{served: t.TempDir(), programs: t.TempDir(), home: t.TempDir()}
	for _, dir := range []string{s.served, s.programs, s.home} {
		for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil { // another user has to come here
				t.Fatal(err)
			}
		}
	}

	for _, path := range append(released(t, "SHA256SUMS*"), archive(t)) {
		s.serve(t, filepath.Base(path), read(t, path))
	}
	for _, name := range needed {
		if path, err := exec.LookPath(name); err != nil {
			t.Skipf("install.sh needs %s, which is not here", name)
		} else if err := os.Symlink(path, filepath.Join(s.programs, name)); err != nil {
			t.Fatal(err)
		}
	}

	return s
}

func archive(t *testing.T) string {
	t.Helper()
	return released(t, "*-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz")[0]
}

func (s *setup) serve(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.served, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// program puts a program of these lines where install.sh looks first.
func (s *setup) program(t *testing.T, name, script string) {
	t.Helper()
	path := filepath.Join(s.programs, name)
	os.Remove(path)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run installs, and returns what the script printed.
func (s *setup) run(t *testing.T) (string, error) {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(s.served)))
	defer server.Close()
	if s.script == "" {
		s.script = released(t, "install.sh")[0]
	}

	cmd := exec.Command("sh", s.script)
	cmd.Dir = s.home
	cmd.Env = append([]string{"PATH=" + s.programs, "HOME=" + s.home, "RELEASE_URL=" + server.URL}, s.env...)
	if s.stranger && os.Getuid() == 0 {
		script, err := os.Open(s.script) // which they may not be able to open themselves
		if err != nil {
			t.Fatal(err)
		}
		defer script.Close()
		cmd.Args, cmd.Stdin = []string{"sh"}, script
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}

	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	return string(out), err
}

// installed lists the files in the home of the user.
func (s *setup) installed(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.Walk(s.home, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			names = append(names, strings.TrimPrefix(path, s.home))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return names
}

func TestInstallScript(t *testing.T) {
	s := newSetup(t)
	out, err := s.run(t)
	if err != nil || !strings.Contains(out, "checksum   right") || !strings.Contains(out, "minisign is not installed") {
		t.Fatalf("%v\n%s", err, out)
	}
	names := strings.Join(s.installed(t), "\n")
	for _, name := range []string{"/.local/bin/daycare", "/.local/share/man/man1/daycare.1",
		"/.local/share/bash-completion/completions/daycare", "/.local/share/zsh/site-functions/_daycare",
		"/.local/share/fish/vendor_completions.d/daycare.fish"} {
		if !strings.Contains(names, name) {
			t.Errorf("%s is missing in\n%s", name, names)
		}
	}

	program := filepath.Join(s.home, ".local/bin/daycare")
	if said, err := exec.Command(program, "version").Output(); err != nil || !strings.HasPrefix(string(said), "daycare ") {
		t.Errorf("the program says %q: %v", said, err)
	}

	// Once more, elsewhere in PATH: the old program is kept, and nothing is said of PATH.
	s.env = []string{"PREFIX=" + filepath.Join(s.home, ".local"), "PATH=" + s.programs + ":" + filepath.Dir(program)}
	if out, err = s.run(t); err != nil || !strings.Contains(out, "daycare.old") || strings.Contains(out, "export PATH") {
		t.Errorf("the second time: %v\n%s", err, out)
	}
	uninstall := exec.Command(program, "uninstall", "--yes")
	uninstall.Dir, uninstall.Env = s.home, []string{"HOME=" + s.home}
	if said, err := uninstall.CombinedOutput(); err != nil || len(s.installed(t)) > 0 {
		t.Errorf("daycare uninstall leaves %q: %v\n%s", s.installed(t), err, said)
	}
}

// Other systems download and compute checksums by other programs, which are played here.
func TestInstallScriptWithOtherPrograms(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl plays the others, and is not here")
	}
	sum, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("sha256sum plays the others, and is not here")
	}

	for name, tt := range map[string]struct{ instead, script string }{
		"wget":   {"curl", `[ "$1 $2" = "-q -O" ] && exec ` + curl + ` -fsS -o "$3" "$4"`},
		"fetch":  {"curl", `[ "$1 $2" = "-q -o" ] && exec ` + curl + ` -fsS -o "$3" "$4"`},
		"shasum": {"sha256sum", `[ "$1 $2" = "-a 256" ] && exec ` + sum + ` "$3"`},
		"sha256": {"sha256sum", `[ "$1" = -q ] && ` + sum + ` "$2" | cut -d" " -f1`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			if err := os.Remove(filepath.Join(s.programs, tt.instead)); err != nil {
				t.Fatal(err)
			}
			s.program(t, name, tt.script)
			if out, err := s.run(t); err != nil || !strings.Contains(out, "checksum   right") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// What is wrong is said with what to do or what it means, and nothing is installed.
func TestInstallScriptRefuses(t *testing.T) {
	name := filepath.Base(archive(t))
	for what, tt := range map[string]struct {
		change func(s *setup)
		says   string
	}{
		"a changed archive": {func(s *setup) { s.serve(t, name, []byte("changed")) }, name + " was damaged or changed"},
		"a cut archive": {func(s *setup) {
			s.serve(t, name, read(t, archive(t))[:100_000])
		}, name + " was damaged or changed"},
		"no checksum":      {func(s *setup) { s.serve(t, "SHA256SUMS", []byte("abc  daycare\n")) }, "names no archive for " + runtime.GOOS},
		"a short checksum": {func(s *setup) { s.serve(t, "SHA256SUMS", []byte("abc  "+name+"\n")) }, "names no archive for"},
		"no archive":       {func(s *setup) { os.Remove(filepath.Join(s.served, name)) }, "cannot download"},
		"nothing":          {func(s *setup) { os.Remove(filepath.Join(s.served, "SHA256SUMS")) }, "cannot download"},
		"two versions": {func(s *setup) {
			s.serve(t, "SHA256SUMS", append(read(t, s.served+"/SHA256SUMS"), twice(name)...))
		}, "several archives"},
		"plain http":         {func(s *setup) { s.env = []string{"RELEASE_URL=http://example.org/daycare"} }, "over https only"},
		"no https at all":    {func(s *setup) { s.env = []string{"RELEASE_URL=ftp://127.0.0.1/daycare"} }, "over https only"},
		"no place":           {func(s *setup) { s.script, s.env = template(t), []string{"RELEASE_URL="} }, "set RELEASE_URL"},
		"another system":     {func(s *setup) { s.program(t, "uname", "echo MINGW64_NT-10.0") }, "on Windows, use WSL"},
		"another processor":  {func(s *setup) { s.program(t, "uname", "[ $1 = -s ] && echo Linux || echo riscv64") }, "linux on riscv64"},
		"no way to download": {func(s *setup) { os.Remove(filepath.Join(s.programs, "curl")) }, "install curl or wget"},
		"no way to check":    {func(s *setup) { os.Remove(filepath.Join(s.programs, "sha256sum")) }, "cannot compute a SHA-256"},
		"a folder of others": {func(s *setup) {
			s.stranger, s.env = true, []string{"PREFIX=" + closed(t)}
		}, "set PREFIX to a folder that is yours"},
		"a file as a folder":    {func(s *setup) { s.env = []string{"PREFIX=" + filepath.Join(s.programs, "sh")} }, "cannot write to"},
		"a signature that lies": {func(s *setup) { s.program(t, "minisign", "exit 1") }, "the signature of SHA256SUMS is wrong"},
		"a signature missing": {func(s *setup) {
			s.program(t, "minisign", "exit 0")
			os.Remove(filepath.Join(s.served, "SHA256SUMS.minisig"))
		}, "cannot download"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSetup(t)
			tt.change(s)
			out, err := s.run(t)
			if err == nil || !strings.Contains(out, tt.says) || !strings.Contains(out, "install.sh: ") {
				t.Errorf("%v\n%s\nand %q is expected", err, out, tt.says)
			}
			if names := s.installed(t); len(names) > 0 {
				t.Errorf("it installed %q", names)
			}
		})
	}
}

// twice is a line for another version of an archive.
func twice(name string) string {
	return strings.Repeat("0", 64) + "  " + strings.Replace(name, "daycare-", "daycare-9", 1) + "\n"
}

// template is the script before it knows where a release is.
func template(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// closed is a folder that others may not write to.
func closed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The signature of a release is one that minisign verifies, for the script and for daycare update.
func TestSignature(t *testing.T) {
	s := newSetup(t)
	install := exec.Command("go", "install", "aead.dev/minisign/cmd/minisign@v0.3.0")
	install.Env = append(os.Environ(), "GOBIN="+s.programs)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("minisign cannot be had here: %v\n%s", err, out)
	}
	if out, err := s.run(t); err != nil || !strings.Contains(out, "signature  right") {
		t.Errorf("%v\n%s", err, out)
	}

	// The installed program knows the same key, and it is what the release has.
	update := exec.Command(filepath.Join(s.home, ".local/bin/daycare"), "update", "--from", s.served)
	update.Env = []string{"HOME=" + s.home}
	if out, err := update.CombinedOutput(); err != nil || !strings.Contains(string(out), "is already installed") {
		t.Errorf("daycare update: %v\n%s", err, out)
	}

	s.home = t.TempDir()
	s.serve(t, "SHA256SUMS", append([]byte("\n"), read(t, filepath.Join(s.served, "SHA256SUMS"))...))
	if out, err := s.run(t); err == nil || !strings.Contains(out, "the signature of SHA256SUMS is wrong") || len(s.installed(t)) > 0 {
		t.Errorf("changed checksums pass: %v\n%s", err, out)
	}
}
