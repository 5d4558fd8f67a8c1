package sandbox

import (
	"os"
	"testing"
)

// TestMain makes the test binary the helper, as the daycare binary is.
func TestMain(m *testing.M) {
	if code, ours := Main(os.Args); ours {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestLevels(t *testing.T) {
	exe, _ := os.Executable()
	for _, l := range []Level{Bwrap, Landlock, Seatbelt} {
		r, err := try(l, exe)
		t.Logf("%s: %+v %v", l, r, err)
	}
	r, err := Choose("auto", exe)
	t.Logf("%+v %v", r, err)
}
