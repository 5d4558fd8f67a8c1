package inbox

import (
	"io/fs"
	"syscall"
	"time"
)

// inodeTime is when the file or its name last changed in any way.
func inodeTime(info fs.FileInfo) time.Time {
	st := info.Sys().(*syscall.Stat_t)
	return time.Unix(st.Ctim.Unix())
}
