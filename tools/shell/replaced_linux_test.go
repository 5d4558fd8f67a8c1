package shell

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"daycare/engine/attacktest"
	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// colleague makes x's agent one that works in sub/mole of the workspace alone.
func (x *world) colleague() (mole string) {
	mole = filepath.Join(x.w, "sub", "mole")
	for path, text := range map[string]string{mole + "/note": "mine", x.w + "/private/secret": "canary-data",
		x.w + "/decoy/mole/secret": "canary-data"} {
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			x.t.Fatal(err)
		}
	}

	x.exec.options.Folders = permission.NewFolders(x.w)
	x.exec.confine.options = x.exec.options
	x.access = permission.Default(mole)
	if err := x.exec.options.Folders.Know(x.access); err != nil {
		x.t.Fatal(err)
	}
	return mole
}

// A command of an agent that works in sub/mole neither reads nor writes what someone with more
// rights put in the place of that folder, at each level, and is told why.
func TestReplacedFolder(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		for name, replace := range map[string]func(x *world, mole string){
			"link to the root":    func(x *world, mole string) { os.Rename(mole, x.w+"/away"); os.Symlink("/", mole) },
			"link to the outside": func(x *world, mole string) { os.Rename(mole, x.w+"/away"); os.Symlink(x.o, mole) },
			"link to .daycare":    func(x *world, mole string) { os.Rename(mole, x.w+"/away"); os.Symlink(x.d, mole) },
			"link above": func(x *world, mole string) {
				os.Rename(x.w+"/sub",
					x.w+"/away")
				os.Symlink(x.w+"/decoy", x.w+"/sub")
			},
			"another folder":       func(x *world, mole string) { os.Rename(mole, x.w+"/away"); os.Rename(x.w+"/private", mole) },
			"another folder above": func(x *world, mole string) { os.Rename(x.w+"/sub", x.w+"/away"); os.Rename(x.w+"/decoy", x.w+"/sub") },
		} {
			t.Run(name, func(t *testing.T) {
				x := newWorld(t, level)
				mole := x.colleague()
				script := "cat note secret " + mole + "/secret " + x.o + "/secret; touch planted " + x.o + "/planted"
				if res := run(t, t.Context(), x.exec,
					newCall(t, x.access, a{"command": script})); !strings.Contains(res.Text, "mine") || printed(res.Text) != "" {
					t.Fatalf("before: %s", res.Text)
				}

				replace(x, mole)
				x.before = x.state()
				res := run(t, t.Context(), x.exec, newCall(t, x.access, a{"command": script}))
				if res.Status != tools.Denied ||
					!strings.Contains(res.Text, "is not the folder that access was granted to") &&
						!strings.Contains(res.Text, "never open") {
					t.Errorf("%s: %s", res.Status, res.Text)
				}
				if why := printed(res.Text); why != "" || x.state() != x.before {
					t.Errorf("%s, or something outside changed", why)
				}

				attacktest.Held(t, attacktest.Row{Class: "replaced folders", Level: asWhom(level),
					How: "the grant is pinned to the folder", Name: name})
			})
		}
	})
}

// A folder that was granted beside the working folder and was replaced is not shown.
func TestReplacedBeside(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		mole := x.colleague()
		own := filepath.Join(x.root, "own")
		if err := os.Mkdir(own, 0o755); err != nil {
			t.Fatal(err)
		}

		x.access = permission.Set{WorkingDir: own, WriteDirs: []string{mole}}
		os.Rename(mole, x.w+"/away")
		os.Symlink(x.o, mole)
		x.before = x.state()
		res := run(t, t.Context(), x.exec,
			newCall(t, x.access, a{"command": "echo x > here; cat here; cat " + mole + "/secret " + x.o +
				"/secret; touch " + mole + "/planted"}))
		if why := printed(res.Text); why != "" || !strings.HasPrefix(res.Text, "x\n") || x.state() != x.before {
			t.Errorf("%s: %s", why, res.Text)
		}
	})
}

// Someone exchanges the folder for a link out, or for another folder, while commands start.
// DAYCARE_LONG=1 makes it thousands of commands each.
func TestSwappedFolder(t *testing.T) {
	commands := 40
	if os.Getenv("DAYCARE_LONG") != "" {
		commands = 3000
	}
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		for name, make := range map[string]func(x *world) string{
			"link":   func(x *world) string { os.Symlink(x.o, x.w+"/l"); return x.w + "/l" },
			"folder": func(x *world) string { return x.w + "/private" },
		} {
			t.Run(name, func(t *testing.T) {
				x := newWorld(t, level)
				mole := x.colleague()
				other := make(x)
				x.before = x.state()
				var stop atomic.Bool
				var wg sync.WaitGroup
				wg.Go(func() {
					for !stop.Load() {
						unix.Renameat2(unix.AT_FDCWD, mole, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
						time.Sleep(200 * time.Microsecond)
					}
				})

				ran, wins := 0, 0
				for range commands {
					res := run(t, t.Context(), x.exec,
						newCall(t, x.access, a{"command": "cat secret note; touch planted; cat " + mole + "/secret"}))
					if printed(res.Text) != "" {
						wins++
					}
					if strings.Contains(res.Text, "mine") {
						ran++
					}
				}

				stop.Store(true)
				wg.Wait()
				t.Logf("%d tries: %d ran in their own folder, %d wins", commands, ran, wins)
				if wins > 0 || x.state() != x.before {
					t.Errorf("%d wins in %d tries, or something outside changed", wins, commands)
				}
			})
		}
	})
}

// A command reads the attachments that it is shown, and no other of their folder.
func TestAttachments(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		for name, text := range map[string]string{"mine__a.txt": "mine", "other__b.txt": "canary-data"} {
			os.MkdirAll(x.d+"/files", 0o755)
			if err := os.WriteFile(filepath.Join(x.d, "files", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}

		os.RemoveAll(x.w + "/.git")
		x.exec.options.Shown = func(string) (read, write []string) {
			return []string{x.d + "/files/mine__a.txt", x.d + "/files/gone__c.txt"}, nil
		}
		x.exec.confine.options = x.exec.options
		res := run(t, t.Context(), x.exec,
			newCall(t, x.access, a{"command": "cat .daycare/files/mine__a.txt; cat .daycare/files/other__b.txt; cat " +
				".daycare/files/*; echo x > .daycare/files/mine__a.txt && echo ESCAPED", "workdir": x.w}))
		if why := printed(res.Text); why != "" || !strings.HasPrefix(res.Text, "mine") {
			t.Errorf("%s: %s", why, res.Text)
		}
	})
}
