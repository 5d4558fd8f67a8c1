package daemon

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someSmaps = `00400000-00402000 r--p 00000000 fe:00 10021515                           /usr/bin/daycare
Rss:                   8 kB
Anonymous:             0 kB
00402000-00f98000 r-xp 00002000 fe:00 10021515                           /usr/bin/daycare
Rss:                9720 kB
Anonymous:             0 kB
01b57000-01b58000 r--p 01756000 fe:00 10021515                           /usr/bin/daycare
Rss:                   4 kB
Anonymous:             4 kB
01b58000-01cee000 rw-p 01757000 fe:00 10021515                           /usr/bin/daycare
Rss:                 612 kB
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 77                         /usr/lib/libc.so.6
Anonymous:             0 kB
7f1000000000-7f1000001000 r--p 00000000 00:00 0
Anonymous:             0 kB
`

// What was written to, or belongs to another file, would be lost or is not ours.
func TestProgramMappings(t *testing.T) {
	want := []mapping{{0x400000, 0x402000}, {0x402000, 0xf98000}}
	if d := cmp.Diff(want, programMappings([]byte(someSmaps), "/usr/bin/daycare"), cmp.AllowUnexported(mapping{})); d != "" {
		t.Error(d)
	}
}

// The program goes on without its pages.
func TestDropPages(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	if len(programMappings(smaps, exe)) == 0 {
		t.Errorf("no mapping of %s in\n%s", exe, smaps)
	}

	for range 10 {
		dropPages()
	}
}
