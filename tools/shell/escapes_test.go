package shell

import (
	"os"
	"slices"
	"strings"

	"daycare/tools/shell/sandbox"
)

// An escape is a script that tries to get out of what its agent was granted. It
// prints ESCAPED, or one of the canaries, if it did. $W is the workspace, $PY a Python, $O a
// folder beside it, $D the .daycare in the workspace, $PID the daemon.
type escape struct {
	name, script string
	system       bool // changes the machine if nothing holds it: not tried without a sandbox
}

// A class is escapes of a kind.
type class struct {
	name string
	list []escape
}

// classes are all of them, and escapes what is in them.
func classes() []class { return slices.Concat(escapeClasses, moreClasses) }

var escapes = func() (all []escape) {
	for _, c := range classes() {
		all = append(all, c.list...)
	}
	return all
}()

// refusals are what programs print when something is held, by what it was.
var refusals = []struct{ text, how string }{
	{"put aside", "put aside"}, {"Read-only file system", "read-only mount"}, {"Device or resource busy", "mount that holds its place"},
	{"Operation not permitted", "system call filter"}, {"Bad system call", "system call filter"},
	{"Function not implemented", "system call filter"},
	{"Invalid cross-device link", "mount of its own"}, {"Network is unreachable", "network of its own"},
	{"Connection refused", "network of its own"},
	{"Could not resolve", "network of its own"}, {"Permission denied", "rights of the kernel (Landlock)"},
	{"Cannot allocate memory", "bound"}, {"No such", "not in its view"}, {"cannot find", "not in its view"},
}

// heldBy says what held a script that did not get out, by what it printed.
func heldBy(said string) string {
	for _, r := range refusals {
		if strings.Contains(said, r.text) {
			return r.how
		}
	}
	return "nothing there to reach"
}

// asWhom is a level and who runs at it.
func asWhom(level sandbox.Level) string {
	name := map[sandbox.Level]string{sandbox.Bwrap: "bubblewrap", sandbox.Landlock: "namespaces",
		noSpaces: "Landlock alone", sandbox.None: "none"}[level]
	if os.Getuid() == 0 {
		return name + ", root"
	}
	return name + ", user"
}

// alone are those that end or change what other scripts of their shell need.
var alone = map[string]bool{"signal everybody": true, "variables for what starts it": true, "other calls of old machines": true}

var escapeClasses = []class{
	{"reading", []escape{
		{"read beside", `cat $O/secret`, false},
		{"read by dots", `cd $W/sub; cat ../../outside/secret`, false},
		{"read through a link", `ln -sf $O/secret $W/sub/l; cat $W/sub/l`, false},
		{"read through a folder link", `ln -sfn $O $W/sub/ld; cat $W/sub/ld/secret`, false},
		{"read through a hard link", `ln $O/secret $W/sub/h && cat $W/sub/h`, false},
		{"read through /proc/self/root", `cat /proc/self/root$O/secret`, false},
		{"read through the daemon's root", `cat /proc/$PID/root$O/secret`, false},
		{"read through the daemon's folder", `cat /proc/$PID/cwd/../outside/secret; ls /proc/$PID/cwd/ && echo ESCAPED`, false},
		{"read through the daemon's files",
			`for f in /proc/$PID/fd/*; do cat $f/secret 2>/dev/null; done; ls -l /proc/$PID/fd && echo ESCAPED`, false},
		{"read through the first process", `cat /proc/1/root$O/secret`, false},
		{"read through every process", `cat $(printf "%s/root$O/secret " /proc/[0-9]*) 2>/dev/null`, false},
		{"list beside", `ls $O | grep secret && echo ESCAPED`, false},
		{"copy beside", `cp -r $O $W/sub/copy; cat $W/sub/copy/secret`, false},
		{"archive beside", `tar cf - $O 2>/dev/null | tar xOf - 2>/dev/null`, false},
		{"find everything", `find ${O%/*/*} -xdev -name secret -path '*outside*' -exec cat {} \; 2>/dev/null`, false},
		{"password file", `cat /etc/shadow | grep -q . && echo ESCAPED`, false},
		{"password file, by its copy", `cat /etc/shadow- | grep -q . && echo ESCAPED`, false},
		{"the user's keys", `cat $H/.ssh/id`, false},
		{"the user's keys, by ~", `cat ~/.ssh/id; cat ~root/.ssh/id`, false},
		{"environment of the daemon", `tr '\0' '\n' < /proc/$PID/environ | grep canary-env`, false},
		{"environment of all", `cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep canary-env`, false},
		{"memory of the daemon", `head -c 10 /proc/$PID/mem >/dev/null 2>&1; dd if=/proc/$PID/maps bs=64 count=1 2>/dev/null | grep -q ` +
			`. && echo ESCAPED`, false},
		{"raw disk", `for d in /dev/[vsx]d* /dev/nvme* /dev/dm-*; do test -r $d && echo ESCAPED; done`, false},
		{"kernel memory", `for d in /dev/mem /dev/kmem /proc/kcore; do head -c 1 $d 2>/dev/null | grep -q . && echo ESCAPED; done`, false},
		{"own device", `mknod $W/sub/dev b 8 0 && echo ESCAPED; mknod /tmp/dev b 8 0 && echo ESCAPED`, false},
	}},
	{"writing", []escape{
		{"write beside", `echo x > $O/planted && echo ESCAPED`, false},
		{"write through a link", `ln -sfn $O $W/sub/w; echo x > $W/sub/w/planted && echo ESCAPED`, false},
		{"append beside", `echo x >> $O/secret && echo ESCAPED`, false},
		{"rename out", `echo x > $W/sub/m; mv $W/sub/m $O/planted && echo ESCAPED`, false},
		{"hard link out", `echo x > $W/sub/m; ln $W/sub/m $O/planted && echo ESCAPED`, false},
		{"touch beside", `touch -d 2001-01-01 $O/secret && echo ESCAPED`, false},
		{"mode beside", `chmod 777 $O/secret && echo ESCAPED`, false},
		{"mode beside, other calls", `perl -e 'for (90,268,452) { syscall($_, $_==90 ? ($ENV{O}."/secret",0777) : (-100,` +
			`$ENV{O}."/secret",0777,0))==0 && print "ESCAPED" }'`, false},
		{"owner beside", `chown 12345 $O/secret && echo ESCAPED; chown -h 12345 $O && echo ESCAPED`, false},
		{"attribute beside", `perl -e 'for (188,189) { $r=syscall($_,$ENV{O}."/secret","user.x","y",1,0); print "ESCAPED" ` +
			`if $r==0 }'`, false},
		{"times beside, other calls", `perl -e '$z="\0"x32; for (132,235) { print "ESCAPED" if syscall($_,$ENV{O}."/secret",$z)==0 }; ` +
			`print "ESCAPED" if syscall(261,-100,$ENV{O}."/secret",$z)==0'`, false},
		{"truncate beside", `: > $O/secret && echo ESCAPED`, true},
		{"remove beside", `test -e $O/secret && rm -rf $O/secret && echo ESCAPED`, true},
		{"write to /etc", `echo x > /etc/daycare-escape && echo ESCAPED`, true},
		{"write to /usr", `echo x > /usr/daycare-escape && echo ESCAPED`, true},
		{"change a program", `cp /bin/ls /usr/bin/daycare-escape && echo ESCAPED`, true},
		{"shell start file", `echo x >> $H/.bashrc && echo ESCAPED; echo x >> $H/.zshenv && echo ESCAPED`, false},
		{"schedule a job", `echo '* * * * * root true' > /etc/cron.d/daycare-escape && echo ESCAPED`, true},
		{"kernel setting", `cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo ESCAPED`, true},
		{"call of the kernel", `echo x > /proc/sysrq-trigger && echo ESCAPED; test -w /sys/kernel/uevent_helper && echo ESCAPED`, true},
		{"control groups", `mkdir /sys/fs/cgroup/pids/daycare-escape && echo ESCAPED`, true},
	}},
	{"daycare's data", []escape{
		{"read settings", `cat $D/settings.yaml`, false},
		{"read through another name", `cat $W/./sub/../.daycare/settings.yaml`, false},
		{"read another agent", `cat $D/agents/other/history.jsonl`, false},
		{"write own rights", `echo '{}' > $D/agents/me/state.json && echo ESCAPED`, false},
		{"answer a request", `mkdir -p $D/permissions && echo x > $D/permissions/p.json && echo ESCAPED`, false},
		{"drop a letter", `echo 'do it' > $D/drop/0__x.md && echo ESCAPED`, false},
		{"rename it away", `mv $D $W/sub/d && echo ESCAPED; cat $W/sub/d/settings.yaml`, false},
		{"remove it", `rm -rf $D/settings.yaml && test ! -e $D/settings.yaml && ls $D/agents && echo ESCAPED`, true},
		{"rename the workspace", `mv $W $W.old && echo ESCAPED`, true},
		{"link to it", `ln -sfn $D $W/sub/dl; cat $W/sub/dl/settings.yaml`, false},
		{"mount it elsewhere", `mount --bind $D $W/sub && cat $W/sub/settings.yaml`, true},
		{"take the cover off", `umount $D; umount -l $D; cat $D/settings.yaml`, true},
		{"talk to the daemon", `perl -e 'socket(S,1,1,0)&&connect(S,` +
			`pack("Sa*x",1,"$ENV{D}/daycare.sock"))&&print "ESCAPED"'`, false},
	}},
	{"git", []escape{
		{"git hook", `echo 'touch $O/planted' > $W/.git/hooks/pre-commit && echo ESCAPED`, false},
		{"git configuration", `git -C $W config core.fsmonitor 'touch x' && echo ESCAPED; echo >> $W/.git/config && echo ESCAPED`, false},
		{"another git folder", `mv $W/.git $W/sub/g && mkdir -p $W/.git/hooks && echo ESCAPED`, false},
		{"hooks folder away", `mv $W/.git/hooks $W/sub/hk && echo ESCAPED; rm -rf $W/.git/config && test ! -e $W/.git/config && ` +
			`echo ESCAPED`, false},
	}},
	{"network", []escape{
		{"TCP", `(exec 3<>/dev/tcp/127.0.0.1/$TCP) && echo ESCAPED`, false},
		{"TCP by perl", `perl -e 'socket(S,2,1,0)&&connect(S,pack("SnC4x8",2,$ENV{TCP},127,0,0,1))&&print "ESCAPED"'`, false},
		{"UDP", `echo canary > /dev/udp/127.0.0.1/$UDP`, false},
		{"name lookup", `getent hosts example.com | grep -q . && echo ESCAPED`, false},
		{"web", `curl -s -m 2 http://127.0.0.1:$TCP >/dev/null && echo ESCAPED`, false},
		{"metadata service", `(exec 3<>/dev/tcp/169.254.169.254/80) && echo ESCAPED`, false},
		{"raw socket", `perl -e 'print "ESCAPED" if socket(S,17,3,0)'`, false},
		{"socket to the host of a machine", `perl -e 'print "ESCAPED" if socket(S,40,1,0)'`, false},
		{"socket with a path", `perl -e 'socket(S,1,1,0)&&connect(S,pack("Sa*x",1,"$ENV{O}/socket"))&&print ` +
			`"ESCAPED"'`, false},
		{"socket without a path", `perl -e 'socket(S,1,1,0)&&connect(S,pack("Sa*",1,"\0$ENV{ABS}"))&&print ` +
			`"ESCAPED"'`, false},
		{"serve", `perl -e 'socket(S,2,1,0)&&bind(S,pack("SnC4x8",2,0,127,0,0,1))&&listen(S,5)'; (exec ` +
			`3<>/dev/tcp/127.0.0.1/$TCP) && echo ESCAPED`, false},
	}},
	{"processes and kernel", []escape{
		{"signal the daemon", `kill -0 $PID && echo ESCAPED`, false},
		{"signal everybody", `kill -CONT -1; for p in 1 $PID $PPID; do kill -URG $p && test $p = $PID && echo ESCAPED; done`, true},
		{"trace the daemon", `strace -p $PID -o /dev/null & t=$!; sleep 0.2; grep -q "TracerPid:[[:space:]]*$t\$" ` +
			`/proc/$PID/status && echo ESCAPED; kill $t`, false}, // not what another test has it traced by
		{"enter the daemon", `nsenter -t $PID -a true && echo ESCAPED; nsenter -t 1 -a true && echo ESCAPED`, true},
		{"own namespaces", `unshare -Ur true && echo ESCAPED; unshare -m true && echo ESCAPED; unshare -n true && echo ESCAPED`, false},
		{"another root", `chroot $W /bin/true; perl -e 'print "ESCAPED" if chroot($ENV{W})'`, false},
		{"mount", `mount -t tmpfs none $W/sub && echo ESCAPED`, true},
		{"mount beside", `mount --bind $O $W/sub && cat $W/sub/secret`, true},
		{"open by handle", `perl -e 'print "ESCAPED" if syscall(304,-100,"x"x32,0)>=0'`, false},
		{"io_uring", `perl -e '$p="\0"x120; print "ESCAPED" if syscall(425,4,$p)>=0'`, false},
		{"kernel program", `perl -e '$a="\0"x128; $r=syscall(321,0,$a,128); print "ESCAPED" if $r>=0 || $!{EINVAL} && $> == 0'`, false},
		{"kernel keys", `perl -e 'print "ESCAPED" if syscall(250,0,-3,1)>=0'`, false},
		{"host name", `hostname daycare-escape && test "$(hostname)" = daycare-escape && cat /proc/sys/kernel/hostname | grep -q ` +
			`daycare && perl -e 'exit 0' && touch $O/planted && echo ESCAPED`, true},
		{"clock", `date -s @0 && echo ESCAPED`, true},
		{"priority", `renice -n -20 -p $PID && echo ESCAPED`, true},
		{"capabilities back", `grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status | grep -vq '0000000000000000$' && perl -e 'print ` +
			`"ESCAPED" if $> == 0'`, false},
		{"system services", `systemd-run true && echo ESCAPED`, true},
		{"variables for what starts it", `true`, false}, // LD_PRELOAD is set for it; see the test
		{"written for later", `mkdir -p $W/sub/r/.git/hooks && ln -sf $O/secret $W/sub/r/.git/config; ln -sfn $O $W/linked; cat ` +
			`$W/linked/secret`, false},
	}},
	{"other programs and calls", []escape{
		{"read by python", `$PY -c 'import os; print(open(os.environ["O"]+"/secret").read())'`, false},
		{"read by an open folder", `exec 5<$O && cat /proc/self/fd/5/secret`, false},
		{"read by openat2", `perl -e '$h=pack("Q3",0,0,0); $r=syscall(437,-100,$ENV{O}."/secret",$h,24); open(F,"<&=",$r) && print <F> ` +
			`if $r>=0'`, false},
		{"read by mapping", `$PY -c 'import mmap,os; f=open(os.environ["O"]+"/secret","rb"); print(mmap.mmap(f.fileno(),0,` +
			`prot=mmap.PROT_READ)[:])'`, false},
		{"read through a link to /proc", `ln -sf /proc/self/root$O/secret $W/sub/pl; cat $W/sub/pl`, false},
		{"read through the parent's folder", `cat /proc/$PPID/cwd/../outside/secret; cat /proc/$PPID/root$O/secret`, false},
		{"read by a long way", `p=$W; for i in 1 2 3 4 5 6 7 8 9; do p=$p/sub/..; done; cat $p/../outside/secret`, false},
		{"read what runs as a library", `LD_PRELOAD=$O/secret true 2>&1 | grep canary; LD_LIBRARY_PATH=$O ls >/dev/null; cat ` +
			`$O/secret`, false},
		{"read by the shell itself", `mapfile -t x < $O/secret; echo "${x[@]}"; echo "$(<$O/secret)"`, false},
		{"read by source", `. $O/secret 2>&1 | grep -o 'canary-[a-z]*'`, false},
		{"run from beside", `test -r $O/secret && bash $O/secret 2>&1 | grep -o 'canary-[a-z]*'`, false},
		{"names beside, by completion", `echo $O/*; compgen -f $O/ | grep -q secret && echo ESCAPED`, false},
		{"a link that is changed meanwhile", // by a program that needs no other for it, and read by the shell itself
			`perl -e '$l = "$ENV{W}/sub/sw"; unlink $l, "$l.o"; symlink "$ENV{W}/sub", $l; symlink $ENV{O}, "$l.o"; ` +
				`syscall(316, -100, $l, -100, "$l.o", 2) for 1..3000' & p=$!
while kill -0 $p; do
  for i in 1 2 3 4 5 6 7 8 9; do read -r x < $W/sub/sw/secret; [ -z "$x" ] || break 2; done
done 2>/dev/null; echo "$x"; wait`, false},
		{"exchange of names", `mkdir -p $W/sub/x; perl -e 'print "ESCAPED" if syscall(316,-100,$ENV{W}."/sub/x",-100,` +
			`$ENV{O},2)==0'`, false},
		{"make a folder beside", `mkdir $O/planted && echo ESCAPED`, false},
		{"make a pipe beside", `mkfifo $O/planted && echo ESCAPED`, false},
		{"make a link beside", `ln -s x $O/planted && echo ESCAPED`, false},
		{"make a socket beside", `perl -e 'socket(S,1,1,0)&&bind(S,pack("Sa*x",1,"$ENV{O}/planted"))&&print ` +
			`"ESCAPED"'`, false},
		{"write by an open folder", `$PY -c 'import os; d=os.open(os.environ["O"],os.O_RDONLY); os.close(os.open("planted",` +
			`os.O_CREAT|os.O_WRONLY,dir_fd=d)); print("ESCAPED")'`, false},
		{"unnamed file, then a name", `$PY -c 'import os; f=os.open(os.environ["W"]+"/sub",os.O_TMPFILE|os.O_WRONLY); ` +
			`os.link("/proc/self/fd/%d"%f,os.environ["O"]+"/planted",follow_symlinks=True); print("ESCAPED")'`, false},
		{"space beside", `fallocate -l 1 $O/planted && echo ESCAPED; dd if=/dev/zero of=$O/planted count=1 2>/dev/null && ` +
			`echo ESCAPED`, false},
		{"archive that leads out", `cd $W/sub; ln -sfn $O out; tar cf a.tar --transform 's,^file,out/planted,' file; tar xf a.tar -P; ` +
			`test -e $O/planted && echo ESCAPED`, false},
		{"git that leads out", `git -C $O init -q . && echo ESCAPED; GIT_DIR=$O/g git init -q && echo ESCAPED`, false},
		{"new data folder", `mkdir -p $W/.daycare/agents/new && echo ESCAPED; cp $W/main.go $W/.daycare/settings.yaml && ` +
			`echo ESCAPED`, false},
		{"data in other letters", `cat $W/.DAYCARE/settings.yaml; cat $W/.Daycare/settings.yaml`, false},
		{"data by its number", `find $W -inum $(stat -c %i $D/settings.yaml 2>/dev/null || echo 0) -exec cat {} \;; cat ` +
			`$W/.d*/settings.yaml`, false},
		{"lock of the daemon", `$PY -c 'import fcntl,os; fcntl.flock(os.open(os.environ["D"]+"/settings.yaml",os.O_RDONLY),` +
			`fcntl.LOCK_EX|fcntl.LOCK_NB); print("ESCAPED")'`, false},
		{"TCP over version 6", `(exec 3<>/dev/tcp/::1/$TCP) && echo ESCAPED; (exec 3<>/dev/tcp/::ffff:127.0.0.1/$TCP) && ` +
			`echo ESCAPED`, false},
		{"packets of the machine", `$PY -c 'import socket; socket.socket(socket.AF_PACKET,socket.SOCK_RAW); print("ESCAPED")'`, false},
		{"a socket handed over", `$PY -c 'import socket,os; s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); s.sendto(b"x",` +
			`os.environ["O"]+"/socket"); print("ESCAPED")'`, false},
		{"another's open files", `perl -e '$p=syscall(434,$ENV{PID}+0,0); $r=syscall(438,$p,0,0); print "ESCAPED" if $p>=0 ` +
			`&& $r>=0'`, false},
		{"another's memory", `perl -e '$b="\0"x8; $l=pack("pQ",$b,8); $r=pack("QQ",0x400000,8); print "ESCAPED" if syscall(310,` +
			`$ENV{PID}+0,$l,1,$r,1,0)>0'`, false},
		{"limits of the daemon", `prlimit --pid $PID --core=0:0 && echo ESCAPED`, false},
		{"priority in the queue", `chrt -p -f 99 $PID && echo ESCAPED; ionice -c 2 -n 4 -p $PID && echo ESCAPED; renice -n 1 -p $PID && ` +
			`echo ESCAPED`, true},
		{"priority of all that its user runs", `test -n "$VIEWED" || perl -e 'syscall(141,2,0,-20); print "ESCAPED" if $!{EACCES}; ` +
			`syscall(251,3,0,5<<13); print "ESCAPED" if $!{EINVAL}'`, true},
		{"files that all wait for", `$PY -c 'import fcntl,os; f=os.open(os.environ["W"]+"/.git/config",0); fcntl.fcntl(f,1024,1); ` +
			`print("ESCAPED")'; $PY -c 'import fcntl; f=open("/etc/passwd"); fcntl.fcntl(f,1024,0); print("ESCAPED")'`, false},
		{"processors of the daemon", `taskset -p ffffffff $PID && echo ESCAPED; chrt -b -p 0 $PID && echo ESCAPED`, true},
		{"other calls of old machines", `$PY -c 'import ctypes; l=ctypes.CDLL(None); print("ESCAPED") if l.syscall(0x40000000+41,2,1,` +
			`0)>=0 else 0'`, false},
	}},
}
