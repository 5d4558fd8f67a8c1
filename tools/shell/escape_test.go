package shell

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	app, pts           string       // a socket in the workspace, a terminal of the user
	reached            atomic.Int32 // how often someone outside heard something
	exec               *Exec
	before             string
	access             permission.Set
}

const canaries = "canary-outside canary-data canary-env canary-key"

func newWorld(t *testing.T, level sandbox.Level) *world {
	t.Helper()
	root := shortDir(t)
	x := &world{t: t, root: root, w: filepath.Join(root, "work"), o: filepath.Join(root, "outside"), h: filepath.Join(root, "home")}
	x.d = filepath.Join(x.w, ".daycare")

	write(t, map[string]string{root + "-other": "canary-outside", x.h + "/.ssh/id": "canary-key", x.h + "/.bashrc": "#",
		x.gitSystem(): "[maintenance]\n\tauto = false\n"}) // it takes the time of another use of git; a repository can still ask for it
	x.furnish()
	write(t, map[string]string{
		x.w + "/.git/config": "[core]\n\trepositoryformatversion = 0\n", x.w + "/.git/HEAD": "ref: refs/heads/main\n",
		x.w + "/.git/hooks/README": "", x.w + "/.git/objects/.keep": "", x.w + "/.git/refs/.keep": ""})
	x.app = x.w + "/sub/app.sock"
	x.listen()
	x.tempt()
	x.exec, _, _ = held(t, level)
	x.exec.options.Denied = []string{x.d, x.h + "/.ssh", x.h + "/.bashrc"}
	x.exec.options.Home = func(string) string { return filepath.Join(x.root, "cmdhome") }
	x.exec.confine.options = x.exec.options
	x.access = permission.Default(x.w)
	x.before = x.state()

	return x
}

// furnish makes what is in the workspace, and beside it.
func (x *world) furnish() {
	write(x.t, map[string]string{
		x.o + "/secret": "canary-outside", x.d + "/settings.yaml": "canary-data", x.d + "/agents/other/history.jsonl": "canary-data",
		x.d + "/agents/me/state.json": "{}", x.d + "/drop/.keep": "", x.w + "/deep/file": "x",
		x.w + "/sub/how.pm": "package how; END { print STDERR \"$!\\n\" if $! } $! = 0; 1;\n", // a Perl script says what it was refused
		x.w + "/sub/file":   "x", x.w + "/main.go": "package main", x.w + "/linked": "",
	})
}

// another is one more workspace of the same commands, a repository with an outside of its own.
func (x *world) another() *world {
	n := fmt.Sprint(len(x.access.WriteDirs))
	y := &world{t: x.t, root: x.root, w: x.w + n, o: x.o + n, d: filepath.Join(x.w+n, ".daycare"), h: x.h, exec: x.exec}
	y.furnish()
	y.repository()
	x.exec.options.Denied = append(x.exec.options.Denied, y.d)
	x.exec.confine.options = x.exec.options
	x.access.WriteDirs = append(x.access.WriteDirs, y.w)

	return y
}

// write makes files, by path.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shortDir is a folder for the test with a path short enough for sockets in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		os.Remove(dir + "-other")
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// listen counts who comes.
func (x *world) listen() {
	for _, l := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", x.o + "/socket"},
		{"unix", x.d + "/daycare.sock"}, {"unix", "@" + rand.Text()},
		{"unix", x.app}, {"unix", x.w + "/deep/app.sock"}} {
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

	for _, l := range []struct{ network, address string }{{"udp", "127.0.0.1:0"}, {"unixgram", x.w + "/sub/app.dgram"}} {
		p, err := net.ListenPacket(l.network, l.address)
		if err != nil {
			x.t.Fatal(err)
		}
		x.t.Cleanup(func() { p.Close() })
		if l.network == "udp" {
			_, x.udp, _ = net.SplitHostPort(p.LocalAddr().String())
		}

		go func() {
			for {
				if _, _, err := p.ReadFrom(make([]byte, 10)); err != nil {
					return
				}
				x.reached.Add(1)
			}
		}()
	}
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

// try runs one script and says why it got out, or nothing, and what it printed.
func (x *world) try(e escape) (why, said string) {
	x.t.Helper()
	heard := x.reached.Load()
	env := x.env()
	if strings.HasPrefix(e.name, "variables") {
		env["LD_PRELOAD"], env["LD_AUDIT"], env["BASH_ENV"] = x.w+"/sub/evil.so", x.w+"/sub/evil.so", x.w+"/sub/evil.sh"
	}
	text := x.sh(e.script, env)

	return cmp.Or(printed(text), x.noticed(heard)), text
}

// tryTogether runs scripts one after the other in one sandbox. Where something outside noticed, or one of them was not
// run to its end, it cannot tell which, and each is run alone. It calls judge for each.
func (x *world) tryTogether(list []escape, judge func(e escape, why, said string)) {
	x.t.Helper()
	heard := x.reached.Load()
	var scripts []string
	for _, e := range list {
		scripts = append(scripts, e.script)
	}

	said, _ := x.together(scripts)
	whole := x.noticed(heard) == ""
	for i, e := range list {
		text, ended := said[i]
		why := printed(text)
		if !whole || !ended {
			why, text = x.try(e)
		}
		judge(e, why, text)
	}
}

// together runs scripts one after the other in one sandbox, each in a shell of its own. It returns what each that was run
// to its end printed, by its number, and what is printed after them: what was put aside.
func (x *world) together(scripts []string) (said map[int]string, after string) {
	x.t.Helper()
	var all strings.Builder
	for i, script := range scripts {
		// Encoded: scripts that print command lines must not print canaries of others.
		fmt.Fprintf(&all, "echo; echo begin-%d; (eval $'", i)
		for _, b := range []byte(script) {
			fmt.Fprintf(&all, `\x%02x`, b)
		}
		fmt.Fprintf(&all, "') </dev/null 2>&1; echo; echo end-%d\n", i)
	}

	after = x.sh(all.String(), x.env())
	said = map[int]string{}
	for i := range scripts {
		_, rest, begun := strings.Cut(after, fmt.Sprintf("\nbegin-%d\n", i))
		text, rest, ended := strings.Cut(rest, fmt.Sprintf("\nend-%d\n", i))
		if begun && ended {
			said[i], after = text, "\n"+rest
		}
	}

	return said, after
}

func (x *world) env() map[string]string {
	viewed := ""
	if x.exec.confine.runner.HasView() {
		viewed = "1"
	}
	return map[string]string{"VIEWED": viewed, "PY": "/usr/bin/python3 -S", // not one of a version manager in the home, and begun sooner
		"PERL5OPT": "-I" + x.w + "/sub -Mhow", "W": x.w, "O": x.o, "D": x.d, "H": x.h, "PID": fmt.Sprint(os.Getpid()),
		"TCP": x.tcp, "UDP": x.udp, "ABS": x.abstract,
		"APP": x.app, "PTS": x.pts}
}

func (x *world) sh(script string, env map[string]string) string {
	x.t.Helper()
	res := run(x.t, x.t.Context(), x.exec, newCall(x.t, x.access, a{"command": script, "env": env, "timeoutMs": 60_000, "workdir": x.w}))
	if strings.Contains(res.Text, "sandbox could not be made") {
		x.t.Errorf("nothing was tried: %s\n%s", script, res.Text)
	}
	return res.Text
}

// printed says what an output holds that only an escape could print.
func printed(text string) string {
	for canary := range strings.FieldsSeq("ESCAPED " + canaries) {
		if strings.Contains(text, canary) {
			return "it printed " + canary
		}
	}
	return ""
}

// noticed says what was noticed outside since so many were heard.
func (x *world) noticed(heard int32) string {
	time.Sleep(2 * time.Millisecond) // for a datagram
	now := x.state()
	changed := now != x.before
	x.before = now

	switch {
	case x.reached.Load() != heard:
		return "somebody outside heard it"
	case changed:
		return "something outside changed"
	}
	return ""
}

// Where no sandbox works, a user is asked for every script, whatever was granted
// for good; nobody there to answer, it is not run (the runtime sees to that).
func TestEscapesAreAskedForWithoutASandbox(t *testing.T) {
	e := newExec(Options{Mode: Sandbox, SandboxOptions: SandboxOptions{Sandbox: "auto"}})
	access := workspace(t)
	access.Exec = []string{"cat", "ln", "perl", "python3", "echo", "cd"}
	for _, x := range escapes {
		need, err := e.Needs(newCall(t, access, a{"command": x.script}))
		if err != nil || need == nil || !need.AskAlways {
			t.Errorf("%s: %+v %v", x.name, need, err)
		}
	}
	t.Logf("none: %d scripts, each is asked for", len(escapes))
}

// evilCode is built once; whom it writes to stands in the environment.
var evilCode = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "daycare-evil-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	code := `#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void run(void) { char p[4096]; const char *o = getenv("O");
if (!o) return; snprintf(p, sizeof p, "%s/planted", o); FILE *f = fopen(p, "w"); if (f) fclose(f); }`
	if err := os.WriteFile(dir+"/evil.c", []byte(code), 0o644); err != nil {
		return nil, err
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", dir+"/evil.so", dir+"/evil.c").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}

	return os.ReadFile(dir + "/evil.so")
})

// evil puts there what LD_PRELOAD would load: code in whatever starts the sandbox.
func evil(t *testing.T, x *world) {
	code, err := evilCode()
	if err != nil {
		t.Logf("LD_PRELOAD is not tried: %v", err)
	}
	for name, data := range map[string][]byte{"evil.so": code, "evil.sh": []byte("touch " + x.o + "/planted\n")} {
		if err := os.WriteFile(filepath.Join(x.w, "sub", name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// What is granted works in the sandbox.
func TestSandboxedWork(t *testing.T) {
	t.Parallel()
	for _, level := range sandboxed {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			x := newWorld(t, level)
			extra := filepath.Join(x.root, "granted")
			if err := os.MkdirAll(extra, 0o755); err != nil {
				t.Fatal(err)
			}

			os.WriteFile(filepath.Join(extra, "read.txt"), []byte("readable"), 0o644)
			x.access.ReadDirs = []string{extra}
			scripts := []string{
				`cat main.go`, `echo new > sub/new && cat sub/new && rm sub/new`, `ls -la > /dev/null`, `echo x >> main.go`,
				`mkdir -p sub/a/b && mv sub/a sub/c && rm -r sub/c`, `ln sub/file sub/second && rm sub/second`,
				`cat ` + extra + `/read.txt`, `! touch ` + extra + `/no`, `test -d $HOME && echo x > $HOME/.cache-test`,
				`t=$(mktemp) && echo x > $t && rm $t`, `echo x | tee /dev/null | wc -l`, `sleep 0 & wait`, `bash -c 'exit 0'`,
				`perl -e 'print 1+1'`, `cat <<< here`, `diff <(echo a) <(echo a)`, `git --version`, `sort -u main.go -o sub/s`,
				`/usr/bin/python3 -c 'import subprocess,socket; subprocess.check_call(["true"]); socket.socketpair()'`,
				`cat /etc/passwd >/dev/null`,
				`head -c 10 /dev/urandom >/dev/null`, `(trap "echo bye" EXIT; exit 0)`, `id -u && uname -a`,
			}
			var all strings.Builder
			for i, script := range scripts {
				fmt.Fprintf(&all, "( %s\n) || echo failed-%d\n", script, i)
			}

			res := run(t, t.Context(), x.exec,
				newCall(t, x.access, a{"command": all.String() + "echo all-run", "workdir": x.w, "timeoutMs": 60_000}))
			if !strings.Contains(res.Text, "all-run\n") {
				t.Errorf("not all was run: %s", res.Text)
			}

			for i, script := range scripts {
				if strings.Contains(res.Text, fmt.Sprintf("failed-%d\n", i)) {
					t.Errorf("%s does not work:\n%s", script, res.Text)
				}
			}
			if need, err := x.exec.Needs(newCall(t, x.access, a{"command": "true", "workdir": x.w})); need != nil || err != nil {
				t.Errorf("a command in the sandbox asks: %v %v", need, err)
			}
		})
	}
}

// New files in the workspace itself, beside .daycare: wherever a command has a view of
// its own.
func TestTopLevelFiles(t *testing.T) {
	t.Parallel()
	for _, level := range sandboxed {
		x := newWorld(t, level)
		res := run(t, t.Context(), x.exec,
			newCall(t, x.access, a{"command": "echo x > top && mkdir dir && git init -q dir/r && cd dir/r && git -c " +
				"user.name=x -c user.email=x commit -q --allow-empty -m x", "workdir": x.w}))
		switch runner, _ := probed[level](); {
		case runner.HasView() && res.Status != "":
			t.Errorf("%s: %s", level, res.Text)
		case !runner.HasView() && (res.Status != tools.Failed || !strings.Contains(res.Text, "no new entries in a folder that holds")):
			t.Errorf("%s: it works now, or does not say why it cannot: %s", level, res.Text)
		}
	}
}
