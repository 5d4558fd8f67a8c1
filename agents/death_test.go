package agents

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/disk/disktest"
	"daycare/engine/record"
)

// deadly is a model whose calls end the process, once ready says that it is time.
type deadly struct {
	ready func() bool
	end   func()
}

func (d deadly) Call(context.Context, *providers.Request, func(providers.Event)) (*providers.Response, error) {
	for until := time.Now().Add(time.Minute); !d.ready() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	d.end()
	return nil, nil
}

// workAt has the bench work on an agent's folder that is there already.
func (b *bench) workAt(dir string) {
	b.t.Helper()
	b.box.Close()
	b.dir, b.vol = dir, disk.NewVolume(filepath.Dir(filepath.Dir(dir)))
	b.opts.Dir, b.opts.Volume = b.dir, b.vol
	b.openBox()
}

// A message whose model call ends the process, without any tool, is set aside after three
// deaths: by kill -9, and by a power cut that leaves only what was synced.
func TestAMessageThatKillsItsProcessIsSetAside(t *testing.T) {
	if dir := os.Getenv("AGENTS_DEATH_DIR"); dir != "" {
		die(t, dir)
		return
	}
	for _, way := range []string{"kill", "power cut"} {
		t.Run(way, func(t *testing.T) {
			b := newBench(t, callHold)
			item := b.say("x")
			b.box.Close()
			mirror := crash.OpenMirror(t.TempDir())
			keepAll(t, mirror, b.dir)
			for n := range maxAttempts {
				cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()[:strings.Index(t.Name(), "/")]+"$")
				cmd.Env = append(os.Environ(), "AGENTS_DEATH_DIR="+b.dir, "AGENTS_DEATH_WAY="+way,
					"DAYCARE_FAILPOINT_MIRROR="+mirror.Path(""), "GORACE=atexit_sleep_ms=0", "TMPDIR="+t.TempDir())
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() >= 0 {
					t.Fatalf("death %d: %v, want a kill\n%s", n+1, err, out)
				}
				if way == "power cut" {
					restore(t, mirror, b.dir)
				}
			}

			b.openBox()
			b.run()
			if o := b.outcome(item); o.Reason != record.ReasonPoison {
				t.Errorf("outcome %+v, want poison\n%s", o, b.history())
			}
		})
	}
}

// keepAll notes all of a folder as durable.
func keepAll(t *testing.T, m *crash.Mirror, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"."}, names(entries)...) {
		f, err := os.Open(filepath.Join(dir, name))
		if err == nil {
			err = errors.Join(m.Sync(f, (*os.File).Sync), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func names(entries []os.DirEntry) (list []string) {
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// survives is what a power cut would leave of a folder now, by name.
func survives(t *testing.T, m *crash.Mirror, dir string) map[string]string {
	t.Helper()
	id, err := crash.FileID(dir)
	if err != nil {
		t.Fatal(err)
	}
	durable, err := m.Names(id)
	if err != nil {
		t.Fatal(err)
	}

	files := map[string]string{}
	for name, there := range durable {
		data, err := os.ReadFile(m.Path(there.ID)) // nothing of it, if it was never synced
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		files[name] = string(data)
	}

	return files
}

// restore puts a folder back to what a power cut would have left of it.
func restore(t *testing.T, m *crash.Mirror, dir string) {
	t.Helper()
	left := survives(t, m, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names(entries) {
		path := filepath.Join(dir, name)
		if content, ok := left[name]; ok {
			err = os.WriteFile(path, []byte(content), 0o600)
		} else {
			err = os.RemoveAll(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// die works on an agent until its model is called, and ends the process then.
func die(t *testing.T, dir string) {
	b := newBench(t, callHold)
	b.workAt(dir)
	had := b.count("turn_begin")
	ready := func() bool { return true }
	if os.Getenv("AGENTS_DEATH_WAY") == "power cut" {
		mirror := crash.OpenMirror(os.Getenv("DAYCARE_FAILPOINT_MIRROR"))
		ready = func() bool {
			return strings.Count(survives(t, mirror, dir)["history.jsonl"], `"type":"turn_begin"`) > had
		}
	}
	b.opts.Model = func(record.Model) Model {
		return deadly{ready, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }}
	}
	b.opts.Run(context.Background())
}

// Another machine, which has only what was replicated, counts the deaths too.
func TestDeathsAreCountedElsewhere(t *testing.T) {
	b := newBench(t, callHold)
	b.box.Close()
	elsewhere := disktest.New(b.dir, func(rel string) bool { return rel == "inbox.jsonl" || rel == "history.jsonl" }, nil)
	b.vol.Replicate(elsewhere, true)
	b.openBox()
	item := b.say("x")

	for n := range maxAttempts {
		counted := func() bool {
			return strings.Count(elsewhere.Files()["history.jsonl"], `"type":"turn_begin"`) > n
		}
		b.opts.Model = func(record.Model) Model { return deadly{counted, func() { panic("the machine dies") }} }
		func() {
			defer func() { recover() }()
			b.opts.Run(context.Background())
		}()
		b.box.Close()
		if !counted() {
			t.Fatalf("attempt %d is not counted elsewhere", n+1)
		}
		for rel, content := range elsewhere.Files() {
			if err := os.WriteFile(filepath.Join(b.dir, rel), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.openBox()
	}

	b.run()
	if o := b.outcome(item); o.Reason != record.ReasonPoison {
		t.Errorf("outcome %+v, want poison\n%s", o, b.history())
	}
}
