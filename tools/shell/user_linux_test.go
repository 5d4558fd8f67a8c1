package shell

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"daycare/engine/attacktest"
	"daycare/tools/shell/sandbox"
)

// nobody is the user that tests run as beside root.
const nobody = 65534

// asEverybody runs a test at each level of Linux, and if it runs as root once more as an
// ordinary user: the test binary runs itself.
func asEverybody(t *testing.T, test func(t *testing.T, level sandbox.Level)) {
	t.Parallel()
	for _, level := range sandboxed {
		t.Run(string(level), func(t *testing.T) { test(t, level) })
	}
	if os.Getuid() != 0 {
		return
	}
	t.Run("as a user", func(t *testing.T) {
		dir, err := os.MkdirTemp("", "u")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		bin := filepath.Join(dir, "test")
		copyFile(t, "/proc/self/exe", bin)
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(t.Name(), "/")
		cmd := exec.Command(bin, "-test.run", "^"+name+"$", "-test.v")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "tries") || strings.Contains(line, "SKIP") || len(attacktest.Rows(line)) > 0 {
				t.Log(strings.TrimSpace(line))
			}
		}
		if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
			t.Errorf("as user %d: %v\n%s", nobody, err, out)
		}
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
		out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
