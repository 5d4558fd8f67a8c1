package address

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"daycare/engine/crash"
)

// Whoever is told that an agent was not made asks again, so there is none: also where only
// the last step failed, which makes the name of its folder durable.
func TestAnAgentThatWasRefusedIsNotThere(t *testing.T) {
	for _, fault := range []string{"emfile", "enfile", "enomem", "eacces", "estale"} {
		for _, step := range []string{"folder.mkdir", "folder.sync", "folder.rename", "folder.dirsync"} {
			t.Run(fmt.Sprint(fault, " at ", step), func(t *testing.T) {
				x := newIndex(t)
				crash.Arm(t, fault+"@"+step+"#1:0")
				if _, err := x.Create(Descriptor{Type: Permanent, Name: "Ops"}, []byte("{}\n")); err == nil {
					t.Fatal("no error")
				}
				if x.vol.Err() != nil {
					return // nothing is made any more
				}

				m, err := x.Create(Descriptor{Type: Permanent, Name: "Ops"}, []byte("{}\n"))
				if err != nil {
					t.Fatal(err)
				}
				entries, err := os.ReadDir(x.scan.dir)
				if err != nil {
					t.Fatal(err)
				}

				for _, e := range entries {
					if e.IsDir() && e.Name() != m.ID && !strings.HasPrefix(e.Name(), ".") {
						t.Errorf("%s is there beside %s", e.Name(), m.ID)
					}
				}
			})
		}
	}
}
