//go:build !race

package shell

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"daycare/engine/attacktest"
	"daycare/tools/shell/sandbox"
)

// Hundreds of attacks, each by processes of its own, one after the other: what starts them is
// tried with the race detector by the tests of the other files. .ci/run runs these without it,
// which makes a sandbox several times as expensive.

// TestNoFileWithOtherRightsIsLeftBehind: neither setuid nor setgid, by no call.
func TestNoFileWithOtherRightsIsLeftBehind(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		write(t, map[string]string{x.o + "/set-id": ""}) // on the file system of the workspace, which /usr need not be
		if err := os.Chmod(x.o+"/set-id", 0o755|fs.ModeSetuid); err != nil {
			t.Fatal(err)
		}
		var names, dirs, scripts []string
		for name, script := range marked {
			dir, err := os.MkdirTemp(filepath.Join(x.w, "sub"), "s")
			if err != nil {
				t.Fatal(err)
			}
			names, dirs = append(names, name), append(dirs, dir)
			scripts = append(scripts, "export S="+dir+"; "+script)
		}

		said, _ := x.together(scripts)
		for i, name := range names {
			text, ended := said[i]
			if strings.Contains(text, "ESCAPED") || !ended {
				t.Errorf("%s, to its end %v: %s", name, ended, text)
			}

			filepath.WalkDir(dirs[i], func(path string, e fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				if info, err := e.Info(); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
					t.Errorf("%s left %s: %v", name, path, info.Mode())
				}
				return nil
			})

			attacktest.Held(t, attacktest.Row{Class: "files with other rights", Level: asWhom(level), How: heldBy(text), Name: name})
		}

		t.Logf("%s: %d ways", level, len(marked))
		if out := x.sh(`cp /bin/true $W/sub/f && chmod 700 $W/sub/f && mkdir -m 755 $W/sub/m && install -m 644 $W/main.go $W/sub/i && `+
			`perl -e 'open F, ">", "$ENV{W}/sub/o" or die; syscall(91, fileno(F), 0600) == 0 or die' && echo fine`,
			x.env()); !strings.Contains(out, "fine") {
			if runner, _ := probed[level](); runner.HasView() {
				t.Errorf("other modes: %s", out)
			}
		}
	})
}

// TestNoCommandReachesTheMemoryOfOthers: what is shared by number or key.
func TestNoCommandReachesTheMemoryOfOthers(t *testing.T) {
	t.Parallel()
	key := 0x0da7ca4e ^ os.Getpid()
	shm, err := unix.SysvShmGet(key, 64, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.SysvShmCtl(shm, unix.IPC_RMID, nil)
	data, err := unix.SysvShmAttach(shm, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.SysvShmDetach(data)
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|0o600, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer unix.Syscall(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0)
	message := append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, "canary-data"...)
	// The ways that work take the message and write over what is there.
	renew := func() {
		copy(data, "canary-data")
		for errno := syscall.Errno(0); errno == 0; {
			var taken [72]byte
			_, _, errno = unix.Syscall6(unix.SYS_MSGRCV, queue, uintptr(unsafe.Pointer(&taken)), 64, 0, unix.IPC_NOWAIT, 0)
		}
		unix.Syscall6(unix.SYS_MSGSND, queue, uintptr(unsafe.Pointer(&message[0])), uintptr(len(message)-8),
			unix.IPC_NOWAIT, 0, 0)
	}
	sems, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(key), 1, unix.IPC_CREAT|0o600)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer unix.Syscall(unix.SYS_SEMCTL, sems, 0, unix.IPC_RMID)
	name := fmt.Sprintf("daycare-%d", os.Getpid())
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	mq, _, noNamed := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(path)), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
	if noNamed != 0 {
		t.Logf("no named queue: %v", noNamed)
	}
	defer unix.Close(int(mq))
	defer unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(path)), 0, 0)
	for _, level := range levels {
		x := newWorld(t, level)
		env := x.env()
		env["KEY"], env["NAME"] = fmt.Sprint(key), name
		if runner, _ := probed[level](); runner.HasView() {
			env["VIEW"] = "1"
		}
		// Without a sandbox others on this machine are left alone.
		tried := "0..2000, "
		if level == sandbox.None {
			tried = ""
		}
		for name, own := range map[string]any{"MEMORIES": shm, "QUEUES": queue, "SEMAPHORES": sems} {
			env[name] = tried + fmt.Sprint(own)
		}
		for what, script := range talks {
			takesAway := strings.Contains(what, "removed") || strings.Contains(what, "gone") || strings.Contains(what, "numbers")
			if level == sandbox.None && takesAway {
				continue // from the others what they try to reach
			}
			renew()
			text := x.sh(script, env)
			switch why := printed(text); {
			case why != "" && level != sandbox.None:
				t.Errorf("%s: %s: %s", level, what, why)
			case level != sandbox.None:
				attacktest.Held(t, attacktest.Row{Class: "memory of others", Level: asWhom(level), How: heldBy(text), Name: what})
			case why == "" && what != "memory, listed" && !(noNamed != 0 && what == "named queue"):
				t.Errorf("without a sandbox, %s does not work: it proves nothing\n%s", what, text)
			}
		}
	}
	t.Logf("%d ways", len(talks))
	attacktest.AsUser(t)
}

// TestMemoryOfACommandIsBounded: what takes more is ended, the model is told, and what
// takes less is not, however many processes share it.
func TestMemoryOfACommandIsBounded(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			e, _, _ := held(t, level)
			small := *e.confine.runner
			small.Memory = 30 << 20
			e.confine.runner = &small

			for name, script := range map[string]string{
				"one":        `perl -e '$x = "a" x (8 << 20); push @all, $x . $_ for 1..9; sleep 4; print "still"."-here"'`,
				"many":       `for i in 1 2 3 4 5 6; do perl -e '$x = "a" x (10 << 20); sleep 4; print "still"."-here"' & done; wait`,
				"left group": `setsid perl -e '$x = "a" x (80 << 20); sleep 4; print "still"."-here"' & wait`,
			} {
				res := run(t, t.Context(), e, newCall(t, workspace(t), a{"command": script}))
				// Where the kernel bounds it, it ends processes until the rest fits.
				if strings.Count(res.Text, "still-here") > 2 || !strings.Contains(res.Text, "a command may use 30") {
					t.Errorf("%s: %s", name, res.Text)
				}
			}

			shared := `perl -e '$x = "a" x (5 << 20); for (1..5) { fork or do { sleep 1; exit } } wait for 1..5; print "fine"'`
			if res := run(t, t.Context(), e, newCall(t, workspace(t), a{"command": shared})); !strings.Contains(res.Text, "fine") {
				t.Errorf("what processes share counts more than once: %s", res.Text)
			}
		})
	}

	attacktest.AsUser(t)
}
