//go:build darwin || freebsd

package watch

import "syscall"

// limitHint ends the reasons that a setting of the system can mend. kqueue holds
// every watched file open.
const limitHint = " (see ulimit -n)"

// mntLocal is MNT_LOCAL of sys/mount.h.
const mntLocal = 0x1000

// Remote names the file system of dir if another machine can change it without
// an event here.
func Remote(dir string) string {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Flags&mntLocal != 0 {
		return ""
	}
	name := make([]byte, 0, len(fs.Fstypename))
	for _, c := range fs.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}

	return string(name)
}
