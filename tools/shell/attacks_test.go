package shell

// moreClasses are further ways out, by what they go for. $APP is a socket in the workspace
// that a program of the user listens at, $PTS the user's terminal.
var moreClasses = []class{
	{"sockets of other programs", []escape{
		{"socket in the workspace", `perl -e 'socket(S,1,1,0)&&connect(S,pack("Sa*x",1,$ENV{APP}))&&print ` +
			`"ESCAPED"'`, false},
		{"socket in the workspace, by its folder",
			`cd $W/sub && perl -e 'socket(S,1,1,0)&&connect(S,pack("Sa*x",1,"app.sock"))&&print "ESCAPED"'`, false},
		{"socket in the workspace, by a link",
			`ln -sfn $APP $W/sub/as; perl -e 'socket(S,1,1,0)&&connect(S,pack("Sa*x",1,"$ENV{W}/sub/as"))&&print ` +
				`"ESCAPED"'`, false},
		{"socket in the workspace, by a second name",
			`ln $APP $W/sub/ah && perl -e 'socket(S,1,1,0)&&connect(S,pack("Sa*x",1,"$ENV{W}/sub/ah"))&&print ` +
				`"ESCAPED"'`, false},
		{"socket in the workspace, renamed",
			`mv $APP $W/sub/am && perl -e 'socket(S,1,1,0)&&connect(S,pack("Sa*x",1,"$ENV{W}/sub/am"))&&print ` +
				`"ESCAPED"'`, false},
		{"socket in the workspace, its folder renamed",
			`cp -r $W/deep $W/sub/dp 2>/dev/null; mv $W/deep $W/sub/dm && perl -e 'socket(S,1,1,0)&&connect(S,` +
				`pack("Sa*x",1,"$ENV{W}/sub/dm/app.sock"))&&print "ESCAPED"'`, false},
		{"socket in the workspace, by an open file",
			`perl -e 'sysopen(F,$ENV{APP},010000000) or exit; socket(S,1,1,0)&&connect(S,` +
				`pack("Sa*x",1,"/proc/self/fd/".fileno(F)))&&print "ESCAPED"'`, false},
		{"datagram to a socket in the workspace",
			`perl -e 'socket(S,1,2,0)&&send(S,"x",0,pack("Sa*x",1,"$ENV{W}/sub/app.dgram"))&&print ` +
				`"ESCAPED"'`, false},
		{"sequence of packets to a socket in the workspace",
			`perl -e 'socket(S,1,5,0)&&connect(S,pack("Sa*x",1,$ENV{APP}))&&print "ESCAPED"'`, false},
		{"web over a socket in the workspace",
			`curl -s -m 2 --unix-socket $APP http://x/v1/containers/create >/dev/null; test $? = 52 && echo ESCAPED`, false},
		{"ssh agent", `SSH_AUTH_SOCK=$APP timeout 2 ssh-add -l; SSH_AUTH_SOCK=$O/socket timeout 2 ssh-add -l`, false},
		{"containers", `curl -s -m 2 --unix-socket $O/socket http://x/v1/containers/json; curl -s -m 2 --unix-socket ` +
			`/var/run/docker.sock http://x/info | grep -q . && echo ESCAPED`, false},
		{"message bus", `for s in $O/socket $APP; do DBUS_SESSION_BUS_ADDRESS=unix:path=$s timeout 2 dbus-send --session --dest=a.b / ` +
			`a.b.c; done`, false},
		{"message bus of the system", `test -S /run/dbus/system_bus_socket && echo ESCAPED; ls /run/user 2>/dev/null | grep -q . && ` +
			`echo ESCAPED`, false},
		{"display", `for s in /tmp/.X11-unix/X*; do test -S $s && echo ESCAPED; done; test -S "${XDG_RUNTIME_DIR:-/x}/wayland-0" && ` +
			`echo ESCAPED`, false},
		{"listener that others find", `perl -e 'socket(S,1,1,0)&&bind(S,` +
			`pack("Sa*x",1,"$ENV{O}/planted"))&&listen(S,1)&&print "ESCAPED"'`, false},
		{"files over a socket", `$PY -c 'import socket,os; s=socket.socket(socket.AF_UNIX); s.connect(os.environ["APP"]); ` +
			`socket.send_fds(s,[b"x"],[0]); print("ESCAPED")'`, false},
		{"messages of the kernel", `$PY -c 'import socket; s=socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,15); s.bind((0,1)); ` +
			`s.settimeout(.2); print("ESCAPED" if s.recv(100) else "")'; $PY -c 'import socket; s=socket.socket(socket.AF_NETLINK,` +
			`socket.SOCK_RAW,9); s.bind((0,1)); print("ESCAPED")'`, false},
		{"machine next door", `$PY -c 'import socket; socket.socket(40,socket.SOCK_STREAM); print("ESCAPED")'`, false},
		{"ciphers of the kernel", `$PY -c 'import socket; socket.socket(38,socket.SOCK_SEQPACKET); print("ESCAPED")'`, false},
		{"wireless", `$PY -c 'import socket; socket.socket(31,socket.SOCK_RAW,1); print("ESCAPED")'; perl -e 'for (29,30,44) { print ` +
			`"ESCAPED" if socket(S,$_,2,0) || socket(S,$_,5,0) }'`, false},
	}},
	{"terminals", []escape{
		{"write to the terminal", `echo x > $PTS && echo ESCAPED`, false},
		{"read from the terminal", `timeout 1 head -c 1 $PTS && echo ESCAPED; exec 9<$PTS && echo ESCAPED`, false},
		{"type into the terminal", `perl -e 'open(F,"<",$ENV{PTS}) or exit; $c="x"; print "ESCAPED" if ioctl(F,0x5412,$c)'`, false},
		{"type into what is inherited", `perl -e 'for (0..9) { open(F,"<&=",$_) or next; $c="x"; print "ESCAPED" if -t F && ioctl(F,` +
			`0x5412,$c) }'`, false},
		{"type with high bits in the request",
			`perl -e 'open(F,"<",$ENV{PTS}) or open(F,"<&=",0); $c="x"; print "ESCAPED" if syscall(16,fileno(F),0x100005412,` +
				`$c) == 0'`, false},
		{"take the terminal", `perl -e 'syscall(112); open(F,"<",$ENV{PTS}) or exit; print "ESCAPED" if syscall(16,fileno(F),` +
			`0x540E,1) == 0'`, false},
		{"terminal of the session", `(exec 3</dev/tty) && test -c /dev/tty && echo ESCAPED; (exec 3</dev/console) && test -c ` +
			`/dev/console && echo ESCAPED`, false},
		{"screens", `for f in /dev/vcs* /dev/tty[0-9]* /dev/fb0; do test -c $f && (exec 3<>$f) && echo ESCAPED; done`, false},
		{"keyboards", `ls /dev/input /dev/uinput /dev/hidraw* 2>/dev/null | grep -q . && echo ESCAPED`, false},
		{"terminal through another process",
			`for p in $PID $PPID; do for f in 0 1 2; do echo x > /proc/$p/fd/$f && test $p = $PID && echo ESCAPED; done; done`, false},
		{"selection of the console", `perl -e 'open(F,"<&=",0); $c="\2"; print "ESCAPED" if syscall(16,0,0x541C,$c) == 0'`, false},
	}},
	{"the daemon's process", []escape{
		{"attach", `perl -e 'print "ESCAPED" if syscall(101,16,$ENV{PID}+0,0,0) == 0'`, true},
		{"seize", `perl -e 'print "ESCAPED" if syscall(101,0x4206,$ENV{PID}+0,0,0) == 0'`, false},
		{"write its memory by a call", `perl -e '$b="\0"x8; $l=pack("pQ",$b,8); $r=pack("QQ",0x400000,8); print "ESCAPED" if ` +
			`syscall(311,$ENV{PID}+0,$l,1,$r,1,0)>0 || $!{EFAULT}'`, false},
		{"write its memory by a file", `dd if=/dev/zero of=/proc/$PID/mem bs=1 count=0 2>/dev/null && echo ESCAPED; (exec ` +
			`3<>/proc/$PID/mem) && echo ESCAPED`, false},
		{"where its memory is", `for f in maps smaps auxv pagemap numa_maps; do head -c 8 /proc/$PID/$f 2>/dev/null | grep -aq . && ` +
			`echo ESCAPED; done`, false},
		{"its registers", `for f in syscall stack personality; do head -c 8 /proc/$PID/$f 2>/dev/null | grep -q . && echo ` +
			`ESCAPED; done`, false},
		{"its open files, copied", `perl -e '$p=syscall(434,$ENV{PID}+0,0); for (0..20) { print "ESCAPED" if $p>=0 && syscall(438,$p,` +
			`$_,0)>=0 }'`, false},
		{"its program", `head -c 4 /proc/$PID/exe | grep -q ELF && test "$(readlink /proc/$PID/exe)" && echo ESCAPED`, false},
		{"its mapped files", `ls /proc/$PID/map_files 2>/dev/null | grep -q . && echo ESCAPED`, false},
		{"its threads", `for t in /proc/$PID/task/*; do cat $t/environ 2>/dev/null | grep -aq . && echo ESCAPED; readlink $t/fd/0 && ` +
			`echo ESCAPED; done`, false},
		{"its namespaces", `for n in /proc/$PID/ns/*; do perl -e 'open(F,"<",$ARGV[0]) or exit; print "ESCAPED" if syscall(308,` +
			`fileno(F),0)==0' $n; done`, true},
		{"signal by thread", `perl -e 'print "ESCAPED" if syscall(200,$ENV{PID}+0,23)==0 || syscall(234,$ENV{PID}+0,` +
			`$ENV{PID}+0,23)==0'`, false},
		{"signal by a queue", `perl -e '$i=pack("l4x112",23,0,-1,0); print "ESCAPED" if syscall(129,$ENV{PID}+0,23,$i)==0'`, false},
		{"signal by a handle", `perl -e '$p=syscall(434,$ENV{PID}+0,0); print "ESCAPED" if $p>=0 && syscall(424,$p,23,0,0)==0'`, false},
		{"signal by its group", `kill -URG -- -$(awk '{print $5}' /proc/$PID/stat) && echo ESCAPED`, true},
		{"signal by a file's owner", `$PY -c '
import fcntl,os,socket,time
a,b=socket.socketpair(); fcntl.fcntl(a,fcntl.F_SETOWN,int(os.environ["PID"])); fcntl.fcntl(a,10,12)
fcntl.fcntl(a,fcntl.F_SETFL,fcntl.fcntl(a,fcntl.F_GETFL)|os.O_ASYNC); b.send(b"x"); time.sleep(.1)'`, false},
		{"whom the kernel ends first", `echo 1000 > /proc/$PID/oom_score_adj && echo ESCAPED`, true},
		{"what it dumps", `echo 0xff > /proc/$PID/coredump_filter && echo ESCAPED`, true},
		{"its clock", `echo 1000000000 > /proc/$PID/timerslack_ns && echo ESCAPED`, true},
		{"its name", `echo x > /proc/$PID/comm && echo ESCAPED; echo x > /proc/$PID/task/$PID/comm && echo ESCAPED`, true},
		{"its pages, forgotten", `echo 1 > /proc/$PID/clear_refs && echo ESCAPED`, true},
		{"its pages, moved", `perl -e '$n="\1".("\0"x15); print "ESCAPED" if syscall(256,$ENV{PID}+0,64,$n,$n)>=0 || syscall(279,` +
			`$ENV{PID}+0,0,0,0,0,0)==0'`, true},
		{"its pages, advised", `perl -e '$p=syscall(434,$ENV{PID}+0,0); $v=pack("QQ",0x400000,4096); print "ESCAPED" if $p>=0 && ` +
			`syscall(440,$p,$v,1,20,0)>=0'`, false},
		{"compared with it", `perl -e 'print "ESCAPED" if syscall(312,$ENV{PID}+0,$$,0,1,1)>=0'`, false},
		{"its user's other processes", `for p in $(ls /proc | grep '^[0-9]'); do test $p = $$ || kill -0 $p 2>/dev/null && cat ` +
			`/proc/$p/environ 2>/dev/null | tr '\0' '\n' | grep -a canary; done`, false},
		{"another's limits, raised", `perl -e '$l=pack("QQ",1,1); print "ESCAPED" if syscall(302,$ENV{PID}+0,7,$l,0)==0'`, true},
		{"its group of processes", `perl -e 'print "ESCAPED" if syscall(109,$ENV{PID}+0,0)==0'`, true},
		{"uids of the machine", `grep -q . /proc/$PID/uid_map 2>/dev/null && echo "0 0 1" > /proc/$PID/uid_map && echo ESCAPED`, true},
		{"its control group", `echo $PID > /sys/fs/cgroup/cgroup.procs && echo ESCAPED; cat /sys/fs/cgroup/cgroup.procs | grep -q . && ` +
			`echo ESCAPED`, true},
	}},
	{"calls of the kernel", []escape{
		{"watch what happens beside", `timeout 2 perl -e '$f=syscall(294,0); print "ESCAPED" if $f>=0 && syscall(254,$f,$ENV{O},` +
			`0xfff)>=0'`, false},
		{"watch the keys", `timeout 2 perl -e '$f=syscall(294,0); print "ESCAPED" if $f>=0 && syscall(254,$f,$ENV{H}."/.ssh/id",` +
			`0xfff)>=0'`, false},
		{"watch whole file systems", `perl -e '$f=syscall(300,0,0); print "ESCAPED" if $f>=0 && syscall(301,$f,1,0x2,-100,$ENV{O})==0'; ` +
			`perl -e '$f=syscall(300,0x200,0); print "ESCAPED" if $f>=0 && syscall(301,$f,1,0x2,0,-100,$ENV{O})==0'`, false},
		{"faults handled by users", `perl -e 'print "ESCAPED" if syscall(323,1)>=0 || syscall(323,0)>=0'`, false},
		{"counters", `perl -e '$a=pack("LLQ",1,128,0).("\0"x112); print "ESCAPED" if syscall(298,$a,$ENV{PID}+0,-1,-1,0)>=0'`, false},
		{"module", `perl -e 'print "ESCAPED" if syscall(175,"x"x64,64,"")==0; syscall(313,0,"",0)==0 && print "ESCAPED"; print ` +
			`"ESCAPED" if $!{ENOEXEC}'`, false},
		{"another kernel", `perl -e 'print "ESCAPED" if syscall(246,0,0,0,0)==0 || syscall(320,-1,-1,0,"",4)==0'`, true},
		{"key added", `perl -e '$t="user";$d="dc"; print "ESCAPED" if syscall(248,$t,$d,"x",1,-3)>=0'`, false},
		{"key asked for", `perl -e '$t="user";$d="dc"; $r=syscall(249,$t,$d,0,-3); print "ESCAPED" if $r>=0 || $!{ENOKEY}'`, false},
		{"accounting", `perl -e 'print "ESCAPED" if syscall(163,0)==0'`, true},
		{"ports", `perl -e 'print "ESCAPED" if syscall(172,3)==0 || syscall(173,0x80,1,1)==0'`, true},
		{"log of the kernel", `dmesg 2>/dev/null | grep -q . && echo ESCAPED; head -c 1 /dev/kmsg 2>/dev/null | grep -q . && echo ` +
			`ESCAPED; perl -e '$b="\0"x64; print "ESCAPED" if syscall(103,3,$b,64)>0'`, false},
		{"swap", `perl -e '$f="$ENV{W}/sub/file"; syscall(167,$f,0); print "ESCAPED" if !$!{EPERM}'`, false},
		{"raw clone with namespaces", `perl -e '$p=syscall(56,0x10000000|17,0,0,0,0); print "ESCAPED" if defined $p && $p>0; exit if ` +
			`$p==0'; perl -e '$p=syscall(56,0x04000000|17,0,0,0,0); print "ESCAPED" if $p>0'`, false},
		{"clone3 with namespaces", `perl -e '$a=pack("Q11",0x10000000,0,0,0,17,0,0,0,0,0,0); $p=syscall(435,$a,88); print ` +
			`"ESCAPED" if $p>0'`, false},
		{"unshare by the call", `perl -e 'print "ESCAPED" if syscall(272,0x10000000)==0 || syscall(272,0x20000)==0'`, false},
		{"new mounts by the new calls", `perl -e '$n="tmpfs"; print "ESCAPED" if syscall(430,$n,0)>=0; print "ESCAPED" if syscall(428,` +
			`-100,$ENV{W},1)>=0 || syscall(428,-100,$ENV{O},0x80001)>=0'`, false},
		{"mount made writable again", `perl -e '$a=pack("Q4",0,1,0,0); $p="$ENV{W}/.git/config"; print "ESCAPED" if syscall(442,-100,$p,` +
			`0,$a,32)==0; $p="/"; print "ESCAPED" if syscall(442,-100,$p,0x8000,$a,32)==0'`, false},
		{"mount moved", `perl -e '$f="";$t="$ENV{W}/sub"; print "ESCAPED" if syscall(429,-100,"$ENV{W}/.git/config",-100,` +
			`"$ENV{W}/sub/file",0)==0'`, false},
		{"root exchanged", `perl -e 'print "ESCAPED" if syscall(155,"$ENV{W}/sub","$ENV{W}/sub")==0'`, false},
		{"file by its number", `perl -e '$h=pack("LL",128,0).("\0"x128); $m=pack("L",0); syscall(303,-100,$ENV{W}."/main.go",$h,$m,0); ` +
			`$d=syscall(257,-100,$ENV{W},0); print "ESCAPED" if syscall(304,$d,$h,0)>=0'`, false},
		{"call of 32 bits", `$PY -c '
import ctypes,mmap
m=mmap.mmap(-1,4096,prot=7)
m.write(bytes([0x53,0xb8,0x36,0x01,0,0,0xbb,0,0,0,0x04,0xcd,0x80,0x5b,0xc3]))
f=ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print("ESC"+"APED" if f()==0 else "")'`, false},
		{"call of 32 bits by a program",
			`printf 'int main(){return 0;}' > $W/sub/a.c; gcc -m32 -o $W/sub/a32 $W/sub/a.c 2>/dev/null && $W/sub/a32 && unshare -U ` +
				`true && echo ESCAPED; true`, false},
		{"program without a file", `$PY -c '
import os
f=os.memfd_create("x"); os.write(f,b"#!/bin/sh\ncat $O/secret\n"); os.execve(f,["x"],dict(os.environ))'`, false},
		{"program by the linker", `cp /bin/cat $W/sub/c; chmod 644 $W/sub/c; /lib64/ld-linux-x86-64.so.2 $W/sub/c $O/secret`, false},
		{"filter that answers", `perl -e 'print "ESCAPED" if syscall(317,1,8,0)>=0'; cat $O/secret`, false},
		{"more rights by a ruleset", `perl -e '$a=pack("Q",0xffff); $f=syscall(444,$a,8,0); syscall(157,38,1,0,0,0); syscall(446,$f,` +
			`0)'; cat $O/secret`, false},
		{"identity", `perl -e 'print "ESCAPED" if $>==0 && syscall(105,65534)==0 && syscall(105,0)==0'; perl -e 'print "ESCAPED" if ` +
			`syscall(105,1234)==0 && $>==1234'; su - root -c true </dev/null && echo ESCAPED; sudo -n true && echo ESCAPED`, true},
		{"groups", `perl -e '$g=pack("L",0); print "ESCAPED" if $> && syscall(116,1,$g)==0; print "ESCAPED" if $>==0 && syscall(106,` +
			`1234)==0'`, true},
		{"capability kept", `perl -e '$h=pack("LL",0x20080522,0); $d=pack("L6",0xffffffff,0xffffffff,0,0xffffffff,0xffffffff,0); print ` +
			`"ESCAPED" if syscall(126,$h,$d)==0'`, false},
		{"capability by root's programs",
			`test -u /bin/su && su -c id </dev/null 2>/dev/null | grep -q uid=0 && test $(id -u) != 0 && echo ESCAPED; ping -c1 -W1 ` +
				`127.0.0.1 >/dev/null 2>&1 && test -z "$VIEWED" && echo ESCAPED`, true},
		{"privileges new", `perl -e 'print "ESCAPED" if syscall(157,39,0,0,0,0)==0'`, false},
		{"dump for the machine", `ulimit -c unlimited; sh -c 'ulimit -c unlimited; kill -SEGV $$'; ls $W/core* $W/sub/core* 2>/dev/null ` +
			`| grep -q . && echo ESCAPED; true`, false},
	}},
	{"places of the machine", []escape{
		{"kernel settings", `for f in kernel/modprobe kernel/hotplug vm/overcommit_memory kernel/randomize_va_space ` +
			`kernel/yama/ptrace_scope; do test -f /proc/sys/$f && cat /proc/sys/$f 2>/dev/null > $W/sub/v && cat $W/sub/v > ` +
			`/proc/sys/$f && echo ESCAPED; done`, true},
		{"formats of programs", `echo ':dc:M::XXXX::/bin/true:' > /proc/sys/fs/binfmt_misc/register && echo ESCAPED`, true},
		{"power", `(exec 3>/sys/power/state) && echo ESCAPED; (exec 3>/sys/power/disk) && echo ESCAPED; (exec ` +
			`3>/sys/class/rtc/rtc0/wakealarm) && echo ESCAPED`, true},
		{"firmware", `ls /sys/firmware/efi/efivars 2>/dev/null | grep -q . && echo ESCAPED; head -c 4 /sys/firmware/acpi/tables/DSDT ` +
			`2>/dev/null | grep -q . && echo ESCAPED`, true},
		{"tracing", `ls /sys/kernel/tracing /sys/kernel/debug 2>/dev/null | grep -q '^[a-z]' && echo ESCAPED`, true},
		{"block devices made", `for k in b c; do for d in "1 1" "7 0" "8 0" "10 229"; do mknod $W/sub/n$k $k $d && echo ESCAPED; rm -f ` +
			`$W/sub/n$k; done; done`, false},
		{"virtual machines", `for d in /dev/kvm /dev/vhost-net /dev/net/tun /dev/fuse /dev/loop-control /dev/mapper/control ` +
			`/dev/vfio/vfio; do test -e $d && (exec 3<>$d) && echo ESCAPED; done`, false},
		{"shared memory of others", `ls /dev/shm | grep -q . && echo ESCAPED; echo x > /dev/shm/dc-$$ && test -e /dev/shm/dc-$$ && test ` +
			`-z "$VIEWED" && echo ESCAPED`, true},
		{"temporary files of others", `cat ${O%/*}-other; ls -a ${O%/*/*} && cp ${O%/*}-other $W/sub/other && cat $W/sub/other`, false},
		{"cron", `(echo '* * * * * true') | crontab - 2>/dev/null && echo ESCAPED; touch /var/spool/cron/x /var/spool/cron/crontabs/x ` +
			`&& echo ESCAPED`, true},
		{"at", `echo true | at now 2>/dev/null && echo ESCAPED; touch /var/spool/at/x && echo ESCAPED`, true},
		{"units of the machine", `touch /etc/systemd/system/dc.service && echo ESCAPED; touch /run/systemd/system/dc.service && ` +
			`echo ESCAPED`, true},
		{"units of the user", `mkdir -p $H/.config/systemd/user && echo x > $H/.config/systemd/user/dc.service`, false},
		{"autostart", `mkdir -p $H/.config/autostart && echo x > $H/.config/autostart/dc.desktop`, false},
		{"who may log in", `echo key >> $H/.ssh/authorized_keys && echo ESCAPED; echo x > $H/.ssh/rc && echo ESCAPED; echo ` +
			`'ProxyCommand x' >> $H/.ssh/config && echo ESCAPED`, false},
		{"library for all", `echo $W/sub/evil.so > /etc/ld.so.preload && echo ESCAPED; touch /etc/ld.so.conf.d/dc.conf && ` +
			`echo ESCAPED`, true},
		{"profile for all", `touch /etc/profile.d/dc.sh && echo ESCAPED; touch /etc/bash.bashrc.dc && echo ESCAPED`, true},
		{"names of machines", `echo '127.0.0.1 example.com' >> /etc/hosts && echo ESCAPED; echo >> /etc/resolv.conf && echo ESCAPED`, true},
		{"certificates", `touch /usr/local/share/ca-certificates/dc.crt && echo ESCAPED; touch /etc/ssl/certs/dc.pem && ` +
			`echo ESCAPED`, true},
		{"settings of git for all", `git config --system core.fsmonitor x && git config --system --unset core.fsmonitor && ` +
			`echo ESCAPED`, true},
		{"packages", `touch /var/lib/dpkg/dc && echo ESCAPED; touch /etc/apt/apt.conf.d/99dc && echo ESCAPED`, true},
		{"logs", `cat /var/log/auth.log /var/log/syslog 2>/dev/null | grep -q . && echo ESCAPED; ls /var/log 2>/dev/null | grep -q . && ` +
			`echo ESCAPED`, true},
		{"mail", `ls /var/mail /var/spool/mail 2>/dev/null | grep -q '^[a-z]' && echo ESCAPED; touch /var/mail/dc && echo ESCAPED`, true},
		{"other people's homes", `ls /home/* 2>/dev/null | grep -q . && echo ESCAPED; ls /root 2>/dev/null | grep -q . && ` +
			`echo ESCAPED`, true},
		{"mounted disks", `ls /mnt /media /srv 2>/dev/null | grep -v : | grep -q . && echo ESCAPED; true`, true},
		{"host keys", `cat /etc/ssh/ssh_host_*_key 2>/dev/null | grep -q . && echo ESCAPED; cat /etc/ssl/private/* 2>/dev/null | grep ` +
			`-q . && echo ESCAPED`, true},
		{"who may be root", `cat /etc/sudoers 2>/dev/null | grep -q . && echo ESCAPED; cat /etc/gshadow 2>/dev/null | grep -q . && ` +
			`echo ESCAPED`, true},
		{"keys by links of the system", `ln -sf /etc/shadow $W/sub/sh; cat $W/sub/sh | grep -q . && echo ESCAPED; cat ` +
			`/proc/self/root/etc/shadow | grep -q . && echo ESCAPED; cat /etc/alternatives/../shadow | grep -q . && echo ESCAPED`, true},
	}},
	{"names and races", []escape{
		{"attribute of a file beside", `perl -e '$b="\0"x64; for (191,192) { $r=syscall($_,$ENV{O}."/secret","user.dc",$b,64); print ` +
			`"ESCAPED" if $r>0 } for (194,195) { print "ESCAPED" if syscall($_,$ENV{O}."/secret",$b,64)>0 }'`, false},
		{"name in other widths", `cat $W/．daycare/settings.yaml; cat $W/.dаycare/settings.yaml`, false},
		{"name with what is not seen", `mkdir -p $'$W/.day\u200bcare'; cat $W/.day$'\u200b'care/settings.yaml`, false},
		{"exchange of the data folder", `mkdir -p $W/sub/fake; perl -e 'print "ESCAPED" if syscall(316,-100,$ENV{D},-100,` +
			`$ENV{W}."/sub/fake",2)==0'; cat $W/sub/fake/settings.yaml`, false},
		{"exchange of git's configuration",
			`echo x > $W/sub/cfg; perl -e 'print "ESCAPED" if syscall(316,-100,$ENV{W}."/.git/config",-100,` +
				`$ENV{W}."/sub/cfg",2)==0'`, false},
		{"second name of git's configuration", `ln $W/.git/config $W/sub/gc && echo x >> $W/sub/gc && echo ESCAPED`, false},
		{"second name of the settings", `ln $D/settings.yaml $W/sub/st && cat $W/sub/st; cp -l $D/settings.yaml $W/sub/st2 && cat ` +
			`$W/sub/st2`, false},
		{"clone of a file", `cp --reflink=auto $O/secret $W/sub/rc && cat $W/sub/rc; perl -e 'open(A,"<",$ENV{O}."/secret") and ` +
			`print <A>'`, false},
		{"copy by the kernel", `$PY -c 'import os; a=os.open(os.environ["O"]+"/secret",0); b=os.open(os.environ["W"]+"/sub/k",66); ` +
			`print("ESCAPED" if os.copy_file_range(a,b,99) else "")'`, false},
		{"folder held open while it is replaced",
			`exec 7<$W/sub; (for i in 1 2 3; do mv $W/sub $W/s2 2>/dev/null && ln -s $O $W/sub && rm $W/sub && mv $W/s2 $W/sub; done); ` +
				`cat /proc/self/fd/7/../../outside/secret`, false},
		{"race for the link", `$PY -c '
import os,threading
w,o=os.environ["W"]+"/sub",os.environ["O"]; os.makedirs(w+"/ra",exist_ok=True); os.path.islink(w+"/rb") or os.symlink(o,w+"/rb"); stop=False
def sw():
  while not stop:
    try: os.rename(w+"/ra",w+"/rc"); os.rename(w+"/rb",w+"/ra"); os.rename(w+"/ra",w+"/rb"); os.rename(w+"/rc",w+"/ra")
    except OSError: pass
t=threading.Thread(target=sw); t.start()
for _ in range(6000):
  try: print(open(w+"/ra/secret").read()); break
  except OSError: pass
stop=True; t.join()'`, false},
		{"old folder of the shell", `cd $W/sub && cd .. && cat ../outside/secret; cd -P $W/sub/../.. && cat outside/secret; OLDPWD=$O; ` +
			`cd - && cat secret`, false},
		{"very long name", `n=$(printf 'a%.0s' $(seq 200)); p=$W/sub; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 ` +
			`22; do mkdir -p $p/$n && cd $p/$n 2>/dev/null && p=.; done; cat $(printf '../%.0s' $(seq 30))$O/secret`, false},
		{"union of folders", `mount -t overlay x -o lowerdir=$O,upperdir=$W/sub,workdir=$W/sub $W/sub && cat $W/sub/secret`, true},
		{"own file system", `perl -e 'print "ESCAPED" if open(F,"+<","/dev/fuse")'`, false},
		{"attributes that stay", `chattr +i $W/sub/file && echo ESCAPED; chattr +a $W/sub/file && echo ESCAPED`, true},
		{"lease and lock", `$PY -c 'import fcntl,os; f=os.open(os.environ["O"]+"/secret",os.O_RDONLY); fcntl.fcntl(f,1024,0); ` +
			`print("ESCAPED")'`, false},
	}},
}
