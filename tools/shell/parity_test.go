package shell

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"daycare/engine/attacktest"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
	"daycare/tools/shell/sandbox/probe"
)

// part is the variable that says which part of a test this process plays: one on a
// terminal of its own, or one whose binary is replaced.
const part = "DAYCARE_TEST_PART"

// TestNoCommandTypesAtTheTerminal: a command of a daemon that has a terminal neither
// writes there nor types there, at no level of the sandbox.
func TestNoCommandTypesAtTheTerminal(t *testing.T) {
	t.Parallel()
	if os.Getenv(part) == "terminal" {
		typeAtTerminal(t)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), part+"=terminal")
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	var shown bytes.Buffer
	shown.ReadFrom(screen) // ends with an error when the process has ended
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v", err)
	}
	if text := shown.String(); strings.Contains(text, "daycare-typed") || strings.Contains(text, "daycare-written") {
		t.Errorf("the terminal shows what a command put there:\n%s", text)
	} else {
		t.Log(text)
	}

	attacktest.AsUser(t)
}

func typeAtTerminal(t *testing.T) {
	tty, err := os.Readlink("/proc/self/fd/0")
	if err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open("/dev/tty"); err != nil {
		t.Fatalf("this process has no terminal, so nothing is tried: %v", err)
	} else {
		f.Close()
	}

	// The marks are put together here, so that nothing but success shows them.
	script := `perl -e 'for $p ("/dev/tty", $ENV{TTY}, map { "/proc/$_/fd/0" } $ENV{PID}, getppid()) { open(T, "+<", $p) && -t T or next;
	  for (split //, "daycare-"."typed\n") { print "ESCAPED by typing at $p" if ioctl(T, 0x5412, $_) }
	  syswrite(T, "daycare-"."written") && print "ESCAPED to $p" } $s = "\x0b"; print "ESCAPED" if open(C, "+<", "/dev/console") && ` +
		`ioctl(C, 0x541c, $s)'
	  test "$(cut -d' ' -f7 /proc/self/stat)" = 0 || echo "ESCAPED: it has a terminal"`
	for _, level := range sandboxed {
		x := newWorld(t, level)
		env := x.env()
		env["TTY"] = tty
		if text := x.sh(script, env); strings.Contains(text, "ESCAPED") {
			t.Errorf("%s: %s", level, text)
		}
	}
}

// TestReplacedBinaryNeverRuns: a command that replaces the daycare binary at its path
// gains nothing: what runs next to make the sandbox is the binary that was started.
func TestReplacedBinaryNeverRuns(t *testing.T) {
	t.Parallel()
	if os.Getenv(part) == "replaced" {
		replaceBinary(t)
		return
	}
	binary := filepath.Join(t.TempDir(), "daycare")
	if out, err := exec.Command("cp", executable(t), binary).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}

	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), part+"=replaced", "DAYCARE_CANARY=canary-env")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "replaced at 3 levels") {
		t.Errorf("%v\n%s", err, out)
	}

	attacktest.AsUser(t)
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func replaceBinary(t *testing.T) {
	binary := executable(t)
	planted := filepath.Join(t.TempDir(), "planted")
	replaced := 0
	for _, level := range sandboxed {
		x := newWorld(t, level)
		x.access.WriteDirs = append(x.access.WriteDirs, filepath.Dir(binary))
		x.sh(fmt.Sprintf(`cd $W/sub; printf '#!/bin/sh\ntouch %s\n' > evil; chmod 755 evil; cp evil %s.new; mv %[2]s.new %[2]s`, planted,
			binary), x.env())
		if data, err := os.ReadFile(binary); err != nil || !bytes.HasPrefix(data, []byte("#!/bin/sh")) {
			t.Fatalf("%s: the binary was not replaced, so nothing is tried: %v", level, err)
		}

		os.Chmod(binary, 0o755) // without namespaces a command cannot
		if text := x.sh("echo sandboxed; cat $O/secret", x.env()); !strings.Contains(text, "sandboxed") ||
			strings.Contains(text, "canary") {
			t.Errorf("%s: after the binary was replaced: %s", level, text)
		}
		if _, err := os.Stat(planted); err == nil {
			t.Fatalf("%s: the replaced binary was run outside of the sandbox", level)
		}
		replaced++
	}

	t.Logf("replaced at %d levels", replaced)
}

// TestEnvironmentOfACallIsNotInAnyCommandLine: every user of the machine can read
// command lines.
func TestEnvironmentOfACallIsNotInAnyCommandLine(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			h := newHands(t, level)
			secret := fmt.Sprintf("canary-argv-%s-%d", level, os.Getpid())
			h.run(a{"command": `echo "$TOKEN" | tr a-z A-Z; exec sleep 60`, "env": map[string]string{"TOKEN": secret}, "background": true})
			h.until(strings.ToUpper(secret))
			if found := survivors(secret); len(found) > 0 {
				t.Errorf("the command lines of processes %v have it", found)
			}
			h.do(a{"action": "kill", "id": "1"})
		})
	}

	attacktest.AsUser(t)
}

// TestBubblewrapInAGrantIsNotRun: what makes the sandbox runs outside of it.
func TestBubblewrapInAGrantIsNotRun(t *testing.T) {
	x := newWorld(t, sandbox.Bwrap)
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(x.w, "sub", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", real, bin).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}

	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	runner, err := probe.Choose("bwrap", sandbox.Self())
	if err != nil {
		t.Fatal(err)
	}
	x.exec.confine.runner = runner
	if res := run(t, t.Context(), x.exec, newCall(t, x.access, a{"command": "echo ran"})); res.Status != tools.Failed ||
		!strings.Contains(res.Text, "makes the sandbox and is in a folder that you can write") {
		t.Errorf("%+v", res)
	}
}
