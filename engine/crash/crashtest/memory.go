package crashtest

import (
	"os"
	"syscall"
)

// inMemory is where Linux has a file system in memory.
const inMemory = "/dev/shm"

// roomInMemory is more than the tests of a package write at once.
const roomInMemory = 1 << 30

// Memory is what a TestMain or a test sets TMPDIR to, so that folders of tests are in memory: flushes are most of what they
// would wait for, and no test can see whether one reached a disk. It is TMPDIR as it was where that is set or memory has no room.
func Memory() string {
	var fs syscall.Statfs_t
	if set := os.Getenv("TMPDIR"); set != "" || syscall.Statfs(inMemory, &fs) != nil || uint64(fs.Bavail)*uint64(fs.Bsize) < roomInMemory {
		return set
	}

	return inMemory
}
