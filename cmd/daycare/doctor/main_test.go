package doctor

import (
	"os"
	"testing"

	"daycare/tools/shell/sandbox"
)

// TestMain is the sandbox's helper as well: doctor tries what a sandbox holds here.
func TestMain(m *testing.M) {
	if code, ours := sandbox.Main(os.Args); ours {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
