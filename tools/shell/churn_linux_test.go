//go:build !race

package shell

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"daycare/tools/shell/sandbox"
)

// comings are what programs of the user do beside an agent, again and again, with things that
// commands must not reach or change: each is done, and undone.
var comings = map[string]func(dir string) error{
	"a socket": func(dir string) error {
		lis, err := net.Listen("unix", filepath.Join(dir, "run.sock"))
		if err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
		return lis.Close()
	},
	"a file of keys": func(dir string) error {
		path := filepath.Join(dir, ".netrc")
		os.WriteFile(path, nil, 0o600) // it can be put aside at any time, as a command runs
		time.Sleep(time.Millisecond)
		os.Remove(path)
		return nil
	},
	"a folder of keys": func(dir string) error {
		build := filepath.Join(dir, "build")
		os.MkdirAll(filepath.Join(build, ".ssh"), 0o700)
		time.Sleep(time.Millisecond)
		os.RemoveAll(build) // the same
		return nil
	},
	"an editor that saves": func(dir string) error {
		path := filepath.Join(dir, ".envrc")
		os.WriteFile(path+".new", nil, 0o600)
		time.Sleep(100 * time.Microsecond)
		os.Rename(path+".new", path)
		return nil
	},
}

// TestCommandsRunWhileFilesComeAndGo: what is hidden from a command or locked for it can be
// removed while the command starts. The command runs all the same, and nothing is left in the
// place of what was removed. DAYCARE_LONG=1 makes it many commands.
func TestCommandsRunWhileFilesComeAndGo(t *testing.T) {
	commands := 15
	if os.Getenv("DAYCARE_LONG") != "" {
		commands = 1000
	}
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for what, happens := range comings {
			wg.Go(func() {
				for !stop.Load() {
					if err := happens(filepath.Join(x.w, "sub")); err != nil {
						t.Errorf("%s: %v", what, err)
						return
					}
				}
			})
		}

		for range commands {
			text := x.sh("echo x >deep/out && rm deep/out && echo fine", x.env())
			if !strings.HasPrefix(text, "fine\n") || strings.Contains(text, "could not be") {
				t.Errorf("a command: %s", text)
			}
		}

		stop.Store(true)
		wg.Wait()
		for _, name := range []string{"run.sock", ".netrc"} {
			if _, err := os.Lstat(filepath.Join(x.w, "sub", name)); err == nil {
				t.Errorf("%s is there, which was removed", name)
			}
		}
	})
}
