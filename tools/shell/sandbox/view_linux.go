package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The helper as "view" does what bubblewrap does: it is the first process of namespaces
// that the supervisor made for it, makes the view of the file system that the plan says,
// starts the command in it, and ends when the command does, and with it all that is
// left in there.

// ownSpaces has the next process begin in namespaces of its own, in which it may mount.
func ownSpaces() *syscall.SysProcAttr {
	uid, gid := os.Getuid(), os.Getgid()
	return &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		// Someone who is not root loses them else when the helper is executed.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN},
	}
}

// enterView makes the view and runs the command in it, and returns its exit code.
func enterView(argv []string) int {
	runtime.LockOSThread()
	t, err := readTask()
	if err != nil {
		return Fail("read task", err)
	}
	if t.Plan == nil {
		return Fail("read task", errors.New("there is no plan"))
	}

	// What ends the command leaves this process to see it. (Not ignored: the command
	// would inherit that.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	if err := loopback(); err != nil {
		return Fail("loopback", err)
	}
	if err := t.Plan.make(); err != nil {
		return Fail("view", err)
	}

	argv = append([]string{"/proc/self/exe", helperWord, "restrict", "--"}, argv...)
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: []string{}, Files: []uintptr{0, 1, 2, 3, taskFile},
		Sys: &syscall.SysProcAttr{Setpgid: true, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN}}})
	if err != nil {
		return Fail("run helper", err)
	}

	for {
		var status syscall.WaitStatus
		switch p, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return Fail("wait for command", err)
		case p == pid && status.Exited():
			return status.ExitStatus()
		case p == pid && status.Signaled():
			return 128 + int(status.Signal())
		}
	}
}

// loopback brings up the only interface of the view's own network.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}

	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)

	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// Where the two file systems are while the view is made.
const (
	oldRoot = "/old"
	newRoot = "/new"
)

// make mounts the plan's steps and makes the result the root.
func (p *plan) make() error {
	const scratch = "/tmp"
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := unix.Mount("daycare", scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}

	for _, dir := range []string{oldRoot, newRoot} {
		if err := os.Mkdir(scratch+dir, 0o755); err != nil {
			return err
		}
	}

	if err := unix.PivotRoot(scratch, scratch+oldRoot); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Mount("daycare", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}

	for _, m := range p.Mounts {
		if err := m.make(); err != nil {
			return fmt.Errorf("%s: %w", m.At, err)
		}
	}

	for _, path := range p.ReadOnly {
		at, err := openIn(newRoot, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		err = setMount(at, unix.MOUNT_ATTR_RDONLY, 0)
		unix.Close(at)
		if err != nil {
			return fmt.Errorf("make %s read only: %w", path, err)
		}
	}

	return enterRoot()
}

// enterRoot leaves the old file system for the new one.
func enterRoot() error {
	if err := unix.Unmount(oldRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the view: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the scratch root: %w", err)
	}

	return os.Chdir("/")
}

func (m mount) make() error {
	switch m.Kind {
	case readOnly, writable:
		attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
		if m.Kind == readOnly {
			attributes |= unix.MOUNT_ATTR_RDONLY
		}
		if err := bindTo(m.From, m.At, attributes); !m.Gone || !gone(err) {
			return err
		}
		return nil
	case tmpFS:
		return mountAt(m.At, "tmpfs", 0, fmt.Sprintf("mode=0755,size=%d", tmpBytes))
	case procFS:
		return mountProc(m.At)
	case devFS:
		return makeDev(m.At)
	case link:
		if err := os.MkdirAll(newRoot+filepath.Dir(m.At), 0o755); err != nil {
			return err
		}
		return os.Symlink(m.From, newRoot+m.At)
	}

	return fmt.Errorf("there is no mount %q", m.Kind)
}

// mountProc mounts the processes of the view. What can be set in there is read only.
func mountProc(at string) error {
	if err := mountAt(at, "proc", unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus"} {
		path := filepath.Join(at, name)
		if !exists(newRoot + path) {
			continue
		}
		if err := unix.Mount(newRoot+path, newRoot+path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		if err := remount(newRoot+path, unix.MS_RDONLY); err != nil {
			return err
		}
	}

	return nil
}

// makeDev mounts a folder with the devices that programs use; there is no terminal
// among them.
func makeDev(at string) error {
	if err := mountAt(at, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	for _, path := range devices {
		if err := bindTo(path, path, unix.MOUNT_ATTR_NOSUID); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}

	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(target, filepath.Join(newRoot+at, name)); err != nil {
			return err
		}
	}

	return mountAt(filepath.Join(at, "pts"), "devpts", unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
}

// openIn opens a path beneath a root without following any link: a command that runs
// already cannot put one in its way.
func openIn(root, path string) (int, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	rel := strings.TrimPrefix(path, "/")
	if rel == "" {
		rel = "."
	}

	return unix.Openat2(dir, rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH})
}

// bindTo shows a file or folder of the old file system in the new one.
func bindTo(from, at string, attributes uint64) error {
	source, err := openIn(oldRoot, from)
	if err != nil {
		return fmt.Errorf("open it: %w", err)
	}
	defer unix.Close(source)
	var st unix.Stat_t
	if err := unix.Fstat(source, &st); err != nil {
		return err
	}

	target, err := place(at, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	tree, err := unix.OpenTree(source, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("take it: %w", err)
	}
	defer unix.Close(tree)
	if err := setMount(tree, attributes, unix.AT_RECURSIVE); err != nil {
		return fmt.Errorf("restrict it: %w", err)
	}
	if err := unix.MoveMount(tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount it: %w", err)
	}

	return nil
}

// hide puts something empty over what is at a path of the view, if there is something.
func hide(path string) (err error) {
	for range tries {
		var target int
		target, err = openIn("/", path)
		if gone(err) || errors.Is(err, unix.EACCES) { // what the helper cannot reach, a command cannot
			return nil
		}
		if err == nil {
			err = hideAt(target)
			unix.Close(target)
		}
		if !gone(err) {
			return err
		}
	}

	return err
}

// hideAt mounts on what was opened, so that it makes nothing.
func hideAt(target int) error {
	var st unix.Stat_t
	if err := unix.Fstat(target, &st); err != nil {
		return err
	}

	empty := emptyFile
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		empty = emptyFolder
	}

	return unix.Mount(empty, fmt.Sprintf("/proc/self/fd/%d", target), "", unix.MS_BIND, "")
}

func setMount(fd int, attributes uint64, flags uint) error {
	return unix.MountSetattr(fd, "", flags|unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attributes})
}

// place opens the place of a mount, which is made if it is missing.
func place(at string, folder bool) (int, error) {
	fd, err := openIn(newRoot, at)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	dir := at
	if !folder {
		dir = filepath.Dir(at)
	}
	if err := os.MkdirAll(newRoot+dir, 0o755); err != nil {
		return -1, err
	}
	if !folder {
		if err := os.WriteFile(newRoot+at, nil, 0o644); err != nil {
			return -1, err
		}
	}

	return openIn(newRoot, at)
}

// mountAt mounts a file system that comes from nowhere.
func mountAt(at, kind string, flags uintptr, data string) error {
	target, err := place(at, true)
	if err != nil {
		return err
	}
	defer unix.Close(target)

	return unix.Mount("daycare", fmt.Sprintf("%s/proc/self/fd/%d", oldRoot, target), kind, flags|unix.MS_NOSUID, data)
}
