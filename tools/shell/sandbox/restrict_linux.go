package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"daycare/engine/beneath"
)

const supervised = true

// leastABI is the version of Landlock that is enough alone: from 6 on a command
// can neither signal other processes nor reach abstract sockets.
const leastABI = 6

func landlockABI() (int, error) {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case err != nil:
		return 0, fmt.Errorf("this kernel has no Landlock: %w", err)
	case abi < leastABI:
		return abi, fmt.Errorf("this kernel has version %d of Landlock; %d is needed", abi, leastABI)
	case !filtered:
		return abi, fmt.Errorf("there is no system call filter for %s", runtime.GOARCH)
	}

	return abi, nil
}

// restrictAndExec applies its task to this process and becomes the command.
func restrictAndExec(argv []string) int {
	r, err := readTask()
	if err != nil {
		return Fail("read task", err)
	}
	path, err := lookPath(argv[0])
	if err != nil {
		return Fail("find command", err)
	}

	unix.CloseOnExec(taskFile)
	if !r.Self {
		unix.CloseOnExec(selfNumber)
	}

	// Capabilities and the filter belong to a thread, and exec keeps those of the
	// thread that calls it.
	runtime.LockOSThread()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"limits", r.limit},
		{"grants", r.grants},
		{"places", r.lock},
		{"network", r.connect},
		{"landlock", r.landlock},
		{"capabilities", dropCapabilities},
		{"system call filter", func() error { return filter(r.Inside) }},
		{"folder", func() error { return os.Chdir(r.View.Dir) }},
	} {
		if err := step.do(); err != nil {
			return Fail(step.name, err)
		}
	}

	return Fail("run "+path, unix.Exec(path, argv, r.Env))
}

func (r *task) limit() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}

	// Where memory runs out all the same, the kernel ends the command, not the daemon.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0); err != nil {
		return err
	}
	if !r.Inside {
		return nil // it would count all processes of the user
	}

	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: MaxThreads, Max: MaxThreads})
}

// grants checks what the view shows. With Landlock alone each grant is checked as it is opened.
func (r *task) grants() error {
	if !r.Inside {
		return nil
	}
	return r.View.check()
}

// lock makes what is locked read only, inside the view, and each folder on the way
// to it, or to something hidden, a mount of its own: nobody can rename it away and
// put another in its place. Paths are found inside of the view here, so a link put
// in the way leads to nothing that is not in it.
func (r *task) lock() error {
	if !r.Inside {
		return nil
	}

	// Bubblewrap leaves someone who is not root in a user namespace below the one that
	// its mounts belong to, so new mounts need a place that belongs to this one.
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}

	done := map[string]bool{}
	hold := func(path string, flags uintptr) error {
		if done[path] || !exists(path) {
			return nil
		}
		done[path] = true
		if err := holdAt(path, flags); err != nil {
			return fmt.Errorf("hold %s: %w", path, err)
		}

		return nil
	}
	for _, path := range slices.Concat(r.View.Locked, r.View.concealed()) {
		for _, root := range r.View.Write {
			var way []string
			for dir := filepath.Dir(path); dir != root && within(root, dir); dir = filepath.Dir(dir) {
				if !slices.ContainsFunc(r.View.Locked, func(locked string) bool { return within(locked, dir) }) {
					way = append(way, dir) // in what is locked, nothing is renamed
				}
			}

			for _, dir := range slices.Backward(way) {
				if err := hold(dir, 0); err != nil {
					return err
				}
			}
		}
	}

	for _, path := range r.View.Locked {
		if err := hold(path, unix.MS_RDONLY); err != nil {
			return err
		}
	}

	for _, path := range r.Plan.Covered {
		if err := hide(path); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}

	return nil
}

// tries bounds how often something is mounted on what is replaced each time.
const tries = 100

// holdAt makes what is at a path, if there is something, a mount with flags.
func holdAt(path string, flags uintptr) (err error) {
	for range tries {
		err = unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, "")
		if err == nil && flags != 0 {
			err = remount(path, flags)
		}
		if !exists(path) {
			return nil
		}
		if !gone(err) && !errors.Is(err, unix.EINVAL) { // it is a mount no longer if its file was replaced
			return err
		}
	}

	return err
}

// gone reports whether what a path names was removed, or a folder on the way to it.
func gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// remount adds flags to those that a mount has: some of them cannot be taken away.
func remount(path string, flags uintptr) error {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return err
	}
	flags |= uintptr(s.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if s.Flags&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}

	return unix.Mount("none", path, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
}

// landlock restricts the process. Inside a view of mounts it is the second wall,
// and not there on kernels without it.
func (r *task) landlock() error {
	var rules []landlock.Rule
	var err error
	if r.Inside {
		rules = append(r.View.insideRules(), r.itself()...)
		if _, err := ll.LandlockGetABIVersion(); err != nil {
			return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		}

		// Sockets are the network namespace's business here.
		return landlock.V11.BestEffort().RestrictPaths(rules...)
	}
	if rules, err = r.View.rules(); err != nil {
		return err
	}

	return landlock.V11.BestEffort().Restrict(append(rules, r.itself()...)...)
}

// itself is the right to run the helper again, for the probe.
func (r *task) itself() []landlock.Rule {
	if !r.Self {
		return nil
	}
	return []landlock.Rule{landlock.ROFiles(selfFile)}
}

// devices are the files in /dev that programs use. The terminal is not one of them: a
// command must not write or type where a user reads and answers.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// listing is the right to see names.
const listing = landlock.AccessFSSet(ll.AccessFSReadDir)

// rules are the grants where nothing can be taken away beneath a grant: a folder
// with something hidden in it is granted by its other entries.
func (v View) rules() ([]landlock.Rule, error) {
	v, err := v.prepare()
	if err != nil {
		return nil, err
	}
	rules := []landlock.Rule{
		landlock.RWFiles(devices...).WithIoctlDev().IgnoreIfMissing(),
		landlock.RODirs("/proc").IgnoreIfMissing(),
	}
	if !v.homeGranted() {
		rules = append(rules, v.changeable(v.Home)...)
	}

	for _, root := range slices.Concat(systemDirs, v.Read, v.Locked) {
		// A link that a command has put in the place of the others is not followed.
		if _, ok := v.Pinned[root]; !ok && !slices.Contains(v.Locked, root) {
			root = beneath.Real(root)
		}
		parts, opened, err := without(root, v.concealed())
		if err != nil && !errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("look into %s: %w", root, err)
		}

		rules = append(rules, v.readable(parts...)...)
		rules = append(rules, v.seen(opened)...)
	}

	for _, root := range v.Write {
		parts, opened, err := without(root, slices.Concat(v.concealed(), v.Locked, v.missing(root)))
		if err != nil {
			return nil, fmt.Errorf("look into %s: %w", root, err)
		}
		rules = append(rules, v.changeable(parts...)...)
		rules = append(rules, v.seen(opened)...)
	}

	rules = append(rules, v.changeable(v.Own...)...)
	return append(rules, v.readable(v.Shown...)...), nil
}

// insideRules are the grants where mounts hide what is not granted.
func (v View) insideRules() []landlock.Rule {
	rules := []landlock.Rule{landlock.RODirs("/"), landlock.RWDirs("/dev", "/tmp", "/var/tmp").WithRefer().WithIoctlDev().IgnoreIfMissing()}
	return append(rules, v.changeable(append(slices.Concat(v.Write, v.Own), v.Home)...)...)
}

func (v View) seen(paths []string) []landlock.Rule {
	dirs, _ := v.sorted(paths)
	return []landlock.Rule{landlock.PathAccess(listing, dirs...)}
}

func (v View) readable(paths ...string) []landlock.Rule {
	dirs, files := v.sorted(paths)
	return []landlock.Rule{landlock.RODirs(dirs...), landlock.ROFiles(files...)}
}

func (v View) changeable(paths ...string) []landlock.Rule {
	dirs, files := v.sorted(paths)
	return []landlock.Rule{landlock.RWDirs(dirs...).WithRefer(), landlock.RWFiles(files...)}
}

// sorted tells folders from files. Other things (pipes, sockets, devices) are not
// granted: what they lead to is outside.
//
// A path is opened without following any link, beneath the pinned folder that it is in, and
// granted as what was opened: a command that runs already cannot put something else in its
// place in between.
func (v View) sorted(paths []string) (dirs, files []string) {
	for _, p := range paths {
		fd, err := v.open(p)
		if err != nil {
			continue // gone, a link, or replaced: not granted
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			continue
		}

		switch opened := fmt.Sprintf("/proc/self/fd/%d", fd); st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			dirs = append(dirs, opened)
		case unix.S_IFREG:
			files = append(files, opened)
		}
	}

	return dirs, files
}

func (v View) open(path string) (fd int, err error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if root := v.around(path); root != "" {
		dir, err := unix.Openat2(unix.AT_FDCWD, root, how)
		if err != nil {
			return -1, err
		}
		var st unix.Stat_t
		if err = unix.Fstat(dir, &st); err == nil && (beneath.ID{Dev: uint64(st.Dev), Ino: st.Ino}) != v.Pinned[root] {
			err = beneath.ErrRace
		}
		if err != nil || path == root {
			return dir, err
		}

		rel, err := filepath.Rel(root, path)
		if err != nil {
			return -1, err
		}
		defer unix.Close(dir)
		return unix.Openat2(dir, rel, &unix.OpenHow{Flags: how.Flags, Resolve: how.Resolve | unix.RESOLVE_BENEATH})
	}

	return unix.Openat2(unix.AT_FDCWD, path, how)
}

// dropCapabilities takes away what a process of root could do beside reading and
// writing files. Without the bounding set, no program gives it back.
func dropCapabilities() error {
	const lastKnown = 63
	for c := uintptr(0); c <= lastKnown; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // beyond the last one that this kernel knows
		}
		if err == nil && has == 0 {
			continue // a container took it away from root, and with it the right to do so again
		}

		err = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && os.Geteuid() == 0 { // others have none and get none
			return err
		}
	}

	// Not known to old kernels, which have no ambient capabilities.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
