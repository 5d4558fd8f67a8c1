package doctor

import (
	"os"
	"syscall"
	"testing"

	"daycare/tools/shell/sandbox"
)

// TestMain is the sandbox's helper as well: doctor tries what a sandbox holds here.
func TestMain(m *testing.M) {
	if code, ours := sandbox.Main(os.Args); ours {
		syscall.Exit(code) // with the race detector os.Exit sleeps a second
	}
	os.Exit(m.Run())
}
