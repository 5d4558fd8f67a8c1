package shell

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"daycare/engine/attacktest"
	"daycare/tools/shell/sandbox"
)

// marked are ways to leave a file behind that runs with the rights of its owner or
// group. $S is a folder for them.
var marked = map[string]string{
	"chmod":                  `cp /bin/true $S/f; chmod 4755 $S/f; chmod u+s $S/f; chmod g+s $S/f`,
	"chmod, setgid":          `cp /bin/true $S/f; chmod 2755 $S/f`,
	"chmod, both and sticky": `cp /bin/true $S/f; chmod 7777 $S/f`,
	"chmod of a folder":      `chmod g+s $S; mkdir $S/d; chmod 2777 $S/d`,
	"install":                `install -m 4755 /bin/true $S/f`,
	"mkdir":                  `mkdir -m 2777 $S/d`,
	"the call chmod":         `cp /bin/true $S/f; perl -e 'syscall(90, $ENV{S}."/f", 04755)'`,
	"the call fchmod":        `cp /bin/true $S/f; perl -e 'open F, "+<", $ENV{S}."/f"; syscall(91, fileno(F), 04755)'`,
	"the call fchmodat":      `cp /bin/true $S/f; perl -e 'syscall(268, -100, $ENV{S}."/f", 04755, 0)'`,
	"the call fchmodat2":     `cp /bin/true $S/f; perl -e 'syscall(452, -100, $ENV{S}."/f", 04755, 0)'`,
	"fchmodat2, by the file": `cp /bin/true $S/f; perl -e 'open F, "+<", $ENV{S}."/f"; syscall(452, fileno(F), "", 04755, 0x1000)'`,
	"high bits of the mode":  `cp /bin/true $S/f; perl -e 'syscall(90, $ENV{S}."/f", 0x100000000|04755); open F, "+<", $ENV{S}."/f"; syscall(91, fileno(F), 0x700000000|02755)'`,
	"open":                   `perl -e 'umask 0; syscall(2, $ENV{S}."/f", 0101, 04755)'`,
	"openat":                 `perl -e 'umask 0; syscall(257, -100, $ENV{S}."/f", 0101, 04755)'`,
	"openat2":                `perl -e 'umask 0; $h = pack("Q3", 0101, 04755, 0); syscall(437, -100, $ENV{S}."/f", $h, 24)'`,
	"creat":                  `perl -e 'umask 0; syscall(85, $ENV{S}."/f", 04755)'`,
	"mknod":                  `perl -e 'umask 0; syscall(133, $ENV{S}."/f", 0104755, 0)'`,
	"mknodat":                `perl -e 'umask 0; syscall(259, -100, $ENV{S}."/f", 0104755, 0)'`,
	"no name, then one":      `perl -e 'umask 0; $f = syscall(257, -100, $ENV{S}, 020200002, 06755); syscall(265, $f, "", -100, $ENV{S}."/f", 0x1000); syscall(265, -100, "/proc/self/fd/$f", -100, $ENV{S}."/f", 0x400)'`,
	"copied with its mode":   `cp -p /usr/bin/su $S/f; cp -a /usr/bin/passwd $S/g; rsync -p /usr/bin/su $S/h`,
	"unpacked":               `mkdir $HOME/t; cp /bin/true $HOME/t/f; tar -C $HOME/t --mode=4755 -cf $HOME/t.tar f; tar -C $S -xpf $HOME/t.tar`,
	"named again":            `ln /usr/bin/su $S/f`,
	"python":                 `$PY -c 'import os,shutil; p=os.environ["S"]+"/f"; shutil.copy("/bin/true",p); os.chmod(p,0o6755)'; $PY -c 'import os; os.umask(0); os.close(os.open(os.environ["S"]+"/g",os.O_CREAT|os.O_WRONLY,0o4755))'`,
	"system call of old":     `$PY -c 'import ctypes,os; ctypes.CDLL(None).syscall(0x40000000+90, (os.environ["S"]+"/f").encode(), 0o4755)'`,
	"access list":            `cp /bin/true $S/f; setfacl -m u::rws $S/f`,
	"capability":             `cp /bin/true $S/f; setcap cap_setuid+ep $S/f; perl -e '$c = pack("V5", 0x02000001, 1<<7, 0, 0, 0); print "ESCAPED" if syscall(188, $ENV{S}."/f", "security.capability", $c, 20, 0) == 0'`,
}

// TestNoFileWithOtherRightsIsLeftBehind: neither setuid nor setgid, by no call.
func TestNoFileWithOtherRightsIsLeftBehind(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		for name, script := range marked {
			dir, err := os.MkdirTemp(filepath.Join(x.w, "sub"), "s")
			if err != nil {
				t.Fatal(err)
			}
			env := x.env()
			env["S"] = dir
			text := x.sh(script, env)
			if strings.Contains(text, "ESCAPED") {
				t.Errorf("%s: %s", name, text)
			}
			filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
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
		if out := x.sh(`cp /bin/true $W/sub/f && chmod 700 $W/sub/f && mkdir -m 755 $W/sub/m && install -m 644 $W/main.go $W/sub/i && perl -e 'open F, ">", "$ENV{W}/sub/o" or die; syscall(91, fileno(F), 0600) == 0 or die' && echo fine`, x.env()); !strings.Contains(out, "fine") {
			if runner, _ := probed[level](); runner.HasView() {
				t.Errorf("other modes: %s", out)
			}
		}
	})
}

// talks are ways of processes to one another that no path leads to. $KEY is the one of
// memory, a queue and semaphores of this process, $NAME a named queue; $MEMORIES, $QUEUES and
// $SEMAPHORES are the numbers to try.
var talks = map[string]string{
	"memory":            `perl -e '$id = shmget($ENV{KEY}, 64, 0); defined $id && shmread($id, $b, 0, 40) && print $b'`,
	"memory, by number": `perl -e 'for $id (eval $ENV{MEMORIES}) { shmread($id, $b, 0, 40) && print $b }'`,
	"memory, written":   `perl -e '$id = shmget($ENV{KEY}, 64, 0); defined $id && shmwrite($id, "x", 0, 1) && print "ESCAPED"'`,
	"memory, removed":   `ipcrm -M $KEY && echo ESCAPED; perl -e 'for $id (eval $ENV{MEMORIES}) { shmctl($id, 0, 0) && print "ESCAPED" }'`,
	"memory, listed":    `ipcs -m | grep -i $(printf %08x $KEY) && test -n "$VIEW" && echo ESCAPED; grep " $KEY " /proc/sysvipc/shm && test -n "$VIEW" && echo ESCAPED`,
	"queue":             `perl -e '$id = msgget($ENV{KEY}, 0); defined $id && msgrcv($id, $b, 64, 0, 04000) && print $b'`,
	"queue, by number":  `perl -e 'for $id (eval $ENV{QUEUES}) { msgrcv($id, $b, 64, 0, 04000) && print $b; msgsnd($id, pack("l! a*", 1, "x"), 04000) && print "ESCAPED" }'`,
	"semaphores":        `perl -e '$id = semget($ENV{KEY}, 1, 0); defined $id && semop($id, pack("s*", 0, 1, 04000)) && print "ESCAPED"'`,
	"semaphore numbers": `perl -e 'for $id (eval $ENV{SEMAPHORES}) { semop($id, pack("s*", 0, 1, 04000)) && print "ESCAPED"; syscall(66, $id, 0, 0) == 0 && print "ESCAPED" }'`,
	"named queue":       `perl -e '$r = syscall(240, $ENV{NAME}, 02, 0, 0); print "ESCAPED" if $r >= 0'; cat /dev/mqueue/* && echo ESCAPED`,
	"named queue, gone": `perl -e 'print "ESCAPED" if syscall(241, $ENV{NAME}) == 0'`,
}

// TestNoCommandReachesTheMemoryOfOthers: what is shared by number or key.
func TestNoCommandReachesTheMemoryOfOthers(t *testing.T) {
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

// TestArgumentsOfOthersAreNotSeen: a command that has processes of its own sees no
// others. Without namespaces it sees their command lines, as doctor says.
func TestArgumentsOfOthersAreNotSeen(t *testing.T) {
	other := exec.Command("/bin/sh", "-c", "sleep 60; :", "canary-key")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	for _, level := range sandboxed {
		x := newWorld(t, level)
		runner, _ := probed[level]()
		why := printed(x.sh(`cat /proc/[0-9]*/cmdline | tr '\0' '\n'; ps axww`, x.env()))
		if (why != "") == runner.HasView() {
			t.Errorf("%s: %q", level, why)
		}
	}
	attacktest.AsUser(t)
}

// TestMemoryOfACommandIsBounded: what takes more is ended, the model is told, and what
// takes less is not, however many processes share it.
func TestMemoryOfACommandIsBounded(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			e, _, _ := held(t, level)
			small := *e.confine.runner
			small.Memory = 150 << 20
			e.confine.runner = &small
			for name, script := range map[string]string{
				"one":        `perl -e '$x = "a" x (40 << 20); push @all, $x . $_ for 1..9; sleep 4; print "still"."-here"'`,
				"many":       `for i in 1 2 3 4 5 6; do perl -e '$x = "a" x (50 << 20); sleep 4; print "still"."-here"' & done; wait`,
				"left group": `setsid perl -e '$x = "a" x (400 << 20); sleep 4; print "still"."-here"' & wait`,
			} {
				res := run(t, t.Context(), e, newCall(t, workspace(t), a{"command": script}))
				// Where the kernel bounds it, it ends processes until the rest fits.
				if strings.Count(res.Text, "still-here") > 2 || !strings.Contains(res.Text, "a command may use 150") {
					t.Errorf("%s: %s", name, res.Text)
				}
			}
			shared := `perl -e '$x = "a" x (25 << 20); for (1..5) { fork or do { sleep 1; exit } } wait for 1..5; print "fine"'`
			if res := run(t, t.Context(), e, newCall(t, workspace(t), a{"command": shared})); !strings.Contains(res.Text, "fine") {
				t.Errorf("what processes share counts more than once: %s", res.Text)
			}
		})
	}
	attacktest.AsUser(t)
}
