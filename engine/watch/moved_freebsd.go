package watch

import "golang.org/x/sys/unix"

// watchOnly: FreeBSD has no flag for folders that are only watched.
const watchOnly = unix.O_RDONLY
