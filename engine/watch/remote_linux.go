package watch

import "syscall"

// limitHint ends the reasons that a setting of the system can mend.
const limitHint = " (see sysctl fs.inotify)"

// Remote names the file system of dir if another machine, or the host of a
// virtual one, can change it without an event here.
func Remote(dir string) string {
	var fs syscall.Statfs_t
	_ = syscall.Statfs(dir, &fs) // where it fails the type is 0

	// The magic numbers are those of statfs(2) and linux/magic.h.
	switch uint32(fs.Type) {
	case 0x6969:
		return "NFS"
	case 0xff534d42, 0xfe534d42, 0x517b:
		return "SMB"
	case 0x65735546:
		return "FUSE"
	case 0x01021997:
		return "9P"
	case 0x00c36400:
		return "Ceph"
	case 0x5346414f:
		return "AFS"
	}

	return ""
}
