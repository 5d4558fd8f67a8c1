package shell

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// TestACommandEndsBeforeItFillsTheDisk: with what is free counted as reserve, so that the
// disk need not be filled, and the model is told.
func TestACommandEndsBeforeItFillsTheDisk(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x := newWorld(t, level)
		x.exec.options.Reserve = math.MaxInt64
		for name, args := range map[string]a{
			"a file":          {"command": `for i in $(seq 40); do head -c 50000000 /dev/zero > sub/big$i || break; done; echo whole`},
			"in its home":     {"command": `for i in $(seq 40); do head -c 50000000 /dev/zero > $HOME/big$i || break; done; echo whole`},
			"not to be asked": {"command": `trap "" TERM; for i in $(seq 40); do head -c 50000000 /dev/zero > sub/big$i; done; echo whole`},
		} {
			args["timeoutMs"] = 60_000
			res := run(t, t.Context(), x.exec, newCall(t, x.access, args))
			if res.Status != tools.Failed || strings.Contains(res.Text, "whole") || !strings.Contains(res.Text, "[ended: the disk of ") {
				t.Errorf("%s: %q %s", name, res.Status, res.Text)
			}
			big, err := filepath.Glob(filepath.Join(x.w, "sub", "big*"))
			if err != nil {
				t.Fatal(err)
			}

			for _, path := range big {
				os.Remove(path)
			}
			os.RemoveAll(filepath.Join(x.root, "cmdhome"))
		}

		x.exec.options.Reserve = 1
		if res := run(t, t.Context(), x.exec, newCall(t, x.access,
			a{"command": `head -c 1000000 /dev/zero > sub/small; sleep 0.1; echo whole`})); res.Status != "" {
			t.Errorf("with room enough: %q %s", res.Status, res.Text)
		}
	})
}
