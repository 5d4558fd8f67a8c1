package shell

import (
	"os/exec"
	"testing"

	"daycare/engine/attacktest"
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
	"high bits of the mode": `cp /bin/true $S/f; perl -e 'syscall(90, $ENV{S}."/f", 0x100000000|04755); open F, "+<", $ENV{S}."/f"; ` +
		`syscall(91, fileno(F), 0x700000000|02755)'`,
	"open":    `perl -e 'umask 0; syscall(2, $ENV{S}."/f", 0101, 04755)'`,
	"openat":  `perl -e 'umask 0; syscall(257, -100, $ENV{S}."/f", 0101, 04755)'`,
	"openat2": `perl -e 'umask 0; $h = pack("Q3", 0101, 04755, 0); syscall(437, -100, $ENV{S}."/f", $h, 24)'`,
	"creat":   `perl -e 'umask 0; syscall(85, $ENV{S}."/f", 04755)'`,
	"mknod":   `perl -e 'umask 0; syscall(133, $ENV{S}."/f", 0104755, 0)'`,
	"mknodat": `perl -e 'umask 0; syscall(259, -100, $ENV{S}."/f", 0104755, 0)'`,
	"no name, then one": `perl -e 'umask 0; $f = syscall(257, -100, $ENV{S}, 020200002, 06755); syscall(265, $f, "", -100, ` +
		`$ENV{S}."/f", 0x1000); syscall(265, -100, "/proc/self/fd/$f", -100, $ENV{S}."/f", 0x400)'`,
	"copied with its mode": `cp -p /usr/bin/su $S/f; cp -a /usr/bin/passwd $S/g; rsync -p /usr/bin/su $S/h`,
	"unpacked": `mkdir $HOME/t; cp /bin/true $HOME/t/f; tar -C $HOME/t --mode=4755 -cf $HOME/t.tar f; tar -C $S -xpf ` +
		`$HOME/t.tar`,
	"named again": `ln /usr/bin/su $S/f; ln $O/set-id $S/g`,
	"python": `$PY -c 'import os,shutil; p=os.environ["S"]+"/f"; shutil.copy("/bin/true",p); os.chmod(p,0o6755)'; $PY -c ` +
		`'import os; os.umask(0); os.close(os.open(os.environ["S"]+"/g",os.O_CREAT|os.O_WRONLY,0o4755))'`,
	"system call of old": `$PY -c 'import ctypes,os; ctypes.CDLL(None).syscall(0x40000000+90, (os.environ["S"]+"/f").encode(), 0o4755)'`,
	"access list":        `cp /bin/true $S/f; setfacl -m u::rws $S/f`,
	"capability": `cp /bin/true $S/f; setcap cap_setuid+ep $S/f; perl -e '$c = pack("V5", 0x02000001, 1<<7, 0, 0, 0); print ` +
		`"ESCAPED" if syscall(188, $ENV{S}."/f", "security.capability", $c, 20, 0) == 0'`,
}

// talks are ways of processes to one another that no path leads to. $KEY is the one of
// memory, a queue and semaphores of this process, $NAME a named queue; $MEMORIES, $QUEUES and
// $SEMAPHORES are the numbers to try.
var talks = map[string]string{
	"memory":            `perl -e '$id = shmget($ENV{KEY}, 64, 0); defined $id && shmread($id, $b, 0, 40) && print $b'`,
	"memory, by number": `perl -e 'for $id (eval $ENV{MEMORIES}) { shmread($id, $b, 0, 40) && print $b }'`,
	"memory, written":   `perl -e '$id = shmget($ENV{KEY}, 64, 0); defined $id && shmwrite($id, "x", 0, 1) && print "ESCAPED"'`,
	"memory, removed":   `ipcrm -M $KEY && echo ESCAPED; perl -e 'for $id (eval $ENV{MEMORIES}) { shmctl($id, 0, 0) && print "ESCAPED" }'`,
	"memory, listed": `ipcs -m | grep -i $(printf %08x $KEY) && test -n "$VIEW" && echo ESCAPED; grep " $KEY " /proc/sysvipc/shm && ` +
		`test -n "$VIEW" && echo ESCAPED`,
	"queue": `perl -e '$id = msgget($ENV{KEY}, 0); defined $id && msgrcv($id, $b, 64, 0, 04000) && print $b'`,
	"queue, by number": `perl -e 'for $id (eval $ENV{QUEUES}) { msgrcv($id, $b, 64, 0, 04000) && print $b; msgsnd($id, pack("l! a*", 1,` +
		` "x"), 04000) && print "ESCAPED" }'`,
	"semaphores": `perl -e '$id = semget($ENV{KEY}, 1, 0); defined $id && semop($id, pack("s*", 0, 1, 04000)) && print "ESCAPED"'`,
	"semaphore numbers": `perl -e 'for $id (eval $ENV{SEMAPHORES}) { semop($id, pack("s*", 0, 1, 04000)) && print "ESCAPED"; syscall(66,` +
		` $id, 0, 0) == 0 && print "ESCAPED" }'`,
	"named queue":       `perl -e '$r = syscall(240, $ENV{NAME}, 02, 0, 0); print "ESCAPED" if $r >= 0'; cat /dev/mqueue/* && echo ESCAPED`,
	"named queue, gone": `perl -e 'print "ESCAPED" if syscall(241, $ENV{NAME}) == 0'`,
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

		// Only the lines with the word are kept: the output of a command has a limit, which
		// all the processes of a busy machine exceed.
		why := printed(x.sh(`(cat /proc/[0-9]*/cmdline | tr '\0' '\n'; ps axww) | grep -a 'canary-[k]ey'`, x.env()))
		if (why != "") == runner.HasView() {
			t.Errorf("%s: %q", level, why)
		}
	}

	attacktest.AsUser(t)
}
