package watch

import "golang.org/x/sys/unix"

// watchOnly opens a folder without keeping its volume from being unmounted.
const watchOnly = unix.O_EVTONLY
