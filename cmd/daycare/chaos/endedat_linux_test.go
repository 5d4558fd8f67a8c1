package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A life that ended at a step ended when it noted that step, however late the harness sees it.
func TestALifeEndsAtItsLastStep(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	last := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.WriteFile(trace, []byte("inbox.sync\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(trace, last, last); err != nil {
		t.Fatal(err)
	}
	died := exec.Command("sh", "-c", "kill -9 $$")
	_ = died.Run()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}

	for name, tt := range map[string]struct {
		d     daemon
		armed Death
		atEnd bool
	}{
		"at a step": {daemon{cmd: died, trace: trace}, Death{Failpoint: "kill@#1"}, true},
		"by the harness": {daemon{cmd: died, trace: trace, killed: true, killedAt: time.Now()},
			Death{Failpoint: "kill@#1"}, false},
		"by the harness, seen late":     {daemon{cmd: died, trace: trace + "none", killed: true, killedAt: last}, Death{}, true},
		"at any moment":                 {daemon{cmd: died, trace: trace}, Death{After: time.Second}, false},
		"in order, before its step":     {daemon{cmd: ended, trace: trace}, Death{Failpoint: "kill@#1"}, false},
		"before it noted anything here": {daemon{cmd: died, trace: trace + "none"}, Death{Failpoint: "kill@#1"}, false},
	} {
		if got := tt.d.endedAt(tt.armed); got.Equal(last) != tt.atEnd || !tt.atEnd && time.Since(got) > time.Minute {
			t.Errorf("%s: ended at %s", name, got)
		}
	}
}
