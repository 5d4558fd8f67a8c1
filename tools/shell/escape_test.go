package shell

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// A world is what scripts try to get at.
type world struct {
	t                  *testing.T
	root, w, o, d, h   string
	tcp, udp, abstract string
	reached            atomic.Int32 // how often somebody outside heard something
	exec               *Exec
	before             string
	access             permission.Set
}

const canaries = "canary-outside canary-data canary-env canary-key"

func newWorld(t *testing.T, level sandbox.Level) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &world{t: t, root: root, w: filepath.Join(root, "work"), o: filepath.Join(root, "outside"), h: filepath.Join(root, "home")}
	x.d = filepath.Join(x.w, ".daycare")
	for path, text := range map[string]string{
		x.o + "/secret": "canary-outside", x.h + "/.ssh/id": "canary-key", x.h + "/.bashrc": "#",
		x.d + "/settings.yaml": "canary-data", x.d + "/agents/other/history.jsonl": "canary-data", x.d + "/agents/me/state.json": "{}",
		x.d + "/drop/.keep": "", x.w + "/sub/file": "x", x.w + "/main.go": "package main", x.w + "/linked": "",
		x.w + "/.git/config": "[core]\n\trepositoryformatversion = 0\n", x.w + "/.git/HEAD": "ref: refs/heads/main\n",
		x.w + "/.git/hooks/README": "", x.w + "/.git/objects/.keep": "", x.w + "/.git/refs/.keep": "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	x.listen()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Mode: Sandbox, Sandbox: string(level), Helper: self, Denied: []string{x.d, x.h + "/.ssh", x.h + "/.bashrc"},
		Home: func(string) string { return filepath.Join(x.root, "cmdhome") }}
	if level == sandbox.None {
		o.Mode = Off
	}
	x.exec = newExec(o)
	if runner, err := x.exec.confine.find(); err != nil || runner.Level != level {
		if level == sandbox.Landlock {
			t.Fatalf("the kernel that tests run on must have Landlock: %v", err)
		}
		t.Skipf("SKIPPED, NOTHING IS PROVED: no %s here: %v (apt-get install bubblewrap)", level, err)
	}
	x.access = permission.Default(x.w)
	x.before = x.state()
	return x
}

// listen counts who comes.
func (x *world) listen() {
	for _, l := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", x.o + "/socket"}, {"unix", x.d + "/daycare.sock"}, {"unix", "@" + rand.Text()}} {
		lis, err := net.Listen(l.network, l.address)
		if err != nil {
			x.t.Fatal(err)
		}
		x.t.Cleanup(func() { lis.Close() })
		if l.network == "tcp" {
			_, x.tcp, _ = net.SplitHostPort(lis.Addr().String())
		}
		if strings.HasPrefix(l.address, "@") {
			x.abstract = l.address[1:]
		}
		go func() {
			for {
				c, err := lis.Accept()
				if err != nil {
					return
				}
				x.reached.Add(1)
				c.Close()
			}
		}()
	}
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { p.Close() })
	_, x.udp, _ = net.SplitHostPort(p.LocalAddr().String())
	go func() {
		for {
			if _, _, err := p.ReadFrom(make([]byte, 10)); err != nil {
				return
			}
			x.reached.Add(1)
		}
	}()
}

// state is a hash of everything that no command may change.
func (x *world) state() string {
	sum := sha256.New()
	for _, root := range []string{x.o, x.d, x.h, x.w + "/.git/hooks", x.w + "/.git/config"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				fmt.Fprintln(sum, path, "gone")
				return nil
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			fmt.Fprintln(sum, path, info.Mode())
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(path)
				fmt.Fprintln(sum, info.ModTime(), string(data), err)
			}
			return nil
		})
		if err != nil {
			x.t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// try runs one script and says why it got out, or nothing.
func (x *world) try(e escape) string {
	x.t.Helper()
	heard := x.reached.Load()
	env := map[string]string{"W": x.w, "O": x.o, "D": x.d, "H": x.h, "PID": fmt.Sprint(os.Getpid()), "TCP": x.tcp, "UDP": x.udp, "ABS": x.abstract}
	if strings.HasPrefix(e.name, "variables") {
		env["LD_PRELOAD"], env["LD_AUDIT"], env["BASH_ENV"] = x.w+"/sub/evil.so", x.w+"/sub/evil.so", x.w+"/sub/evil.sh"
	}
	args := a{"command": e.script, "env": env, "timeoutMs": 10_000, "workdir": x.w}
	res := run(x.t, x.t.Context(), x.exec, newCall(x.t, x.access, args))
	if strings.Contains(res.Text, "sandbox could not be made") {
		x.t.Errorf("%s: nothing was tried: %s", e.name, res.Text)
	}
	time.Sleep(2 * time.Millisecond) // for a datagram
	now := x.state()
	changed := now != x.before
	x.before = now
	for canary := range strings.FieldsSeq("ESCAPED " + canaries) {
		if strings.Contains(res.Text, canary) {
			return "it printed " + canary
		}
	}
	if x.reached.Load() != heard {
		return "somebody outside heard it"
	}
	if changed {
		return "something outside changed"
	}
	return ""
}

// TestEscapes runs the table at each level: nothing gets out.
func TestEscapes(t *testing.T) {
	t.Setenv("DAYCARE_CANARY", "canary-env")
	for _, level := range []sandbox.Level{sandbox.Bwrap, sandbox.Landlock} {
		t.Run(string(level), func(t *testing.T) {
			x := newWorld(t, level)
			evil(t, x)
			for _, e := range escapes {
				if why := x.try(e); why != "" {
					t.Errorf("%s: %s", e.name, why)
				}
			}
			t.Logf("%s: %d scripts", level, len(escapes))
		})
	}
}

// evil builds what LD_PRELOAD would load: code in whatever starts the sandbox.
func evil(t *testing.T, x *world) {
	source := x.root + "/evil.c"
	code := `#include <stdio.h>
__attribute__((constructor)) static void run(void) { FILE *f = fopen("` + x.o + `/planted", "w"); if (f) fclose(f); }`
	if err := os.WriteFile(source, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", x.w+"/sub/evil.so", source).CombinedOutput(); err != nil {
		t.Logf("LD_PRELOAD is not tried: %v %s", err, out)
	}
	if err := os.WriteFile(x.w+"/sub/evil.sh", []byte("touch "+x.o+"/planted\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Without a sandbox most of the table gets out: a table that nothing passes proves
// something.
func TestEscapesAreReal(t *testing.T) {
	if os.Getuid() == 0 && testing.Short() {
		t.Skip("short")
	}
	t.Setenv("DAYCARE_CANARY", "canary-env")
	tried, out := 0, 0
	var held []string
	for _, e := range escapes {
		if e.system {
			continue
		}
		x := newWorld(t, sandbox.None)
		evil(t, x)
		tried++
		if x.try(e) != "" {
			out++
		} else {
			held = append(held, e.name)
		}
	}
	t.Logf("without a sandbox %d of %d get out; held: %s", out, tried, strings.Join(held, ", "))
	if out < tried/2 {
		t.Errorf("only %d of %d scripts get out where nothing holds them: the table proves little", out, tried)
	}
}

// What is granted works in the sandbox.
func TestSandboxedWork(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.Bwrap, sandbox.Landlock} {
		t.Run(string(level), func(t *testing.T) {
			x := newWorld(t, level)
			extra := filepath.Join(x.root, "granted")
			if err := os.MkdirAll(extra, 0o755); err != nil {
				t.Fatal(err)
			}
			os.WriteFile(filepath.Join(extra, "read.txt"), []byte("readable"), 0o644)
			x.access.ReadDirs = []string{extra}
			for _, script := range []string{
				`cat main.go`, `echo new > sub/new && cat sub/new && rm sub/new`, `ls -la > /dev/null`, `echo x >> main.go`,
				`mkdir -p sub/a/b && mv sub/a sub/c && rm -r sub/c`, `ln sub/file sub/second && rm sub/second`,
				`cat ` + extra + `/read.txt`, `! touch ` + extra + `/no`, `test -d $HOME && echo x > $HOME/.cache-test`,
				`t=$(mktemp) && echo x > $t && rm $t`, `echo x | tee /dev/null | wc -l`, `sleep 0 & wait`, `bash -c 'exit 0'`,
				`perl -e 'print 1+1'`, `cat <<< here`, `diff <(echo a) <(echo a)`, `git --version`, `sort -u main.go -o sub/s`,
				`/usr/bin/python3 -c 'import subprocess,socket; subprocess.check_call(["true"]); socket.socketpair()'`, `cat /etc/passwd >/dev/null`,
				`head -c 10 /dev/urandom >/dev/null`, `(trap "echo bye" EXIT; exit 0)`, `id -u && uname -a`,
			} {
				res := run(t, t.Context(), x.exec, newCall(t, x.access, a{"command": script, "workdir": x.w}))
				if res.Status != "" {
					t.Errorf("%s\n%s", script, res.Text)
				}
			}
			if need, err := x.exec.Needs(newCall(t, x.access, a{"command": "true", "workdir": x.w})); need != nil || err != nil {
				t.Errorf("a command in the sandbox asks: %v %v", need, err)
			}
		})
	}
}

// New files in the workspace itself: bubblewrap only, as docs/sandbox.md says.
func TestTopLevelFiles(t *testing.T) {
	x := newWorld(t, sandbox.Bwrap)
	if res := run(t, t.Context(), x.exec, newCall(t, x.access, a{"command": "echo x > top && mkdir dir && git init -q dir/r && cd dir/r && git -c user.name=x -c user.email=x commit -q --allow-empty -m x", "workdir": x.w})); res.Status != "" {
		t.Error(res.Text)
	}
	x = newWorld(t, sandbox.Landlock)
	if res := run(t, t.Context(), x.exec, newCall(t, x.access, a{"command": "echo x > top", "workdir": x.w})); res.Status != tools.Failed {
		t.Errorf("it works now; say so in docs/sandbox.md: %s", res.Text)
	}
}
