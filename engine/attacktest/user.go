//go:build unix

package attacktest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user that tests run as beside root.
const nobody = 65534

// AsUser runs the test again as an ordinary user if root runs the tests: what confines an agent must not depend on
// who runs daycare. The test binary runs itself in a folder of that user.
func AsUser(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	t.Run("as a user", func(t *testing.T) {
		t.Parallel()                      // it is a process of its own
		dir, err := os.MkdirTemp("", "u") // t.TempDir lets nobody else in
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { os.RemoveAll(dir) })
		bin := filepath.Join(dir, "test")
		if err := copyProgram(bin); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}

		name, _, _ := strings.Cut(t.Name(), "/")
		var out []byte

		// What another test starts just now has the copy open for writing until its exec.
		for again := true; again; again = errors.Is(err, syscall.ETXTBSY) {
			cmd := exec.Command(bin, "-test.run", "^"+name+"$", "-test.v")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			out, err = cmd.CombinedOutput()
		}

		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "tries") || strings.Contains(line, "SKIP") || len(Rows(line)) > 0 {
				t.Log(strings.TrimSpace(line))
			}
		}

		if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
			t.Errorf("as user %d: %v\n%s", nobody, err, out)
		}
	})
}

// copyProgram copies the program that runs to where everybody can run it.
func copyProgram(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	in, err := os.Open(self)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		out.Close()
		return err
	}

	return out.Close()
}
