//go:build linux && !amd64 && !arm64

package sandbox

const (
	filtered  = false
	auditArch = 0
)

var oldByPath []uint32

var (
	oldModes []struct{ nr, arg uint32 }
	oldOpens []struct{ nr, flags, mode uint32 }
)
