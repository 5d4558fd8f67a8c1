package shell

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/tools/shell/sandbox"
)

// serving starts a service at a level of the sandbox, with secrets around it that it must not
// reach: another agent's folder, the socket of the daemon and auth.json in the hidden folder,
// and keys in the user's home.
func serving(t *testing.T, level sandbox.Level, script string, change func(*Service)) (*Serving, string, *buffer) {
	t.Helper()
	held(t, level) // skips
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".daycare/auth.json", ".daycare/daycare.sock", ".daycare/agents/x/history.jsonl", "user/.ssh/id_rsa"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700)
		if err := os.WriteFile(filepath.Join(dir, path), []byte("canary-file"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Mode: Sandbox, grace: time.Second, SandboxOptions: SandboxOptions{
		Sandbox: string(level), Helper: sandbox.Self(), Denied: []string{filepath.Join(dir, ".daycare")}}}
	if level == sandbox.None {
		o.Mode = Off
	}
	s := NewServices(o)
	runner, err := probed[level]()
	if err != nil {
		t.Fatal(err)
	}
	s.confine.once.Do(func() { s.confine.runner = runner })
	errs := &buffer{}
	v := Service{Name: "peer", Argv: []string{"sh", "-c", script}, Home: filepath.Join(dir, ".daycare", "home"), Errors: errs}
	if change != nil {
		change(&v)
	}
	run, err := s.Start(v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return run, dir, errs
}

// A buffer is for two goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestAServiceIsSpokenToAndItsErrorsAreApart(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			run, _, errs := serving(t, level, `echo starting >&2; while read x; do echo "got $x, $KEY"; done; exit 3`,
				func(v *Service) { v.Env = []string{"KEY=value"} })
			in := bufio.NewReader(run)
			for _, word := range []string{"one", "two"} {
				fmt.Fprintln(run, word)
				if line, err := in.ReadString('\n'); line != "got "+word+", value\n" {
					t.Fatalf("%q, %v", line, err)
				}
			}
			run.Close()
			if run.How() != "exit code 3" || errs.String() != "starting\n" {
				t.Errorf("%s, errors %q", run.How(), errs)
			}
			if _, err := in.ReadString('\n'); err == nil {
				t.Error("its output must end with it")
			}
		})
	}
}

// What a service must not reach, at each level of the sandbox: secrets of the daemon and of its
// user, folders of agents, the environment of the daemon, the network.
func TestAServiceReachesNothingButItsOwn(t *testing.T) {
	for _, level := range sandboxed {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			script := `cd "$1"; cat .daycare/auth.json .daycare/daycare.sock .daycare/agents/x/history.jsonl user/.ssh/id_rsa 2>/dev/null
ls -a .daycare user 2>/dev/null; env; cat /proc/*/environ 2>/dev/null | tr '\0' '\n'
echo x > .daycare/auth.json; echo x > user/planted; echo x > "$HOME/own" && cat "$HOME/own"; echo end`
			var root string
			run, dir, _ := serving(t, level, "", func(v *Service) {
				root = filepath.Dir(filepath.Dir(v.Home))
				v.Argv = []string{"sh", "-c", script, "sh", root}
			})
			data, err := io.ReadAll(run)
			text := string(data)
			if err != nil || !strings.HasSuffix(text, "x\nend\n") {
				t.Errorf("%v: %s", err, text)
			}
			for _, bad := range []string{"canary", "id_rsa", "agents\n"} {
				if strings.Contains(text, bad) {
					t.Errorf("it sees %q: %s", bad, text)
				}
			}
			if data, _ := os.ReadFile(filepath.Join(dir, ".daycare", "auth.json")); string(data) != "canary-file" {
				t.Errorf("auth.json is %q", data)
			}
			if _, err := os.Stat(filepath.Join(dir, "user", "planted")); err == nil {
				t.Error("it wrote outside of its folder")
			}
		})
	}
}

func TestAServiceHasTheFoldersOfItsSettings(t *testing.T) {
	t.Parallel()
	shared, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read", "write"} {
		os.Mkdir(filepath.Join(shared, name), 0o755)
		os.WriteFile(filepath.Join(shared, name, "f"), []byte(name+"\n"), 0o644)
	}
	run, _, _ := serving(t, sandbox.Landlock, `cat $R/f $W/f; echo x 2>&- > $R/new; echo x > $W/new; pwd; echo end`, func(v *Service) {
		v.Read, v.Dir = []string{filepath.Join(shared, "read")}, filepath.Join(shared, "write")
		v.Env = []string{"R=" + filepath.Join(shared, "read"), "W=" + filepath.Join(shared, "write")}
	})
	data, _ := io.ReadAll(run)
	if want := "read\nwrite\n" + filepath.Join(shared, "write") + "\nend\n"; string(data) != want {
		t.Errorf("%q, want %q", data, want)
	}
	if _, err := os.Stat(filepath.Join(shared, "read", "new")); err == nil {
		t.Error("it wrote where it may read only")
	}
	if _, err := os.Stat(filepath.Join(shared, "write", "new")); err != nil {
		t.Error(err)
	}
}

func TestNothingOfAServiceSurvivesItsEnd(t *testing.T) {
	t.Parallel()
	for i, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			mark := fmt.Sprintf("%d.%d", 500_000+i, os.Getpid())
			run, _, _ := serving(t, level, strings.ReplaceAll(hydras["double fork"], "MARK", mark), nil)
			for end := time.Now().Add(time.Minute); len(survivors("sleep\x00"+mark)) == 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it does not run")
				}
			}
			run.Close()
			none(t, "sleep\x00"+mark, 7*time.Second)
		})
	}
}

func TestAServiceThatCannotStartSaysWhy(t *testing.T) {
	s := NewServices(Options{Mode: Off, SandboxOptions: SandboxOptions{Helper: sandbox.Self()}})
	for want, v := range map[string]Service{
		"find no-such-program":              {Argv: []string{"no-such-program"}},
		"/none is not a folder to start in": {Argv: []string{"sh"}, Dir: "/none"},
	} {
		v.Home, v.Errors = t.TempDir(), io.Discard
		if _, err := s.Start(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	bare := NewServices(Options{Mode: Sandbox}) // no sandbox can be made without a helper
	v := Service{Name: "peer", Argv: []string{"true"}, Home: t.TempDir(), Errors: io.Discard}
	if _, err := bare.Start(v); err == nil || !strings.Contains(err.Error(), "sandbox: { off: true }") {
		t.Errorf("without a sandbox: %v", err)
	}
}
