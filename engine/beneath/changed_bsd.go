//go:build darwin || freebsd

package beneath

import (
	"io/fs"
	"syscall"
	"time"
)

// ChangedAt returns when the file or its name last changed in any way. No program can set it.
func ChangedAt(info fs.FileInfo) time.Time {
	st := info.Sys().(*syscall.Stat_t)
	return time.Unix(st.Ctimespec.Unix())
}
